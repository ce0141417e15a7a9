//! What this machine has, as one CUPTI sees it.

use lineage_cupti::sys::codes::result;
use serde_json::{Value, json};

use super::{Answer, Arm};
use crate::check::cupti::{self, Client, Setup};
use crate::check::failure::Failure;
use crate::check::program::Program;

/// Never fails where CUPTI loads: what does not work is part of the answer.
pub(super) fn ask(_: &Arm) -> Result<Answer, Failure> {
    // The loader finds the driver first, as lineage's user does.
    let driver = driver();
    let library = cupti::library()?;
    let mapped = mapped("libcupti");
    let (subscribe, work) = match Client::open(&Setup::default()) {
        Ok(client) => (
            Ok(()),
            client
                .enable_operations()
                .and_then(|()| Program::open().map(drop)),
        ),
        Err(failure) => (Err(failure), Program::open().map(drop)),
    };
    let code = match &subscribe {
        Ok(()) => result::SUCCESS,
        Err(Failure::Cupti { code, .. }) => *code,
        Err(_) => result::UNKNOWN,
    };
    let answer = json!({
        "cupti_version": library.version(),
        "cupti_path": mapped.unwrap_or_else(|| library.path().to_owned()),
        "subscribe_code": code,
        "subscribe_error": subscribe.err().map(|failure| failure.to_string()),
        "device_works": work.is_ok(),
        "device_error": work.err().map(|failure| failure.to_string()),
        "driver": driver,
    });
    Ok(Answer::new(answer, json!({})))
}

/// The driver, without a context.
fn driver() -> Value {
    use cudarc::driver::result::{device, init};
    use cudarc::driver::sys;

    // SAFETY: opens the library that any CUDA program opens, and closes it again.
    if !unsafe { sys::is_culib_present() } {
        return Value::Null;
    }
    if let Err(error) = init() {
        return json!({ "library": mapped("libcuda"), "init_code": error.0 as u32 });
    }
    let mut version = 0;
    // SAFETY: a valid place.
    let code = unsafe { sys::cuDriverGetVersion(&mut version) };
    let attribute = |device, which| {
        // SAFETY: a device that the driver gave.
        unsafe { device::get_attribute(device, which) }.ok()
    };
    let first = device::get(0).ok();
    use sys::CUdevice_attribute_enum::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    json!({
        "library": mapped("libcuda"),
        "init_code": 0,
        "cuda_version": (code == sys::CUresult::CUDA_SUCCESS).then_some(version),
        "devices": device::get_count().ok(),
        "gpu": first.and_then(|device| device::get_name(device).ok()),
        "compute_capability": first.and_then(|device| {
            Some(format!("{}.{}", attribute(device, MAJOR)?, attribute(device, MINOR)?))
        }),
    })
}

/// The file under which a library is loaded into this process.
fn mapped(name: &str) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = |line: &str| {
        let path = line.get(line.find('/')?..)?;
        let file = path.rsplit('/').next()?;
        (file.starts_with(name) && file.contains(".so")).then(|| path.to_owned())
    };
    maps.lines().find_map(path)
}
