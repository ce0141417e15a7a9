//! Structures that CUPTI's functions take and give, as the headers of 13.5 lay them out. `lineage-sim/tests/layouts.rs` compiles this file,
//! too, and compares it with what a C compiler makes of them; so it uses nothing of this crate.

use std::ffi::{c_char, c_void};

/// `CUpti_SubscriberParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SubscriberParams {
    pub(crate) bytes: usize,
    pub(crate) name: *const c_char,
    pub(crate) first_name: *mut c_char,
    pub(crate) first_name_bytes: usize,
    /// Since 13.2.
    pub(crate) allows_several: u8,
    padding: [u8; 7],
}

/// `CUpti_BufferCallbackRequestInfo`.
#[repr(C)]
pub(crate) struct RequestInfo {
    pub(crate) bytes: usize,
}

impl RequestInfo {
    pub(crate) fn new() -> Self {
        Self {
            bytes: size_of::<Self>(),
        }
    }
}

/// `CUpti_BufferCallbackCompleteInfo`.
#[repr(C)]
pub(crate) struct CompleteInfo {
    pub(crate) bytes: usize,
    pub(crate) thread_id: u64,
    /// Of records whose fields the client has chosen: there are none.
    pub(crate) layouts: *mut *mut c_void,
    pub(crate) layouts_count: usize,
}

impl CompleteInfo {
    pub(crate) fn new(thread_id: u64) -> Self {
        Self {
            bytes: size_of::<Self>(),
            thread_id,
            layouts: std::ptr::null_mut(),
            layouts_count: 0,
        }
    }
}

/// `CUpti_ActivityConfig`, with its `CUpti_ActivityFieldSelection` taken apart.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ActivityConfig {
    pub(crate) bytes: usize,
    pub(crate) selection_bytes: usize,
    pub(crate) fields_count: usize,
    pub(crate) fields: *mut i32,
    /// [`ApiOptions`] for kinds of calls; null for none. Since 13.4.
    pub(crate) options: *mut c_void,
}

/// `CUpti_ActivityApiOptions`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ApiOptions {
    pub(crate) bytes: usize,
    pub(crate) ids: *mut ApiIdOptions,
}

/// `CUpti_ActivityApiCbidOptions`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ApiIdOptions {
    pub(crate) bytes: usize,
    pub(crate) ids: *mut u32,
    pub(crate) count: usize,
    /// 1: these only; 0: all but these.
    pub(crate) are_allowed: u8,
}
