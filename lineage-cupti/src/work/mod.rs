//! Which functions of CUDA ask for GPU work, and how many operations a call of each has.
//!
//! This is the LAUNCH set: the only functions whose calls are traced. Each variant for per-thread
//! streams (`_ptsz`, `_ptds`) has an id of its own.
//!
//! | what | operations |
//! | --- | --- |
//! | a kernel launch | one |
//! | a launch on several devices, a graph launch | one or more |
//! | a copy whose direction is known | one; none if it is empty |
//! | a copy whose direction is not (it may stay on the host), a batch of copies | any |
//! | a set | one; none if it is empty |
//!
//! Whether a copy or set is empty is known only in the callback, which sees the parameters. The
//! activity record of the call has none, so a set counts as "any" there.

use std::ffi::c_void;

use lineage_core::observation::{ApiDomain, OperationsDue};

mod driver;
mod runtime;

/// A function that asks for GPU work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchFunction {
    /// CUPTI's callback id in the function's domain.
    pub cbid: u32,
    /// Its name, as `cuptiGetCallbackName` gives it.
    pub name: &'static str,
    /// What a call asks for.
    pub work: Work,
}

impl LaunchFunction {
    const fn new(cbid: u32, name: &'static str, work: Work) -> Self {
        Self { cbid, name, work }
    }
}

/// What a call of a function asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// One operation.
    One,
    /// One or more operations.
    Many,
    /// None, one or more.
    Any,
    /// A copy; none if it is empty.
    Copy(Extent),
    /// A set; none if it is empty.
    Set(Extent),
}

/// Where in a function's parameters its extent is: the offset of a `size_t` in the function's
/// struct of `generated_cuda_meta.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// One size.
    At(usize),
    /// Width and height.
    Both(usize, usize),
}

impl Extent {
    /// Whether these parameters say that there is nothing to do.
    ///
    /// # Safety
    /// `params` are the parameters of a call of the function this extent belongs to, and live.
    unsafe fn is_empty(self, params: *const c_void) -> bool {
        let size = |offset: usize| {
            // SAFETY: the caller vouches for the struct; the layout test proves that a `size_t` is
            // at this offset of it. Unaligned reads ask nothing of its alignment.
            unsafe {
                params
                    .cast::<u8>()
                    .add(offset)
                    .cast::<usize>()
                    .read_unaligned()
            }
        };
        match self {
            Self::At(offset) => size(offset) == 0,
            Self::Both(width, height) => size(width) == 0 || size(height) == 0,
        }
    }
}

impl Work {
    /// Operations due, as far as the activity record of the call tells.
    pub const fn due_by_record(self) -> OperationsDue {
        match self {
            Self::One | Self::Copy(_) => OperationsDue::One,
            Self::Many => OperationsDue::Many,
            Self::Any | Self::Set(_) => OperationsDue::Any,
        }
    }

    /// Operations due, by the parameters of the call; null parameters tell nothing.
    ///
    /// # Safety
    /// `params` are null, or the parameters of a call of the function this work belongs to, and
    /// live.
    pub unsafe fn due_by_parameters(self, params: *const c_void) -> OperationsDue {
        match self {
            Self::Copy(extent) | Self::Set(extent) if !params.is_null() => {
                // SAFETY: not null, so by the caller's word the parameters of this function.
                if unsafe { extent.is_empty(params) } {
                    OperationsDue::None
                } else {
                    OperationsDue::One
                }
            }
            _ => self.due_by_record(),
        }
    }
}

/// All functions of this domain that ask for GPU work, in order of their ids.
pub const fn functions(domain: ApiDomain) -> &'static [LaunchFunction] {
    match domain {
        ApiDomain::Driver => driver::FUNCTIONS,
        ApiDomain::Runtime => runtime::FUNCTIONS,
        _ => &[],
    }
}

/// The function of this id; `None` if it does not ask for GPU work, or came after CUDA 13.5.
pub fn function(domain: ApiDomain, cbid: u32) -> Option<&'static LaunchFunction> {
    let index = match domain {
        ApiDomain::Driver => &DRIVER_INDEX,
        ApiDomain::Runtime => &RUNTIME_INDEX,
        _ => return None,
    };
    let place = *index.get(cbid as usize)?;
    // 0 means "not in the list".
    functions(domain).get(usize::from(place).checked_sub(1)?)
}

