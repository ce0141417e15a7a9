//! Where the two built libraries are.
//!
//! Cargo builds a `cdylib` dependency into the `deps` folder of the profile, beside which this crate's build
//! script has its own folder; the build script bakes that path. Packages of the workspace have a
//! plain file name, those from git or a registry a hashed one, and older builds may lie beside
//! the newest. A file is taken only if it carries the hash of the interface that this crate was
//! compiled with.

use std::io::{BufRead, Read};
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

/// How much of a file is looked at in one go.
const CHUNK_BYTES: u64 = 256 * 1024;

fn carries_our_marker(path: &Path) -> bool {
    let Ok(mut file) = std::fs::File::open(path) else {
        return false;
    };
    let mut chunk = Vec::new();
    loop {
        // The end of what was looked at stays: the marker may lie across two chunks.
        let tail = chunk.len().saturating_sub(MARKER.len() - 1);
        chunk.drain(..tail);
        match file.by_ref().take(CHUNK_BYTES).read_to_end(&mut chunk) {
            Ok(1..) if !holds_marker(&chunk) => {}
            Ok(1..) => return true,
            Ok(0) | Err(_) => return false,
        }
    }
}

fn holds_marker(bytes: &[u8]) -> bool {
    let [first, marker @ ..] = &MARKER;
    let mut rest = bytes;
    while !rest.is_empty() {
        // Reading from a slice cannot fail.
        let _ = rest.skip_until(*first);
        if rest.starts_with(marker) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_found_anywhere_in_a_file_and_only_whole() {
        let path = std::env::temp_dir().join(format!("lineage-sim-marker-{}", std::process::id()));
        let chunk = CHUNK_BYTES as usize;
        let write = |before: usize, marker: &[u8]| {
            let bytes = [&vec![MARKER[0]; before], marker, &[0; 100]].concat();
            std::fs::write(&path, bytes).expect("a scratch file");
            carries_our_marker(&path)
        };
        let found = [0, 1, chunk - 20, chunk, 3 * chunk - 1].map(|before| write(before, &MARKER));
        let cut = [0, chunk - 20].map(|before| write(before, &MARKER[..35]));
        std::fs::remove_file(&path).expect("it is ours");
        assert_eq!((found, cut), ([true; 5], [false; 2]));
    }
}
