//! Where NVIDIA's driver library is found: once, for all that ask it something.
//!
//! `libcuda.so.1` is the library's own name (its SONAME), and what NVIDIA's runtime opens. `libcuda.so` is
//! the link for linkers, which may be missing where nobody compiles, and under which a toolkit's folder
//! `stubs` has a library that answers every call with error 34 (`CUDA_ERROR_STUB_LIBRARY`, `cuda.h`). So the
//! former is asked for first. But what the process has loaded comes before what it might load: a driver
//! that calls itself by the other name, as a simulated one does, is then the one that the application uses.
//!
//! Never unloaded: the application may be using it.

use std::ffi::c_int;
use std::mem::ManuallyDrop;

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

/// In the order in which they are asked for.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// `RTLD_NOLOAD` of glibc and musl: found only where it is loaded already.
const RTLD_NOLOAD: c_int = 4;

/// The driver that this process has loaded. Loads nothing, so it is for what has no business where the
/// application uses no CUDA.
pub(crate) fn loaded() -> Option<ManuallyDrop<Library>> {
    open(&NAMES, RTLD_NOLOAD)
}

/// The driver, which is loaded if it is not yet.
pub(crate) fn load() -> Option<ManuallyDrop<Library>> {
    loaded().or_else(|| open(&NAMES, 0))
}

/// The first of these libraries that there is.
fn open(names: &[&str], flags: c_int) -> Option<ManuallyDrop<Library>> {
    names.iter().find_map(|name| {
        // SAFETY: what is loaded already runs nothing when it is found again, and to load the driver's
        // library is what every CUDA program does.
        let found = unsafe { Library::open(Some(*name), RTLD_LAZY | RTLD_LOCAL | flags) };
        found.ok().map(ManuallyDrop::new)
    })
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Of glibc, and loaded by nobody here.
    const OTHER: [&str; 2] = ["liblineage-is-not-there.so.1", "libresolv.so.2"];

    #[test]
    fn what_is_not_loaded_is_loaded_only_where_that_is_asked_for() {
        assert!(open(&OTHER, RTLD_NOLOAD).is_none(), "not loaded");
        assert!(open(&OTHER, 0).is_some(), "the second name is tried");
        assert!(open(&OTHER, RTLD_NOLOAD).is_some(), "it stays loaded");
    }
}
