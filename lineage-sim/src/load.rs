use std::path::PathBuf;
use std::sync::OnceLock;

use crate::{Config, Gpu, abi};

/// Why the simulated libraries could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The simulator runs on Linux only.
    #[error("the simulated gpu is not supported on this system (linux only)")]
    NotSupported,
    /// The built library was not found.
    #[error(
        "no built {library} was found (looked into {}); build the crate again, or set LINEAGE_SIM_LIBRARY_DIR to the folder that holds it",
        list(searched)
    )]
    LibraryNotFound {
        /// The library's file name without its hash.
        library: &'static str,
        /// The folders that were searched.
        searched: Vec<PathBuf>,
    },
    /// No copy of the simulated `libcupti.so` could be made in the folder for temporary files. It is needed to leave
    /// out the functions that the configured version lacks.
    #[error("{} could not be copied into the folder for temporary files: {reason}", path.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// The system's own words.
        reason: String,
    },
    /// The dynamic loader refused the library.
    #[error("{} could not be loaded: {reason}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The loader's own words.
        reason: String,
    },
    /// A library under the same name was loaded before, so that programs would find that one.
    #[error(
        "a library under the name {soname} was loaded into this process before the simulated one; load the simulator first"
    )]
    AnotherDriver {
        /// `libcuda.so` or `libcupti.so`.
        soname: &'static str,
    },
    /// This process already has a simulated GPU with another configuration.
    #[error(
        "this process already has a simulated gpu with another configuration; use `lineage_sim::isolated` to give each test a process of its own"
    )]
    DifferentConfiguration,
    /// The device's thread could not be started.
    #[error("the thread of the simulated device could not be started")]
    NoThread,
}

fn list(folders: &[PathBuf]) -> String {
    let folders: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    folders.join(", ")
}

/// Loads the simulated `libcuda.so` and `libcupti.so` into this process.
///
/// From then on `dlopen("libcuda.so")` and `dlopen("libcupti.so")`, as cudarc and others do it,
/// find the simulated ones, because the loader knows them by their SONAMEs. Call it before
/// anything else touches CUDA. The libraries stay until the process ends.
///
/// The libraries are looked for where the build put them; the environment variable
/// `LINEAGE_SIM_LIBRARY_DIR` names another folder for a program that was moved away from it.
///
/// A second call with an equal configuration returns a handle to the same GPU.
///
/// # Errors
///
/// [`LoadError::DifferentConfiguration`] when the process already has a GPU that was configured otherwise,
/// [`LoadError::AnotherDriver`] when a library of that name is there already,
/// [`LoadError::NotSupported`] elsewhere than on Linux, and the rest when the libraries are
/// not where the build put them.
pub fn load(config: Config) -> Result<Gpu, LoadError> {
    let gpu = platform::load(&config)?;
    let _ = LOADED.set(gpu.interface);
    Ok(gpu)
}

static LOADED: OnceLock<&'static abi::SimInterface> = OnceLock::new();

/// The loaded simulator, if there is one.
pub(crate) fn loaded() -> Option<&'static abi::SimInterface> {
    LOADED.get().copied()
}

#[cfg(target_os = "linux")]
mod platform {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::sync::Mutex;

    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

    use super::LoadError;
    use crate::{Config, Gpu, abi, locate, symbols};

    /// `RTLD_NOLOAD` of glibc and musl on all Linux targets.
    const RTLD_NOLOAD: i32 = 4;

    static INTERFACE: Mutex<Option<&'static abi::SimInterface>> = Mutex::new(None);

    pub(super) fn load(config: &Config) -> Result<Gpu, LoadError> {
        let mut loaded = INTERFACE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let interface = match *loaded {
            Some(interface) => interface,
            None => open_both(config)?,
        };
        let raw = config.raw();
        // SAFETY: the interface comes from our own library of the same interface hash, and `raw`
        // lives during the call.
        let answer = unsafe { (interface.configure)(&raw) };
        match answer {
            abi::OK => {
                *loaded = Some(interface);
                Ok(Gpu::new(interface))
            }
            abi::DIFFERENT_CONFIGURATION => Err(LoadError::DifferentConfiguration),
            _ => Err(LoadError::NoThread),
        }
    }

    /// Opens libcuda, then libcupti, and binds the second to the first.
    fn open_both(config: &Config) -> Result<&'static abi::SimInterface, LoadError> {
        let cuda_path = locate::library("lineage_sim_cuda")?;
        let cupti_path = locate::library("lineage_sim_cupti")?;
        let cuda = open(&cuda_path, "libcuda.so")?;
        let mut missing: Vec<&str> = symbols::missing_in(config.cupti_version).collect();
        missing.extend(config.faults.missing_symbols.iter().map(String::as_str));
        let copy =
            symbols::copy_without(&cupti_path, &missing).map_err(|error| LoadError::Copy {
                path: cupti_path.clone(),
                reason: error.to_string(),
            })?;
        let cupti = open(copy.path(), "libcupti.so")?;
        // SAFETY: the symbol's type is fixed by the interface hash that `locate` has checked.
        let interface = unsafe {
            let symbol = cuda
                .get::<abi::InterfaceSymbol>(abi::INTERFACE_SYMBOL)
                .map_err(|error| open_error(&cuda_path, &error))?;
            &*symbol()
        };
        // SAFETY: as above; the table is a static of libcuda, which is never unloaded.
        unsafe {
            let bind = cupti
                .get::<abi::BindSymbol>(abi::BIND_SYMBOL)
                .map_err(|error| open_error(&cupti_path, &error))?;
            bind(interface.cupti);
        }
        // Both stay for the life of the process: others hold pointers into them.
        std::mem::forget(cuda);
        std::mem::forget(cupti);
        Ok(interface)
    }

    fn open(path: &Path, soname: &'static str) -> Result<Library, LoadError> {
        // SAFETY: looking whether a library of this name is loaded runs none of its code.
        if unsafe { Library::open(Some(OsStr::new(soname)), RTLD_NOW | RTLD_NOLOAD) }.is_ok() {
            return Err(LoadError::AnotherDriver { soname });
        }
        // SAFETY: our own library, whose initialisers do nothing.
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| open_error(path, &error))
    }

    fn open_error(path: &Path, error: &libloading::Error) -> LoadError {
        LoadError::Open {
            path: path.to_owned(),
            reason: error.to_string(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::LoadError;
    use crate::{Config, Gpu};

    pub(super) fn load(_config: &Config) -> Result<Gpu, LoadError> {
        Err(LoadError::NotSupported)
    }
}
