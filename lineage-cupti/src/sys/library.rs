//! Finding and loading `libcupti.so`.

use std::env;
use std::ffi::{CStr, OsStr};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

use super::codes::{result, version};
use super::functions::Functions;

/// Environment variable that names the one library to load.
pub const LIBRARY_VARIABLE: &str = "LINEAGE_CUPTI_LIBRARY";

/// Why no usable CUPTI is loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// None of the candidates could be loaded.
    #[error(
        "no CUPTI library could be loaded (tried {}); install the CUPTI of a CUDA toolkit, or set \
         {LIBRARY_VARIABLE} to the path of libcupti.so",
        .tried.join(", ")
    )]
    NotFound {
        /// What was tried, each with the loader's own words where they are more than "no such file".
        tried: Vec<String>,
    },
    /// The library that was named could not be loaded.
    #[error("CUPTI could not be loaded from {path}: {reason}; correct or unset {LIBRARY_VARIABLE}")]
    NamedNotLoaded {
        /// The path that was given.
        path: String,
        /// What the loader said.
        reason: String,
    },
    /// The library lacks a function that this crate needs.
    #[error(
        "{path} has no function {symbol}, which CUPTI has from CUDA {since} on; install a newer CUPTI, \
         or set {LIBRARY_VARIABLE} to the path of one"
    )]
    SymbolMissing {
        /// The function.
        symbol: &'static str,
        /// The CUDA version that brought it.
        since: &'static str,
        /// The library.
        path: String,
    },
    /// The library is older than the oldest whose records are known.
    #[error(
        "{path} is CUPTI version {version}, older than CUDA 11.8 (version 18); install a newer \
         CUPTI, or set {LIBRARY_VARIABLE} to the path of one"
    )]
    TooOld {
        /// What `cuptiGetVersion` answered.
        version: u32,
        /// The library.
        path: String,
    },
    /// The library does not say which version it is.
    #[error("cuptiGetVersion of {path} failed with code {code}")]
    VersionUnknown {
        /// What `cuptiGetVersion` answered.
        code: u32,
        /// The library.
        path: String,
    },
}

/// A loaded CUPTI. It stays loaded until the process ends, even when this value is dropped:
/// CUPTI's threads and exit handlers live on.
#[derive(Debug, Clone)]
pub struct Library {
    functions: Functions,
    version: u32,
    path: String,
}

impl Library {
    /// Loads the library that [`LIBRARY_VARIABLE`] names, else the first of: a `libcupti.so` that
    /// the process has loaded already or the loader finds, `libcupti.so.13`, `libcupti.so.12`, and
    /// the places where a CUDA toolkit keeps it.
    ///
    /// # Errors
    /// [`LoadError`], in which each case names what is missing.
    pub fn load() -> Result<Self, LoadError> {
        match env::var_os(LIBRARY_VARIABLE) {
            Some(path) if !path.is_empty() => Self::load_from(Path::new(&path)),
            _ => Self::load_first(&candidates(|name| env::var_os(name).map(PathBuf::from))),
        }
    }

