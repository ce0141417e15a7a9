//! The driver functions.
//!
//! Each is defined once, by [`driver_functions`], which makes two of it: the exported `cu*`
//! function, and an internal one that it forwards to. Nothing inside the library calls or takes the address of an
//! exported one: a real libcuda that is linked into the program would take its place.

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
pub(crate) mod stream;
pub(crate) mod transfer;
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
/// knows the [`Call`](crate::call::Call), the parameters as in `cuda.h`, and the body.
macro_rules! driver_functions {
    ($(fn $name:ident [$id:literal, $asks:expr] ($call:pat $(, $argument:ident: $type:ty)* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                // SAFETY: the caller's promises are passed on.
                unsafe { internal::$name($($argument),*) }
            }
        )*

        #[allow(non_snake_case)]
        mod internal {
            use super::*;
            $(
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
                        |$call: &crate::call::Call<'_>| -> Result<(), u32> { $body },
                    )
                }
            )*
        }

        /// The functions of this file, for `cuGetProcAddress`.
        pub(crate) static SIMULATED: &[crate::driver::Named] = &[
            $(crate::driver::Named {
                name: stringify!($name),
                address: internal::$name as *const (),
                id: $id,
            },)*
        ];
    };
}
pub(crate) use driver_functions;

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
    ]
    .into_iter()
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
