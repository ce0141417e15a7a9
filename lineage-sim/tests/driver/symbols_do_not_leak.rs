//! A look at the built files with binutils: what they export and what they leave to the dynamic
//! loader to resolve.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// The folder of the built libraries: this test's own.
fn file(name: &str) -> PathBuf {
    std::env::current_exe()
        .unwrap()
        .parent()
        .unwrap()
        .join(name)
}

/// None, with a word about it, where binutils are not installed.
fn run(program: &str, arguments: &[&str], file: &PathBuf) -> Option<String> {
    match Command::new(program).args(arguments).arg(file).output() {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{program} {}: {}",
                file.display(),
                String::from_utf8_lossy(&output.stderr)
            );
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) => {
            println!("skipped: {program} does not run here ({error})");
            None
        }
    }
}

fn exported(library: &str) -> Option<BTreeSet<String>> {
    let text = run("nm", &["-D", "--defined-only"], &file(library))?;
    Some(
        text.lines()
            .filter_map(|line| line.split_whitespace().nth(2))
            .map(str::to_owned)
            .collect(),
    )
}

const CUDA: &str = "liblineage_sim_cuda.so";
const CUPTI: &str = "liblineage_sim_cupti.so";

#[test]
fn the_sonames_are_those_that_programs_open() {
    for (library, soname) in [(CUDA, "libcuda.so"), (CUPTI, "libcupti.so")] {
        let Some(text) = run("readelf", &["-d"], &file(library)) else {
            return;
        };
        assert!(text.contains(&format!("soname: [{soname}]")), "{text}");
    }
}

#[test]
fn each_library_exports_its_own_names_and_one_private_one() {
    let (Some(cuda), Some(cupti)) = (exported(CUDA), exported(CUPTI)) else {
        return;
    };
    let others = |names: &BTreeSet<String>, prefix: &str| {
        let is_other =
            |name: &&String| !name.starts_with(prefix) || name.starts_with(&format!("{prefix}pti"));
        names.iter().filter(is_other).cloned().collect::<Vec<_>>()
    };
    assert_eq!(others(&cuda, "cu"), ["lineage_sim_interface"]);
    assert_eq!(others(&cupti, "cupti"), ["lineage_sim_bind_cupti"]);
    assert!(
        cuda.len() > 590 && cupti.len() > 220,
        "{} and {}",
        cuda.len(),
        cupti.len()
    );
}

#[test]
fn no_exported_function_is_reached_through_the_dynamic_loader() {
    for library in [CUDA, CUPTI] {
        let Some(exported) = exported(library) else {
            return;
        };
        let Some(relocations) = run("readelf", &["-rW"], &file(library)) else {
            return;
        };
        for line in relocations.lines() {
            let Some(name) = line.split_whitespace().nth(4) else {
                continue;
            };
            let name = name.split('@').next().unwrap_or(name);
            assert!(
                !exported.contains(name),
                "{library} would let another library's {name} take the place of its own: {line}"
            );
        }
    }
}

#[test]
fn the_loader_itself_has_no_driver_symbol() {
    // This test binary has the rlib linked in, and reaches the driver by `dlopen` only.
    let program = std::env::current_exe().unwrap();
    let Some(text) = run("nm", &["--defined-only"], &program) else {
        return;
    };
    let is_driver = |name: &str| {
        let rest = name
            .strip_prefix("cupti")
            .or_else(|| name.strip_prefix("cu"));
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| is_driver(name))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn every_driver_function_that_cudarc_names_exists() {
    // The registry's copy of cudarc is the list; without it (a vendored build) there is nothing to compare.
    let Some(cuda) = exported(CUDA) else { return };
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home
        .map(|home| home.join("registry/src"))
        .and_then(|folder| std::fs::read_dir(folder).ok());
    let file = sources
        .into_iter()
        .flatten()
        .flatten()
        .map(|registry| registry.path().join("cudarc-0.19.10/src/driver/sys/mod.rs"))
        .find(|path| path.exists());
    let Some(file) = file else {
        println!("skipped: cudarc's sources are not in the registry folder");
        return;
    };
    let text = std::fs::read_to_string(file).unwrap();
    let names: BTreeSet<_> = text
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("pub unsafe fn cu")?
                .split('(')
                .next()
        })
        .filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
        .map(|name| format!("cu{name}"))
        .collect();
    assert!(names.len() > 500);
    let missing: Vec<_> = names.iter().filter(|name| !cuda.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