const INDEX_SIZE: usize = 1024;
static DRIVER_INDEX: [u8; INDEX_SIZE] = index(driver::FUNCTIONS);
static RUNTIME_INDEX: [u8; INDEX_SIZE] = index(runtime::FUNCTIONS);

/// From an id to its place in the list, counted from 1. Too long a list does not compile.
const fn index(functions: &[LaunchFunction]) -> [u8; INDEX_SIZE] {
    assert!(functions.len() < u8::MAX as usize);
    let mut index = [0; INDEX_SIZE];
    let mut place = 0;
    while place < functions.len() {
        index[functions[place].cbid as usize] = place as u8 + 1;
        place += 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_id_and_nothing_else_is() {
        for domain in [ApiDomain::Driver, ApiDomain::Runtime] {
            let ids: Vec<u32> = functions(domain).iter().map(|found| found.cbid).collect();
            assert!(
                ids.is_sorted_by(|a, b| a < b),
                "{domain:?}: in order, once each"
            );
            for cbid in 0..2000 {
                let found = function(domain, cbid).map(|found| found.cbid);
                assert_eq!(
                    found,
                    ids.contains(&cbid).then_some(cbid),
                    "{domain:?} {cbid}"
                );
            }
        }
    }

    #[test]
    fn launches_of_kernels_have_one_operation_and_those_of_graphs_many() {
        let due = |name: &str| {
            [ApiDomain::Driver, ApiDomain::Runtime]
                .iter()
                .flat_map(|&domain| functions(domain))
                .find(|function| function.name == name)
                .map(|function| function.work.due_by_record())
        };
        for name in [
            "cuLaunchKernel",
            "cuLaunchKernel_ptsz",
            "cuLaunchKernelEx",
            "cuLaunchKernelEx_ptsz",
            "cuLaunchCooperativeKernel",
            "cudaLaunchKernel_v7000",
            "cudaLaunchKernelExC_v11060",
            "__cudaLaunchKernel_v13000",
            "cuMemcpyHtoDAsync_v2",
            "cuMemcpyDtoH_v2",
        ] {
            assert_eq!(due(name), Some(OperationsDue::One), "{name}");
        }
        for name in [
            "cuGraphLaunch",
            "cuGraphLaunch_ptsz",
            "cudaGraphLaunch_v10000",
            "cuLaunchCooperativeKernelMultiDevice",
        ] {
            assert_eq!(due(name), Some(OperationsDue::Many), "{name}");
        }
        for name in [
            "cuMemcpy",
            "cuMemcpyBatchAsync",
            "cudaMemcpyAsync_v3020",
            "cuMemsetD8Async",
        ] {
            assert_eq!(due(name), Some(OperationsDue::Any), "{name}");
        }
        for name in [
            "cuMemAllocAsync",
            "cuStreamSynchronize",
            "cudaEventRecord_v3020",
        ] {
            assert_eq!(due(name), None, "{name} asks for no work");
        }
    }

    #[test]
    fn an_empty_copy_or_set_has_no_operation_by_its_parameters() {
        // cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount).
        let copy = function(ApiDomain::Driver, 276).expect("known").work;
        // cuMemsetD2D8_v2(dstDevice, dstPitch, uc, Width, Height).
        let set = function(ApiDomain::Driver, 252).expect("known").work;
        let due = |work: Work, params: &[usize]| {
            // SAFETY: the parameters are those of the function, all of them 8 bytes wide.
            unsafe { work.due_by_parameters(params.as_ptr().cast()) }
        };
        assert_eq!(due(copy, &[0x1000, 0x2000, 64]), OperationsDue::One);
        assert_eq!(due(copy, &[0x1000, 0x2000, 0]), OperationsDue::None);
        assert_eq!(due(set, &[0x1000, 64, 0, 8, 8]), OperationsDue::One);
        assert_eq!(due(set, &[0x1000, 64, 0, 0, 8]), OperationsDue::None);
        assert_eq!(due(set, &[0x1000, 64, 0, 8, 0]), OperationsDue::None);
        // SAFETY: null parameters are allowed.
        let unknown = unsafe { set.due_by_parameters(std::ptr::null()) };
        assert_eq!(unknown, OperationsDue::Any);
    }
}
