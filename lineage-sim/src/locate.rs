//! Where the two built libraries are.
//!
//! Cargo builds a `cdylib` dependency into the `deps` folder of the profile, beside which this crate's build
//! script has its own folder; the build script bakes that path. Packages of the workspace have a
//! plain file name, those from git or a registry a hashed one, and older builds may lie beside
//! the newest. A file is taken only if it carries the hash of the interface that this crate was
//! compiled with.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::abi::MARKER;
use crate::load::LoadError;

/// The folder that overrides all others.
const OVERRIDE: &str = "LINEAGE_SIM_LIBRARY_DIR";

pub(crate) fn library(name: &'static str) -> Result<PathBuf, LoadError> {
    let folders = folders();
    for folder in &folders {
        let mut candidates = candidates(folder, name);
        candidates.sort_by_key(|(modified, _)| std::cmp::Reverse(*modified));
        for (_, path) in candidates {
            if carries_our_marker(&path) {
                return Ok(path);
            }
        }
    }
    Err(LoadError::LibraryNotFound {
        library: name,
        searched: folders,
    })
}

fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os(OVERRIDE) {
        return vec![PathBuf::from(folder)];
    }
    // <profile>/build/lineage-sim-<hash>/out → <profile>/deps
    let out = Path::new(env!("LINEAGE_SIM_OUT_DIR"));
    let mut folders = Vec::new();
    if let Some(profile) = out.ancestors().nth(3) {
        folders.push(profile.join("deps"));
    }
    // A target folder that was moved or copied as a whole: beside the running program.
    if let Ok(program) = std::env::current_exe()
        && let Some(folder) = program.parent()
    {
        folders.push(folder.join("deps"));
        folders.push(folder.to_owned());
        if let Some(above) = folder.parent() {
            folders.push(above.join("deps"));
        }
    }
    folders
}

/// `lib<name>.so` and `lib<name>-<hash>.so`.
fn candidates(folder: &Path, name: &str) -> Vec<(SystemTime, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let stem = format!("lib{name}");
    entries
        .flatten()
        .filter(|entry| {
            let file = entry.file_name();
            file.to_str()
                .and_then(|file| file.strip_prefix(stem.as_str())?.strip_suffix(".so"))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect()
}

fn carries_our_marker(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else {
        return false;
    };
    let [first, marker @ ..] = &MARKER;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        // Reading from a slice cannot fail.
        let _ = rest.skip_until(*first);
        if rest.starts_with(marker) {
            return true;
        }
    }
    false
}
