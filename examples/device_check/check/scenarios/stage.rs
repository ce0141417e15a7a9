//! Where a scenario runs: CUPTI with everything on that lineage could read, streams, launches, and what was recorded.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::time::Duration;

use cudarc::driver::sys;
use lineage_cupti::sys::codes::kind;

use super::fields::{CUDA_EVENT, GRAPH_HOST_NODE, HOST_LAUNCH, Raw, SYNCHRONIZATION};
use super::told::Recorded;
use crate::check::cupti::{Client, Setup};
use crate::check::failure::Failure;
use crate::check::program::{self, Program, SPIN_NS};
use crate::check::questions::Arm;

/// The external id under which a scenario runs.
const ID: u64 = 0x11_0000_0001;
/// Records are all there when none came for so long, twice.
const QUIET: Duration = Duration::from_millis(20);

/// Calls a driver function, and names it where it fails.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: handles of this scenario, which nothing destroys, and places that live during the call.
        let code = unsafe { cudarc::driver::sys::$function($($argument),*) };
        $crate::check::program::driver(stringify!($function), code.result())
    }};
}
pub(super) use call;

/// The two kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Does nothing.
    Tick,
    /// Runs for [`SPIN_NS`], long enough that what may run beside it does.
    Spin,
}

pub struct Stage {
    client: Client,
    program: Program,
}

impl Stage {
    /// Sets CUPTI and CUDA up, and runs both kernels once, so that neither is loaded in a scenario.
    pub fn open(arm: &Arm) -> Result<Self, Failure> {
        let (client, program) = arm.open(&Setup::default())?;
        client.enable_all()?;
        client.enable(&[SYNCHRONIZATION, CUDA_EVENT])?;
        for newer in [HOST_LAUNCH, GRAPH_HOST_NODE] {
            // Since CUDA 13.1; an older one answers that there is no such kind, and has no such records.
            // SAFETY: takes a number.
            let _ = unsafe { (client.functions().activity_enable)(newer) };
        }
        let stage = Self { client, program };
        let stream = stage.stream(sys::CUstream_flags::CU_STREAM_NON_BLOCKING)?;
        stage.launch(Kernel::Tick, stream, 1)?;
        stage.launch(Kernel::Spin, stream, 1)?;
        stage.program.set(64)?;
        Ok(stage)
    }

    /// The subscriber.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// What is called from here on belongs to the scenario; what was before, to its preparation.
    pub fn begin(&self) -> Result<(), Failure> {
        call!(cuCtxSynchronize())?;
        self.recorded()?;
        self.client.push(ID)
    }

    /// Waits for all of it, and takes what was recorded.
    pub fn end(self) -> Result<Recorded, Failure> {
        call!(cuCtxSynchronize())?;
        if self.client.pop() != Ok(ID) {
            return Err(Failure::unexpected("the id that was pushed is not on top"));
        }
        let records = self.recorded()?;
        let name_of = |domain, cbid| {
            let name = self.client.callback_name(domain, cbid);
            name.unwrap_or_else(|| format!("function {cbid}"))
        };
        Ok(Recorded::new(records, ID, name_of))
    }

    fn recorded(&self) -> Result<Vec<Raw>, Failure> {
        let records = RefCell::new(Vec::new());
        let version = self.client.version();
        let mut quiet = 0;
        while quiet < 2 {
            let before = records.borrow().len();
            self.client.take_each(|_, bytes| {
                let is_kernel = lineage_cupti::sys::layout::Record::new(bytes).kind()
                    == Some(kind::CONCURRENT_KERNEL);
                let name = is_kernel.then(|| kernel_name(bytes)).flatten();
                records.borrow_mut().push(Raw::new(bytes, version, name));
            })?;
            if records.borrow().len() == before {
                quiet += 1;
                std::thread::sleep(QUIET);
            } else {
                quiet = 0;
            }
        }
        Ok(records.into_inner())
    }

    pub fn stream(&self, flags: sys::CUstream_flags) -> Result<sys::CUstream, Failure> {
        let mut stream = std::ptr::null_mut();
        call!(cuStreamCreate(&mut stream, flags as u32))?;
        Ok(stream)
    }

    /// A stream of its own, that has nothing to do with the default ones.
    pub fn free_stream(&self) -> Result<sys::CUstream, Failure> {
        self.stream(sys::CUstream_flags::CU_STREAM_NON_BLOCKING)
    }

    pub fn event(&self) -> Result<sys::CUevent, Failure> {
        let mut event = std::ptr::null_mut();
        call!(cuEventCreate(&mut event, 0))?;
        Ok(event)
    }

    /// Launches a kernel with so many blocks, by which its record is known.
    pub fn launch(
        &self,
        kernel: Kernel,
        stream: sys::CUstream,
        blocks: u32,
    ) -> Result<(), Failure> {
        let mut duration = SPIN_NS;
        let mut parameters = [(&raw mut duration).cast::<c_void>()];
        let (function, none) = (self.function(kernel), std::ptr::null_mut());
        call!(cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            1,
            1,
            1,
            0,
            stream,
            parameters.as_mut_ptr(),
            none,
        ))
    }

    pub fn function(&self, kernel: Kernel) -> sys::CUfunction {
        let [tick, spin] = self.program.kernels();
        match kernel {
            Kernel::Tick => tick,
            Kernel::Spin => spin,
        }
    }

    /// [`BYTES`](program::BYTES) of device memory, and as many of pinned host memory.
    pub fn memory(&self) -> (sys::CUdeviceptr, *mut c_void) {
        let (device, pinned) = self.program.memory();
        (device, pinned.cast())
    }

    /// The device address so many bytes into the memory; for one that is not there, its beginning.
    pub fn at(&self, offset: usize) -> sys::CUdeviceptr {
        let offset = if offset < program::BYTES { offset } else { 0 };
        self.program.memory().0 + offset as sys::CUdeviceptr
    }
}

/// The name in a kernel's record, which its module keeps.
fn kernel_name(bytes: &[u8]) -> Option<String> {
    let record = lineage_cupti::sys::layout::Record::new(bytes);
    let address = record.u64(lineage_cupti::sys::layout::kernel::NAME)?;
    let name: *const c_char = std::ptr::with_exposed_provenance(usize::try_from(address).ok()?);
    if name.is_null() {
        return None;
    }
    // SAFETY: CUPTI keeps the text, which ends with a zero byte, while the module is loaded: for good.
    Some(
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
    )
}
