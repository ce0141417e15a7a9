//! What the command says of itself: a page for each code, man pages, completion scripts.

mod common;

use common::{lineage, run};

#[test]
fn explain_has_a_page_for_each_code_and_lists_them() {
    let ran = run(lineage().arg("explain"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for &code in lineage_core::fault::FaultCode::ALL {
        assert!(ran.out.contains(code.name()), "{code}");
        // Codes are read in either case.
        let page = run(lineage().args(["explain", &code.code().to_lowercase()]));
        assert_eq!((page.code, page.err.as_str()), (Some(0), ""));
        assert!(page.out.starts_with(&code.to_string()), "{}", page.out);
        assert!(page.out.contains("How to mend it"), "{}", page.out);
        let named = run(lineage().args(["explain", code.name()]));
        assert_eq!((named.code, &named.out), (Some(0), &page.out));
    }
}

#[test]
fn each_shell_has_a_script_that_knows_the_subcommands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(lineage().args(["completions", shell]));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}");
        for word in [
            "validate",
            "show",
            "diagnose",
            "doctor",
            "explain",
            "lab",
            "schema",
            "epochs-from",
        ] {
            assert!(ran.out.contains(word), "{shell} does not know {word}");
        }
        assert!(
            !ran.out.contains("trial"),
            "{shell} offers what is the doctor's own"
        );
    }
}

#[test]
fn each_subcommand_has_a_man_page() {
    let whole = run(lineage().arg("man"));
    assert_eq!((whole.code, whole.err.as_str()), (Some(0), ""));
    assert!(whole.out.contains(".TH lineage 1"), "{}", whole.out);
    for command in [
        "validate",
        "show",
        "diagnose",
        "doctor",
        "explain",
        "lab",
        "schema",
        "completions",
        "man",
    ] {
        let page = run(lineage().args(["man", command]));
        assert_eq!((page.code, page.err.as_str()), (Some(0), ""));
        assert!(
            page.out.contains(&format!(".TH lineage-{command} 1")),
            "{}",
            page.out
        );
    }
}
