use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi;

mod sealed {
    pub trait Sealed {}
}

/// A number that kernels take as an argument or keep in device memory. Every pattern of bits is a value.
pub trait Element: sealed::Sealed + Copy + 'static {}

macro_rules! elements {
    ($($type:ty),*) => { $(impl sealed::Sealed for $type {} impl Element for $type {})* };
}
elements!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64);

/// A part of device memory: an address and a number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// The device address, as the kernel argument has it.
    pub address: u64,
    /// Elements (of the type with which it is read or written).
    pub length: usize,
}

impl DeviceRange {
    /// `length` elements from `address` on.
    pub fn new(address: u64, length: usize) -> Self {
        Self { address, length }
    }
}

/// Why a kernel's host function failed. The launch then fails on the device, as CUDA has it:
/// `CUDA_ERROR_ILLEGAL_ADDRESS` for [`KernelError::IllegalAddress`], `CUDA_ERROR_LAUNCH_FAILED` for the rest and for a panic.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The range is not inside one live allocation, or not aligned.
    #[error(
        "{bytes} bytes at device address {address:#x} are not inside one live, aligned allocation"
    )]
    IllegalAddress {
        /// Where.
        address: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// The ranges to write and to read overlap.
    #[error("the range to write at device address {address:#x} overlaps another range")]
    Overlap {
        /// The start of the range to write.
        address: u64,
    },
    /// The kernel has no such parameter, or it has another size.
    #[error("kernel parameter {index} is {} and not of {wanted} bytes", match found { Some(bytes) => format!("of {bytes} bytes"), None => "absent".to_owned() })]
    Argument {
        /// The parameter's index, from 0.
        index: usize,
        /// The size that the host function asked for.
        wanted: usize,
        /// The size by the module's text; `None` where there is no such parameter.
        found: Option<usize>,
    },
    /// The host function's own reason.
    #[error("{0}")]
    Failed(String),
}

/// What a kernel's host function returns.
pub type KernelResult = Result<(), KernelError>;

/// One launch of a kernel, as its host function sees it.
///
/// Device memory is host memory. All host functions, copies and sets run one after the other on
/// the device's one thread, so that no other access is under way while a host function looks.
pub struct Launch<'a> {
    raw: &'a abi::RawLaunch,
}

