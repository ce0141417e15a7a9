//! Modules and functions.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::call::{Asks, Call};
use crate::clock::spin_ns;
use crate::config::model;
use crate::cupti::records::Overhead;
use crate::driver::{Out, Text, driver_functions};
use crate::handles::{Handle, handle};
use crate::kernels;
use crate::objects::{
    self, Context, FUNCTIONS, Function, MODULES, Module, ModuleName, current_context,
};
use crate::{ptx, result};

/// What binary images start with: ELF, and NVIDIA's fat binary.
const ELF: [u8; 4] = *b"\x7fELF";
const FAT_BINARY: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();

const MAX_THREADS: i32 = 1_024;
/// Shared memory of a block that needs no opt-in, and the most by opt-in.
const SHARED_BYTES: i32 = 49_152;
const SHARED_BYTES_OPT_IN: i32 = 232_448;

fn load(call: &Call<'_>, place: Out<Handle>, image: *const c_void) -> Result<(), u32> {
    place.check()?;
    let context = current_context()?;
    if image.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // Byte by byte, because a text may be shorter than a magic number.
    let magic = |magic: [u8; 4]| {
        magic.iter().enumerate().all(|(at, byte)| {
            // SAFETY: an image is a NUL-terminated text or longer than this; a mismatch ends the
            // reading.
            unsafe { image.cast::<u8>().add(at).read() == *byte }
        })
    };
    if magic(ELF) || magic(FAT_BINARY) {
        // The device runs host functions; machine code means nothing to it.
        return Err(result::INVALID_IMAGE);
    }
    // SAFETY: what is neither of them is a NUL-terminated text.
    let text = unsafe { std::ffi::CStr::from_ptr(image.cast()) };
    load_text(call, place, &context, text.to_bytes())
}

fn load_text(
    call: &Call<'_>,
    place: Out<Handle>,
    context: &Context,
    text: &[u8],
) -> Result<(), u32> {
    let text = std::str::from_utf8(text).map_err(|_| result::INVALID_IMAGE)?;
    let entries = ptx::parse(text).map_err(|_| result::INVALID_PTX)?;
    let compiling_ns = model().compile_ns_per_kib * (text.len() as u64).div_ceil(1_024);
    if compiling_ns > 0 {
        let overhead = Overhead::begin();
        spin_ns(compiling_ns);
        if let Some(overhead) = overhead {
            overhead.compiler(call.thread, call.device_correlation_id());
        }
    }
    if model().module_loading_ns > 0 {
        spin_ns(model().module_loading_ns);
    }
    let number = MODULES.reserve();
    let mut functions = Vec::with_capacity(entries.len());
    for entry in entries {
        let function = Function {
            module: number,
            name: kernels::intern(&entry.name),
            module_name: ModuleName::new(&entry.name).ok_or(result::INVALID_PTX)?,
            parameters: entry.parameters.into(),
            parameter_bytes: entry.bytes,
            max_dynamic_shared_bytes: AtomicI32::new(SHARED_BYTES),
            is_loaded: AtomicBool::new(false),
        };
        functions.push((FUNCTIONS.reserve(), Arc::new(function)));
    }
    for (number, function) in &functions {
        FUNCTIONS.insert(*number, function.clone());
    }
    MODULES.insert(
        number,
        Arc::new(Module {
            context: context.number,
            functions,
        }),
    );
    place.put(handle(number))
}

fn function(of: Handle) -> Result<Arc<Function>, u32> {
    FUNCTIONS.get(of).ok_or(result::INVALID_HANDLE)
}

/// Blocks of a multiprocessor: as threads and shared memory allow.
fn blocks_per_multiprocessor(threads: c_int, shared_bytes: usize) -> Result<c_int, u32> {
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(result::INVALID_VALUE);
    }
    let by_threads = 2_048 / threads;
    let by_shared = match shared_bytes {
        0 => 32,
        bytes => c_int::try_from(233_472 / (bytes + 1_024)).unwrap_or(0),
    };
    Ok(by_threads.min(by_shared).min(32))
}

