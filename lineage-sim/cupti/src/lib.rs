//! The simulated `libcupti.so` of lineage-sim: no state, no behaviour. Each function forwards to
//! the simulated libcuda through the table that the loader has bound.
#![cfg(target_os = "linux")]

#[path = "../../src/abi.rs"]
mod abi;
mod unsupported;

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use abi::{
    BufferCompleted, BufferCompletedTelling, BufferRequested, BufferRequestedTelling,
    CallbackFunction, CuptiTable, TimestampCallback, cupti_functions,
};

/// `CUPTI_ERROR_NOT_INITIALIZED`: what every function answers while no table is bound.
const NOT_INITIALIZED: u32 = 15;

/// The bytes by which the loader knows a library of its own build.
#[used]
static MARKER: [u8; 36] = abi::MARKER;

static TABLE: AtomicPtr<CuptiTable> = AtomicPtr::new(std::ptr::null_mut());

/// Binds the table of libcuda.
#[unsafe(no_mangle)]
extern "C" fn lineage_sim_bind_cupti(table: *const CuptiTable) -> i32 {
    TABLE.store(table.cast_mut(), Ordering::Release);
    abi::OK
}

macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                let table = TABLE.load(Ordering::Acquire);
                if table.is_null() {
                    return NOT_INITIALIZED;
                }
                // SAFETY: the table is a static of libcuda, which is never unloaded; the
                // caller's promises are passed on.
                unsafe { ((*table).$name)($($argument),*) }
            }
        )*
    };
}
cupti_functions!(forward);
