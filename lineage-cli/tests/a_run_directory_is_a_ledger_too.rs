//! Every command that reads a ledger reads a run directory, and says the same of it; and a ledger is
//! converted to one and back without a loss.

mod common;

use std::path::{Path, PathBuf};

use common::{Scratch, lineage, on, run, sound};

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn convert(from: &Path, to: &Path) -> common::Ran {
    run(lineage().arg("convert").arg(from).arg(to))
}

#[test]
fn a_ledger_goes_to_a_run_directory_and_back_without_a_loss() {
    let folder = Folder::new("there_and_back");
    let ledger = Scratch::new("there_and_back.jsonl", &sound());
    let directory = folder.0.join("run.lineage");
    let back = folder.0.join("back.jsonl");
    let database = folder.0.join("run.sqlite");
    for (from, to) in [
        (&ledger.0, &directory),
        (&directory, &back),
        (&directory, &database),
    ] {
        let ran = convert(from, to);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    }
    let text = |path: &Path| std::fs::read_to_string(path).expect("there");
    let (before, after) = (text(&ledger.0), text(&back));
    assert!(before == after, "{before}\n\n{after}");

    let rows = before.lines().filter(|of| of.starts_with(r#"{"row""#));
    let counted: i64 = rusqlite::Connection::open(&database)
        .and_then(|of| of.query_row("SELECT count(*) FROM launches", [], |row| row.get(0)))
        .expect("a database with the table");
    assert_eq!(counted, rows.count() as i64);

    for command in ["validate", "show"] {
        let (of_lines, of_directory) = (on(&[command], &ledger.0), on(&[command], &directory));
        assert_eq!(of_lines.code, of_directory.code);
        // Lines are broken where names end, which differ.
        let less_the_name = |text: &str| {
            let rest = text.split_once('\n').map(|(_, rest)| rest);
            let words: Vec<&str> = rest.unwrap_or_default().split_whitespace().collect();
            words.join(" ")
        };
        let of_lines = less_the_name(&of_lines.out);
        let of_directory = less_the_name(&of_directory.out);
        let of_directory = of_directory.replace("lineage-arrow", "lineage-core");
        assert_eq!(of_lines, of_directory, "{command}");
    }
    // A folder of several is read as one.
    let again = folder.0.join("again.lineage");
    assert_eq!(convert(&directory, &again).code, Some(0));
    let ran = on(&["validate", "--json"], &folder.0);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let processes = &ran.objects()[0]["processes"];
    assert_eq!(processes.as_array().map(Vec::len), Some(2), "{processes}");
}

#[test]
fn what_a_crash_left_is_read_and_said() {
    let folder = Folder::new("crash");
    let ledger = Scratch::new("crash.jsonl", &sound());
    let directory = folder.0.join("run.lineage");
    assert_eq!(convert(&ledger.0, &directory).code, Some(0));
    let journal = directory.join("000001/batches.jsonl");
    let text = std::fs::read_to_string(&journal).expect("there");
    let batch = text.lines().next().expect("a batch");
    std::fs::write(&journal, format!("{batch}\n{{\"batch\":{{\"ba")).expect("written");
    let ran = on(&["show"], &directory);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.words().contains("the last batch was cut short"),
        "{}",
        ran.out
    );
    // What is converted lacks its end, too.
    let back = folder.0.join("back.jsonl");
    let ran = convert(&directory, &back);
    assert!(
        ran.code == Some(0) && ran.err.contains("cut short"),
        "{}",
        ran.err
    );
    let back = std::fs::read_to_string(back).expect("there");
    assert!(!back.contains(r#"{"end""#));
}

#[test]
fn what_cannot_be_converted_is_refused_and_nothing_is_overwritten() {
    let folder = Folder::new("refused");
    let ledger = Scratch::new("refused.jsonl", &sound());
    let there = folder.0.join("there.jsonl");
    std::fs::write(&there, "mine").expect("written");
    for (to, says) in [
        ("there.jsonl", "is there already"),
        ("run.csv", "its name says no form"),
        ("none", "its name says no form"),
    ] {
        let ran = convert(&ledger.0, &folder.0.join(to));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{to}");
        assert!(ran.err.contains(says), "{to}: {}", ran.err);
    }
    assert_eq!(std::fs::read_to_string(&there).expect("there"), "mine");
    let ran = on(&["show"], &folder.0);
    assert!(
        ran.code == Some(2) && ran.err.contains("no run directory"),
        "{}",
        ran.err
    );
}
