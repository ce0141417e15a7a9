//! Driver functions that exist and answer `CUDA_ERROR_NOT_SUPPORTED`; lineage-sim lists the same names on request.

#[path = "../../../src/unsupported/driver.rs"]
mod names;

use crate::result;

/// What all of them are.
unsafe extern "C" fn not_supported() -> u32 {
    result::NOT_SUPPORTED
}

/// The internal function that a name means, if it is one of these.
pub(crate) fn address(name: &str) -> Option<*const ()> {
    NAMES.contains(&name).then_some(not_supported as *const ())
}

macro_rules! unsupported {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            extern "C" fn $name() -> u32 {
                result::NOT_SUPPORTED
            }
        )*

        pub(crate) static NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

names::unsupported_driver_functions!(unsupported);
