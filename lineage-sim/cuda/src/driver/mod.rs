//! The driver functions.
//!
//! Each is defined once, by [`driver_functions`], which makes two of it: the exported `cu*`
//! function, and an internal one that it forwards to. Nothing inside the library calls or takes the address of an
//! exported one: a real libcuda that is linked into the program would take its place.

pub(crate) mod batch;
pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod general;
pub(crate) mod graph;
pub(crate) mod graph_exec;
pub(crate) mod graph_nodes;
pub(crate) mod graph_params;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod peer;
pub(crate) mod pool;
pub(crate) mod stream;
pub(crate) mod transfer;
pub(crate) mod two_dimensions;
pub(crate) mod unsupported;
pub(crate) mod value;

use std::ffi::{CStr, c_char};

use crate::result;

/// A place that the caller wants to be filled: null, or valid to be written, as the driver
/// interface demands of its callers.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Fills the place; a null pointer is an invalid value.
    pub(crate) fn put(self, value: T) -> Result<(), u32> {
        if self.0.is_null() {
            return Err(result::INVALID_VALUE);
        }
        // SAFETY: only callers across the C boundary make an `Out`; theirs to be null or valid.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Fills the place unless it is null.
    pub(crate) fn put_if_wanted(self, value: T) {
        let _ = self.put(value);
    }

    pub(crate) fn check(self) -> Result<(), u32> {
        if self.0.is_null() {
            Err(result::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    /// A place that nobody asked to be filled.
    pub(crate) fn nowhere() -> Self {
        Self(std::ptr::null_mut())
    }

    pub(crate) fn pointer(self) -> *mut T {
        self.0
    }
}

/// A C string of the caller's: null or NUL-terminated.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn get<'a>(self) -> Result<&'a CStr, u32> {
        if self.0.is_null() {
            return Err(result::INVALID_VALUE);
        }
        // SAFETY: only callers across the C boundary make a `Text`; theirs to be null or
        // NUL-terminated for the time of the call.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }
}

/// An internal function's name and address.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) address: *const (),
    /// CUPTI's callback id.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "checked against the table of names")
    )]
    pub(crate) id: u32,
}

// SAFETY: addresses of functions.
unsafe impl Sync for Named {}

/// Defines driver functions: name, CUPTI's callback id, what it asks for, and then the name under which the body
/// knows the [`Call`](crate::call::Call), the parameters as in `cuda.h`, and the body. With `also NAME ID` behind the id it is
/// defined a second time under that name, for programs whose null stream is the thread's own (`_ptsz`, `_ptds`).
macro_rules! driver_functions {
    ($(fn $name:ident [$($id:tt)*] $arguments:tt $body:block)*) => {
        $(crate::driver::exported! { $name [$($id)*] $arguments })*

        #[allow(non_snake_case)]
        mod internal {
            use super::*;
            $(crate::driver::internal! { $name [$($id)*] $arguments $body })*
        }

        /// The functions of this file, for `cuGetProcAddress`.
        pub(crate) static SIMULATED: &[&[crate::driver::Named]] = &[
            $(crate::driver::named! { $name [$($id)*] },)*
        ];
    };
}

macro_rules! exported {
    ($name:ident [$id:literal also $variant:ident $variant_id:literal, $asks:expr] $arguments:tt) => {
        crate::driver::exported! { $name [$id, $asks] $arguments }
        crate::driver::exported! { $variant [$variant_id, $asks] $arguments }
    };
    ($name:ident [$id:literal, $asks:expr] ($call:pat $(, $argument:ident: $type:ty)* $(,)?)) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            // SAFETY: the caller's promises are passed on.
            unsafe { internal::$name($($argument),*) }
        }
    };
}

macro_rules! internal {
    ($name:ident [$id:literal also $variant:ident $variant_id:literal, $asks:expr] $arguments:tt $body:block) => {
        crate::driver::internal! { @ $name $id $asks, false, $arguments $body }
        crate::driver::internal! { @ $variant $variant_id $asks, true, $arguments $body }
    };
    ($name:ident [$id:literal, $asks:expr] $arguments:tt $body:block) => {
        crate::driver::internal! { @ $name $id $asks, false, $arguments $body }
    };
    (@ $name:ident $id:literal $asks:expr, $per_thread:literal, ($call:pat $(, $argument:ident: $type:ty)* $(,)?) $body:block) => {
        pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            /// As CUPTI's callbacks show them (`generated_cuda_meta.h`).
            #[repr(C)]
            #[allow(dead_code)]
            struct Parameters { $($argument: $type,)* }
            let parameters = Parameters { $($argument),* };
            let described = crate::call::Described { id: $id, asks: $asks };
            crate::call::driver(
                described,
                (&raw const parameters).cast(),
                |$call: &crate::call::Call<'_>| -> Result<(), u32> {
                    let _null_stream = crate::objects::NullStream::is_per_thread($per_thread);
                    $body
                },
            )
        }
    };
}

macro_rules! named {
    ($name:ident [$id:literal also $variant:ident $variant_id:literal, $asks:expr]) => {
        &[
            crate::driver::named! { @ $name $id },
            crate::driver::named! { @ $variant $variant_id },
        ]
    };
    ($name:ident [$id:literal, $asks:expr]) => {
        &[crate::driver::named! { @ $name $id }]
    };
    (@ $name:ident $id:literal) => {
        crate::driver::Named {
            name: stringify!($name),
            address: internal::$name as *const (),
            id: $id,
        }
    };
}
pub(crate) use {driver_functions, exported, internal, named};

/// Every simulated function.
pub(crate) fn simulated() -> impl Iterator<Item = &'static Named> {
    [
        general::SIMULATED,
        context::SIMULATED,
        stream::SIMULATED,
        event::SIMULATED,
        memory::SIMULATED,
        transfer::SIMULATED,
        module::SIMULATED,
        launch::SIMULATED,
        value::SIMULATED,
        peer::SIMULATED,
        capture::SIMULATED,
        graph::SIMULATED,
        graph_exec::SIMULATED,
        graph_nodes::SIMULATED,
        pool::SIMULATED,
        batch::SIMULATED,
        two_dimensions::SIMULATED,
    ]
    .into_iter()
    .flatten()
    .copied()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback_ids;
    use crate::cupti::activity::Domain;

    #[test]
    fn every_function_has_cuptis_callback_id() {
        for function in simulated() {
            let name =
                callback_ids::name(Domain::Driver, function.id).and_then(|name| name.to_str().ok());
            assert_eq!(name, Some(function.name), "callback id {}", function.id);
        }
    }

    #[test]
    fn no_function_is_simulated_and_unsupported() {
        for function in simulated() {
            assert!(
                !unsupported::NAMES.contains(&function.name),
                "{}",
                function.name
            );
        }
    }
}