impl Launch<'_> {
    /// Blocks in x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.raw.grid
    }

    /// Threads of a block in x, y and z.
    pub fn block(&self) -> [u32; 3] {
        self.raw.block
    }

    /// Threads of the whole grid.
    pub fn threads(&self) -> u64 {
        self.raw
            .grid
            .iter()
            .chain(&self.raw.block)
            .map(|extent| u64::from(*extent))
            .product()
    }

    /// Dynamic shared memory of a block, in bytes.
    pub fn dynamic_shared_bytes(&self) -> u32 {
        self.raw.dynamic_shared_bytes
    }

    /// The stream's id, as CUPTI's records have it.
    pub fn stream_id(&self) -> u32 {
        self.raw.stream_id
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        // SAFETY: the interface gives a valid pointer and length for the time of the launch.
        let bytes = unsafe { std::slice::from_raw_parts(self.raw.name, self.raw.name_bytes) };
        std::str::from_utf8(bytes).unwrap_or("")
    }

    /// How many parameters the kernel has by the module's text.
    pub fn argument_count(&self) -> usize {
        self.raw.layout_count
    }

    /// The bytes of one parameter.
    ///
    /// # Errors
    ///
    /// [`KernelError::Argument`] when there is no such parameter.
    pub fn argument_bytes(&self, index: usize) -> Result<&[u8], KernelError> {
        // SAFETY: the interface gives valid pointers and lengths for the time of the launch.
        let (layout, bytes) = unsafe {
            (
                std::slice::from_raw_parts(self.raw.layout, self.raw.layout_count),
                std::slice::from_raw_parts(self.raw.parameters, self.raw.parameters_bytes),
            )
        };
        layout
            .get(index)
            .and_then(|parameter| {
                let offset = parameter.offset as usize;
                bytes.get(offset..offset.checked_add(parameter.size as usize)?)
            })
            .ok_or(KernelError::Argument {
                index,
                wanted: 0,
                found: None,
            })
    }

    /// One parameter as a number.
    ///
    /// # Errors
    ///
    /// [`KernelError::Argument`] when there is no such parameter, or when it has another size.
    pub fn argument<T: Element>(&self, index: usize) -> Result<T, KernelError> {
        let wanted = size_of::<T>();
        let bytes = self
            .argument_bytes(index)
            .map_err(|_| KernelError::Argument {
                index,
                wanted,
                found: None,
            })?;
        if bytes.len() != wanted {
            return Err(KernelError::Argument {
                index,
                wanted,
                found: Some(bytes.len()),
            });
        }
        // SAFETY: the bytes are as many as `T` has, and every pattern of bits is a `T` (sealed trait).
        Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Device memory, to read.
    ///
    /// # Errors
    ///
    /// [`KernelError::IllegalAddress`] when the range is not inside one live allocation.
    pub fn slice<T: Element>(&self, range: DeviceRange) -> Result<&[T], KernelError> {
        let pointer = self.check::<T>(range)?;
        // SAFETY: the range is inside a live allocation that is initialised (zeroed when allocated), aligned, and
        // nothing else runs on the device's thread; writes need `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts(pointer, range.length) })
    }

    /// Device memory, to write.
    ///
    /// # Errors
    ///
    /// [`KernelError::IllegalAddress`] when the range is not inside one live allocation.
    pub fn slice_mut<T: Element>(&mut self, range: DeviceRange) -> Result<&mut [T], KernelError> {
        let pointer = self.check::<T>(range)?;
        // SAFETY: as in `slice`; `&mut self` excludes every other slice of this launch.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, range.length) })
    }

    /// One range of device memory to write together with several to read.
    ///
    /// # Errors
    ///
    /// [`KernelError::IllegalAddress`] as above, and [`KernelError::Overlap`] when a range to
    /// read overlaps the range to write.
    pub fn write_and_read<W: Element, R: Element, const N: usize>(
        &mut self,
        write: DeviceRange,
        read: [DeviceRange; N],
    ) -> Result<(&mut [W], [&[R]; N]), KernelError> {
        let target = self.check::<W>(write)?;
        let mut sources: [&[R]; N] = [&[]; N];
        for (source, range) in sources.iter_mut().zip(read) {
            let pointer = self.check::<R>(range)?;
            let write_end = write.address + (write.length * size_of::<W>()) as u64;
            let read_end = range.address + (range.length * size_of::<R>()) as u64;
            if range.length > 0 && range.address < write_end && write.address < read_end {
                return Err(KernelError::Overlap {
                    address: write.address,
                });
            }
            // SAFETY: as in `slice`; it does not overlap the one range that is written.
            *source = unsafe { std::slice::from_raw_parts(pointer, range.length) };
        }
        // SAFETY: as in `slice_mut`; no source overlaps it.
        Ok((
            unsafe { std::slice::from_raw_parts_mut(target, write.length) },
            sources,
        ))
    }

    /// Sets the value of a graph's conditional handle, as `cudaGraphSetConditional` does in a kernel. The handle is what
    /// `cuGraphConditionalHandleCreate` gave, usually an argument of the kernel. False where there is no such handle.
    pub fn set_conditional(&self, handle: u64, value: u32) -> bool {
        (self.raw.set_conditional)(handle, value) == 1
    }

    fn check<T: Element>(&self, range: DeviceRange) -> Result<*mut T, KernelError> {
        let bytes = (range.length as u64).saturating_mul(size_of::<T>() as u64);
        if range.length == 0 {
            return Ok(std::ptr::NonNull::dangling().as_ptr());
        }
        let valid = range.address.is_multiple_of(align_of::<T>() as u64)
            && bytes <= isize::MAX as u64
            && (self.raw.device_range_is_valid)(range.address, bytes) == 1;
        if !valid {
            return Err(KernelError::IllegalAddress {
                address: range.address,
                bytes,
            });
        }
        Ok(std::ptr::with_exposed_provenance_mut(
            range.address as usize,
        ))
    }
}

/// The C function under which closures of type `F` are registered.
///
/// # Safety
///
/// `launch` must be valid for the call, and `user` a pointer from `Box::<F>::into_raw` that has not been
/// given to [`drop_closure`].
pub(crate) unsafe extern "C" fn call_closure<F>(
    launch: *const abi::RawLaunch,
    user: *mut c_void,
) -> i32
where
    F: Fn(&mut Launch<'_>) -> KernelResult + Send + Sync + 'static,
{
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by this function's own contract.
        let (raw, closure) = unsafe { (&*launch, &*user.cast::<F>()) };
        closure(&mut Launch { raw })
    }));
    match outcome {
        Ok(Ok(())) => abi::KERNEL_OK,
        Ok(Err(error)) => {
            eprintln!("lineage-sim: a kernel failed: {error}");
            match error {
                KernelError::IllegalAddress { .. } => abi::KERNEL_ILLEGAL_ADDRESS,
                _ => abi::KERNEL_FAILED,
            }
        }
        Err(_) => abi::KERNEL_FAILED,
    }
}

/// Frees a closure.
///
/// # Safety
///
/// `user` must come from `Box::<F>::into_raw` and not be used afterwards.
pub(crate) unsafe extern "C" fn drop_closure<F>(user: *mut c_void) {
    // SAFETY: by this function's own contract.
    let closure = unsafe { Box::from_raw(user.cast::<F>()) };
    // A panic of the closure's own destructor must not cross into the library.
    drop(catch_unwind(AssertUnwindSafe(move || drop(closure))));
}
