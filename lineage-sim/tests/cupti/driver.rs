//! A small program against the driver's C functions, opened by name as any program does.

use std::ffi::{CStr, c_void};

use libloading::os::unix::Library;

pub type Handle = *mut c_void;

/// Calls a C function that returns a `u32` code, by name.
#[macro_export]
macro_rules! call {
    ($library:expr, $name:literal ( $($argument:expr => $type:ty),* $(,)? )) => {{
        // SAFETY: the type is that of the header.
        unsafe {
            let function = $library
                .get::<unsafe extern "C" fn($($type),*) -> u32>(concat!($name, "\0").as_bytes())
                .expect($name);
            function($($argument),*)
        }
    }};
}

pub const PTX: &CStr = c"
.version 8.0
.target sm_90
.address_size 64
.visible .entry work(.param .u64 label) { ret; }
.visible .entry other(.param .u32 a, .param .u64 label, .param .u8 c) { ret; }
";

pub struct Driver {
    pub library: Library,
    pub context: Handle,
    pub module: Handle,
    pub function: Handle,
    pub stream: Handle,
}

// SAFETY: the driver's handles may be used on every thread.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

impl Driver {
    pub fn open() -> Self {
        // SAFETY: the simulated library, loaded before.
        let library = unsafe { Library::new("libcuda.so") }.expect("the simulator is loaded");
        let mut driver = Self {
            library,
            context: std::ptr::null_mut(),
            module: std::ptr::null_mut(),
            function: std::ptr::null_mut(),
            stream: std::ptr::null_mut(),
        };
        assert_eq!(call!(driver.library, "cuInit"(0 => u32)), 0);
        let retained = call!(driver.library, "cuDevicePrimaryCtxRetain"(&mut driver.context => *mut Handle, 0 => i32));
        assert_eq!(retained, 0);
        driver.bind();
        let module = call!(driver.library, "cuModuleLoadData"(&mut driver.module => *mut Handle, PTX.as_ptr().cast() => *const c_void));
        assert_eq!(module, 0);
        driver.function = driver.get_function(c"work");
        driver.stream = driver.new_stream();
        driver
    }

    /// Makes the context current on this thread.
    pub fn bind(&self) {
        assert_eq!(
            call!(self.library, "cuCtxSetCurrent"(self.context => Handle)),
            0
        );
    }

    pub fn get_function(&self, name: &CStr) -> Handle {
        let mut function = std::ptr::null_mut();
        let found = call!(self.library, "cuModuleGetFunction"(&mut function => *mut Handle, self.module => Handle, name.as_ptr() => *const std::ffi::c_char));
        assert_eq!(found, 0);
        function
    }

    /// A stream of its own order (non-blocking).
    pub fn new_stream(&self) -> Handle {
        let mut stream = std::ptr::null_mut();
        assert_eq!(
            call!(self.library, "cuStreamCreate"(&mut stream => *mut Handle, 1 => u32)),
            0
        );
        stream
    }

    pub fn launch(&self, label: u64) {
        assert_eq!(self.launch_in(self.stream, label), 0);
    }

    pub fn launch_in(&self, stream: Handle, label: u64) -> u32 {
        let mut label = label;
        let mut parameters = [(&raw mut label).cast::<c_void>()];
        self.launch_function(self.function, stream, &mut parameters)
    }

    pub fn launch_function(
        &self,
        function: Handle,
        stream: Handle,
        parameters: &mut [*mut c_void],
    ) -> u32 {
        call!(self.library, "cuLaunchKernel"(
            function => Handle, 2 => u32, 3 => u32, 1 => u32, 32 => u32, 2 => u32, 1 => u32, 64 => u32,
            stream => Handle, parameters.as_mut_ptr() => *mut *mut c_void, std::ptr::null_mut() => *mut *mut c_void,
        ))
    }

    pub fn synchronize(&self) {
        assert_eq!(
            call!(self.library, "cuStreamSynchronize"(self.stream => Handle)),
            0
        );
    }

    pub fn allocate(&self, bytes: usize) -> u64 {
        let mut pointer = 0;
        assert_eq!(
            call!(self.library, "cuMemAlloc_v2"(&mut pointer => *mut u64, bytes => usize)),
            0
        );
        pointer
    }

    pub fn copy_to_device(&self, to: u64, bytes: &[u8]) {
        let code = call!(self.library, "cuMemcpyHtoDAsync_v2"(to => u64, bytes.as_ptr() => *const u8, bytes.len() => usize, self.stream => Handle));
        assert_eq!(code, 0);
    }

    pub fn copy_to_host(&self, from: u64, bytes: &mut [u8]) {
        let code = call!(self.library, "cuMemcpyDtoHAsync_v2"(bytes.as_mut_ptr() => *mut u8, from => u64, bytes.len() => usize, self.stream => Handle));
        assert_eq!(code, 0);
    }
}