driver_functions! {
    fn cuModuleLoad [18, Asks::Nothing] (call, module: Out<Handle>, file: Text) {
        module.check()?;
        let context = current_context()?;
        let path = file.get()?.to_str().map_err(|_| result::FILE_NOT_FOUND)?;
        let bytes = std::fs::read(path).map_err(|_| result::FILE_NOT_FOUND)?;
        if bytes.starts_with(&ELF) || bytes.starts_with(&FAT_BINARY) {
            return Err(result::INVALID_IMAGE);
        }
        load_text(call, module, &context, &bytes)
    }

    fn cuModuleLoadData [19, Asks::Nothing] (call, module: Out<Handle>, image: *const c_void) {
        load(call, module, image)
    }

    fn cuModuleLoadDataEx [20, Asks::Nothing] (call, module: Out<Handle>, image: *const c_void, _count: c_uint, _options: *mut c_uint, _values: *mut *mut c_void) {
        load(call, module, image)
    }

    fn cuModuleUnload [22, Asks::Nothing] (_, module: Handle) {
        current_context()?;
        let module = MODULES.remove(module).ok_or(result::INVALID_HANDLE)?;
        objects::unload_functions(&module);
        Ok(())
    }

    fn cuModuleGetFunction [23, Asks::Nothing] (_, function: Out<Handle>, module: Handle, name: Text) {
        current_context()?;
        let module = MODULES.get(module).ok_or(result::INVALID_HANDLE)?;
        let name = name.get()?.to_bytes();
        let found = module.functions.iter().find(|(_, function)| function.name.as_bytes() == name);
        function.put(handle(found.ok_or(result::NOT_FOUND)?.0))
    }

    fn cuModuleGetLoadingMode [673, Asks::Nothing] (_, mode: Out<u32>) {
        // CU_MODULE_EAGER_LOADING
        mode.put(1)
    }

    fn cuFuncGetAttribute [85, Asks::Nothing] (_, value: Out<c_int>, attribute: u32, of: Handle) {
        let function = function(of)?;
        value.put(match attribute {
            0 => MAX_THREADS,
            // Static shared, constant and local memory: not read from the text.
            1..=3 => 0,
            // Registers, PTX and binary version.
            4 => kernels::registers_per_thread(kernels::find(function.name).as_deref()) as c_int,
            5 | 6 => 90,
            8 => function.max_dynamic_shared_bytes.load(Ordering::Relaxed),
            7 | 9..=15 => 0,
            _ => return Err(result::INVALID_VALUE),
        })
    }

    fn cuFuncSetAttribute [481, Asks::Nothing] (_, of: Handle, attribute: u32, value: c_int) {
        let function = function(of)?;
        match attribute {
            8 if (0..=SHARED_BYTES_OPT_IN).contains(&value) => {
                function.max_dynamic_shared_bytes.store(value, Ordering::Relaxed);
                Ok(())
            }
            // The preferred carveout is a hint.
            9 => Ok(()),
            _ => Err(result::INVALID_VALUE),
        }
    }

    fn cuFuncSetCacheConfig [86, Asks::Nothing] (_, of: Handle, config: u32) {
        function(of)?;
        if config > 3 { Err(result::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuFuncGetName [718, Asks::Nothing] (_, name: Out<*const c_char>, of: Handle) {
        name.put(function(of)?.module_name.pointer())
    }

    fn cuFuncGetModule [566, Asks::Nothing] (_, module: Out<Handle>, of: Handle) {
        module.put(handle(function(of)?.module))
    }

    fn cuFuncGetParamInfo [733, Asks::Nothing] (_, of: Handle, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        let function = function(of)?;
        let parameter = function.parameters.get(index).ok_or(result::INVALID_VALUE)?;
        offset.put(parameter.offset as usize)?;
        bytes.put_if_wanted(parameter.size as usize);
        Ok(())
    }

    fn cuFuncIsLoaded [741, Asks::Nothing] (_, state: Out<u32>, of: Handle) {
        function(of)?;
        // CU_FUNCTION_LOADING_STATE_LOADED
        state.put(1)
    }

    fn cuFuncLoad [742, Asks::Nothing] (_, of: Handle) {
        function(of).map(|_| ())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor [374, Asks::Nothing] (_, blocks: Out<c_int>, of: Handle, threads: c_int, shared_bytes: usize) {
        function(of)?;
        blocks.put(blocks_per_multiprocessor(threads, shared_bytes)?)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags [451, Asks::Nothing] (_, blocks: Out<c_int>, of: Handle, threads: c_int, shared_bytes: usize, _flags: c_uint) {
        function(of)?;
        blocks.put(blocks_per_multiprocessor(threads, shared_bytes)?)
    }

    fn cuOccupancyMaxPotentialBlockSize [384, Asks::Nothing] (_, grid: Out<c_int>, block: Out<c_int>, of: Handle, _shared_of_block: *mut c_void, shared_bytes: usize, limit: c_int) {
        potential_block_size(grid, block, of, shared_bytes, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags [452, Asks::Nothing] (_, grid: Out<c_int>, block: Out<c_int>, of: Handle, _shared_of_block: *mut c_void, shared_bytes: usize, limit: c_int, _flags: c_uint) {
        potential_block_size(grid, block, of, shared_bytes, limit)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock [543, Asks::Nothing] (_, bytes: Out<usize>, of: Handle, blocks: c_int, threads: c_int) {
        function(of)?;
        let blocks = usize::try_from(blocks).ok().filter(|blocks| *blocks > 0).ok_or(result::INVALID_VALUE)?;
        blocks_per_multiprocessor(threads, 0)?;
        bytes.put((233_472 / blocks).saturating_sub(1_024).min(SHARED_BYTES_OPT_IN as usize))
    }
}

fn potential_block_size(
    grid: Out<c_int>,
    block: Out<c_int>,
    of: Handle,
    shared_bytes: usize,
    limit: c_int,
) -> Result<(), u32> {
    function(of)?;
    let threads = if limit == 0 {
        MAX_THREADS
    } else {
        limit.min(MAX_THREADS)
    };
    grid.put(132 * blocks_per_multiprocessor(threads, shared_bytes)?.max(1))?;
    block.put(threads)
}
