//! What there is on this machine: facts that need no driver, and where the libraries are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lineage_cupti::sys::LIBRARY_VARIABLE;
use serde_json::{Value, json};

use super::process;

/// Facts about the machine that name neither it nor anybody.
pub fn facts() -> Value {
    let first_line = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.lines().next()?.trim().to_owned())
    };
    let model = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
    json!({
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "kernel": first_line("/proc/sys/kernel/osrelease"),
        "processor": model,
        "processors": std::thread::available_parallelism().map(usize::from).ok(),
        "driver_version": driver_version(),
    })
}

/// The version of NVIDIA's kernel module. The rest of that line names who built it.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines()
        .next()?
        .split_whitespace()
        .find(is_version)
        .map(str::to_owned)
}

/// Every libcupti to try, best first: the one that is named and no other; else those of a CUDA toolkit, of Python
/// packages, and of the system.
pub fn cupti_candidates() -> Vec<PathBuf> {
    match std::env::var_os(LIBRARY_VARIABLE) {
        Some(named) if !named.is_empty() => vec![named.into()],
        _ => candidates("libcupti.so", &["extras/CUPTI/lib64", "lib64"]),
    }
}

/// The libcudart to use: of the wanted major version if there is one.
pub fn cudart(major: Option<u64>) -> Option<PathBuf> {
    let all: Vec<PathBuf> = candidates("libcudart.so", &["lib64"])
        .into_iter()
        .filter(|path| path.is_absolute())
        .collect();
    let is_wanted = |path: &&PathBuf| {
        let real = std::fs::canonicalize(path).unwrap_or_default();
        let name = real
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        major.is_some_and(|major| name.starts_with(&format!("libcudart.so.{major}")))
    };
    all.iter().find(is_wanted).or(all.first()).cloned()
}

/// Files of this name, and of this name with a version behind it, each file once; the loader's own last.
fn candidates(name: &str, folders_of_toolkit: &[&str]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for toolkit in toolkits() {
        folders.extend(folders_of_toolkit.iter().map(|folder| toolkit.join(folder)));
    }
    for packages in python_packages() {
        folders.extend(
            sorted_entries(&packages.join("nvidia"))
                .into_iter()
                .map(|package| package.join("lib")),
        );
    }
    for system in [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
    ] {
        folders.push(system.into());
    }
    let mut found: Vec<PathBuf> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders {
        for path in sorted_entries(&folder) {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_named = file
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            let Some(file) = std::fs::canonicalize(&path).ok().filter(|_| is_named) else {
                continue;
            };
            if !files.contains(&file) {
                files.push(file);
                found.push(path);
            }
        }
    }
    for version in ["", ".13", ".12"] {
        found.push(format!("{name}{version}").into());
    }
    found
}

fn toolkits() -> Vec<PathBuf> {
    let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(std::env::var_os)
        .filter(|root| !root.is_empty())
        .map(PathBuf::from)
        .collect();
    toolkits.push("/usr/local/cuda".into());
    let versions = sorted_entries(Path::new("/usr/local")).into_iter().rev();
    toolkits.extend(versions.filter(|path| path.to_string_lossy().starts_with("/usr/local/cuda-")));
    toolkits
}

/// Folders of Python packages: those of the `python3` on the path.
fn python_packages() -> Vec<PathBuf> {
    let Some(said) = ask_python() else {
        return Vec::new();
    };
    said.lines()
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .collect()
}

fn ask_python() -> Option<String> {
    let file = std::env::temp_dir().join(format!("device_check-python-{}", std::process::id()));
    let output = std::fs::File::create(&file).ok()?;
    let mut python = Command::new("python3");
    python.args(["-c", "import sys; print('\\n'.join(sys.path))"]);
    python.stdout(output).stderr(Stdio::null());
    let ended = process::run(&mut python, Duration::from_secs(10));
    let said = std::fs::read_to_string(&file).ok();
    // A file that stays behind is the temporary folder's.
    let _ = std::fs::remove_file(&file);
    said.filter(|_| ended.is_ok())
}

fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
