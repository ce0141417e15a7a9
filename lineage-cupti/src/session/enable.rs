//! What a session asks CUPTI for: kinds of records, calls, callbacks.

use lineage_core::observation::ApiDomain;

use super::explain;
use super::failure::{self, StartError};
use crate::sys::codes::{self, kind, result};
use crate::sys::{Library, Subscriber};
use crate::work;

/// Kinds of records, in the order in which they are enabled.
pub(super) const KINDS: [(u32, &str); 5] = [
    (kind::EXTERNAL_CORRELATION, "EXTERNAL_CORRELATION"),
    // Never KERNEL, which serialises.
    (kind::CONCURRENT_KERNEL, "CONCURRENT_KERNEL"),
    (kind::MEMCPY, "MEMCPY"),
    (kind::MEMCPY2, "MEMCPY2"),
    (kind::MEMSET, "MEMSET"),
];
/// Enabled where the library knows them.
pub(super) const OPTIONAL_KINDS: [u32; 1] = [kind::INTERNAL_LAUNCH_API];
/// The whole of an API, where calls cannot or shall not be chosen one by one.
pub(super) const API_KINDS: [(u32, ApiDomain); 2] = [
    (kind::DRIVER, ApiDomain::Driver),
    (kind::RUNTIME, ApiDomain::Runtime),
];

/// Enables API records of launch functions one by one. `false` where this library cannot.
pub(super) fn choose_calls(library: &Library) -> bool {
    let functions = library.functions();
    let (Some(driver), Some(runtime)) = (
        functions.activity_enable_driver_api,
        functions.activity_enable_runtime_api,
    ) else {
        return false;
    };
    let choose = |enable: unsafe extern "C" fn(u32, u8) -> u32, domain| {
        let mut any = false;
        for function in work::functions(domain) {
            // SAFETY: takes numbers. A function that this version does not know is refused.
            any |= unsafe { enable(function.cbid, 1) } == result::SUCCESS;
        }
        any
    };
    choose(driver, ApiDomain::Driver) & choose(runtime, ApiDomain::Runtime)
}

/// Has the callback called for every driver function that may unload modules.
pub(super) fn watch_unloading(library: &Library, subscriber: Subscriber) {
    for (cbid, _) in codes::UNLOADING {
        let domain = codes::domain::DRIVER_API;
        // SAFETY: the subscriber is the one of this session. A function that this version does not
        // know is refused.
        unsafe { (library.functions().enable_callback)(1, subscriber, domain, cbid) };
    }
}

/// Has the callback called for every driver function that asks for GPU work.
pub(super) fn watch_driver_calls(
    library: &Library,
    subscriber: Subscriber,
) -> Result<(), StartError> {
    let mut failed = result::SUCCESS;
    let mut any = false;
    for function in work::functions(ApiDomain::Driver) {
        // SAFETY: the subscriber is the one of this session. A function that this version does not
        // know is refused.
        let code = unsafe {
            (library.functions().enable_callback)(
                1,
                subscriber,
                codes::domain::DRIVER_API,
                function.cbid,
            )
        };
        match code {
            result::SUCCESS => any = true,
            code => failed = code,
        }
    }
    if any {
        return Ok(());
    }
    Err(StartError::NoCallbacks {
        library: failure::describe(library),
        code: failure::describe_code(library, failed),
    })
}

/// Switches off all that a session may have switched on. Codes are of no use here: what was not on
/// is refused.
pub(super) fn disable_all(library: &Library) {
    let functions = library.functions();
    for (enable, domain) in [
        (functions.activity_enable_driver_api, ApiDomain::Driver),
        (functions.activity_enable_runtime_api, ApiDomain::Runtime),
    ] {
        for function in work::functions(domain) {
            if let Some(enable) = enable {
                // SAFETY: takes numbers.
                unsafe { enable(function.cbid, 0) };
            }
        }
    }
    explain::disable(library);
    let kinds = KINDS.iter().map(|(kind, _)| *kind);
    let apis = API_KINDS.iter().map(|(kind, _)| *kind);
    let optional = OPTIONAL_KINDS.into_iter().chain([kind::GRAPH_TRACE]);
    for kind in kinds.chain(optional).chain(apis) {
        // SAFETY: takes a number.
        unsafe { (functions.activity_disable)(kind) };
    }
}
