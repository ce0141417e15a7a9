//! CUPTI functions that exist and answer `CUPTI_ERROR_NOT_SUPPORTED` (27); lineage-sim lists the same names on request.

#[path = "../../src/unsupported/cupti.rs"]
mod names;

macro_rules! unsupported {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            extern "C" fn $name() -> u32 {
                27
            }
        )*
    };
}

names::unsupported_cupti_functions!(unsupported);