    /// Loads this library and no other.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_from(path: &Path) -> Result<Self, LoadError> {
        let handle = open(path.as_os_str()).map_err(|reason| LoadError::NamedNotLoaded {
            path: path.display().to_string(),
            reason,
        })?;
        Self::from_handle(handle, path)
    }

    fn load_first(candidates: &[PathBuf]) -> Result<Self, LoadError> {
        let mut tried = Vec::new();
        for path in candidates {
            match open(path.as_os_str()) {
                Ok(handle) => return Self::from_handle(handle, path),
                Err(reason) if reason.contains("No such file") => {
                    tried.push(path.display().to_string());
                }
                Err(reason) => tried.push(format!("{} ({reason})", path.display())),
            }
        }
        Err(LoadError::NotFound { tried })
    }

    fn from_handle(handle: Handle, path: &Path) -> Result<Self, LoadError> {
        let path = path.display().to_string();
        // SAFETY: the file is a libcupti by its name, or by the word of whoever named it.
        let resolved = unsafe { Functions::resolve(&handle, &path) };
        // Never closed, not even on an error: whoever loaded CUPTI cannot unload it safely.
        std::mem::forget(handle);
        let functions = resolved?;
        let mut version = 0;
        // SAFETY: `version` is a valid `uint32_t` for the duration of the call.
        let code = unsafe { (functions.get_version)(&mut version) };
        if code != result::SUCCESS {
            return Err(LoadError::VersionUnknown { code, path });
        }
        if version < version::OLDEST {
            return Err(LoadError::TooOld { version, path });
        }
        Ok(Self {
            functions,
            version,
            path,
        })
    }

    /// Its functions.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// What `cuptiGetVersion` answers: 28 is CUDA 12.9, 130500 is CUDA 13.5.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The name or path it was loaded by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What CUPTI itself says about a result code; `None` where it says nothing.
    pub fn message(&self, code: u32) -> Option<String> {
        let ask = self
            .functions
            .get_error_message
            .unwrap_or(self.functions.get_result_string);
        let mut text = std::ptr::null();
        // SAFETY: `text` is a valid `const char *` for the duration of the call.
        let answer = unsafe { ask(code, &mut text) };
        if answer != result::SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: CUPTI answered with success, so this is one of its constant, terminated texts.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned()).filter(|text| !text.is_empty())
    }
}

fn open(name: &OsStr) -> Result<Handle, String> {
    // SAFETY: loading runs the library's initialisers; CUPTI's are safe to run on any thread.
    // Local, so that its symbols do not enter the application's.
    unsafe { Handle::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        // The loader's words are in the source.
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })
}

/// What is tried when no library is named, in order.
fn candidates(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = ["libcupti.so", "libcupti.so.13", "libcupti.so.12"]
        .map(PathBuf::from)
        .into();
    let mut roots: Vec<PathBuf> = Vec::new();
    for root in [
        variable("CUDA_HOME"),
        variable("CUDA_PATH"),
        Some("/usr/local/cuda".into()),
    ] {
        if let Some(root) = root
            && !root.as_os_str().is_empty()
            && !roots.contains(&root)
        {
            roots.push(root);
        }
    }
    for root in roots {
        names.push(root.join("extras/CUPTI/lib64/libcupti.so"));
        names.push(root.join("lib64/libcupti.so"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_already_loaded_library_comes_first_and_the_toolkits_last() {
        let names = candidates(|name| (name == "CUDA_HOME").then(|| "/opt/cuda".into()));
        let names: Vec<_> = names.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(
            names,
            [
                "libcupti.so",
                "libcupti.so.13",
                "libcupti.so.12",
                "/opt/cuda/extras/CUPTI/lib64/libcupti.so",
                "/opt/cuda/lib64/libcupti.so",
                "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                "/usr/local/cuda/lib64/libcupti.so",
            ]
        );
    }

    #[test]
    fn a_missing_library_names_every_candidate() {
        let error = Library::load_first(&["libnone-a.so".into(), "/nowhere/libnone-b.so".into()])
            .expect_err("neither exists");
        let text = error.to_string();
        assert!(
            text.contains("libnone-a.so, /nowhere/libnone-b.so"),
            "{text}"
        );
        assert!(text.contains(LIBRARY_VARIABLE), "{text}");
    }

    #[test]
    fn a_library_that_is_no_cupti_is_named_with_the_function_it_lacks() {
        let error = Library::load_from(Path::new("libc.so.6")).expect_err("it is no cupti");
        assert_eq!(
            error,
            LoadError::SymbolMissing {
                symbol: "cuptiGetVersion",
                since: "12.0 or earlier",
                path: "libc.so.6".into()
            }
        );
    }

    #[test]
    fn a_named_library_that_does_not_load_says_so_with_the_loaders_words() {
        let error = Library::load_from(Path::new("/nowhere/libcupti.so")).expect_err("none");
        let text = error.to_string();
        assert!(text.contains("/nowhere/libcupti.so"), "{text}");
        assert!(text.contains("No such file"), "{text}");
    }
}
