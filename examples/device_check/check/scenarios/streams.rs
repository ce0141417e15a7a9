//! Kernels in streams, and what orders them.

use std::ffi::c_void;

use cudarc::driver::sys::{
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig, CUstream,
    CUstream_flags, CUstreamWaitValue_flags, CUstreamWriteValue_flags,
};

use super::stage::{Kernel, Stage, call};
use crate::check::failure::Failure;
use crate::check::program::SPIN_NS;

/// `CU_STREAM_LEGACY` of `cuda.h`.
const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD` of `cuda.h`.
const PER_THREAD: usize = 2;

/// One of the two default streams.
fn default_stream(number: usize) -> CUstream {
    std::ptr::without_provenance_mut(number)
}

pub(super) fn kernel(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    stage.begin()?;
    stage.launch(Kernel::Tick, stream, 1)
}

pub(super) fn back_to_back(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    stage.begin()?;
    (1..=3).try_for_each(|blocks| stage.launch(Kernel::Tick, stream, blocks))
}

pub(super) fn two_streams(stage: &Stage) -> Result<(), Failure> {
    let (first, second) = (stage.free_stream()?, stage.free_stream()?);
    stage.begin()?;
    stage.launch(Kernel::Spin, first, 1)?;
    stage.launch(Kernel::Spin, second, 2)
}

pub(super) fn two_streams_with_an_event(stage: &Stage) -> Result<(), Failure> {
    let (first, second) = (stage.free_stream()?, stage.free_stream()?);
    let event = stage.event()?;
    stage.begin()?;
    stage.launch(Kernel::Spin, first, 1)?;
    call!(cuEventRecord(event, first))?;
    call!(cuStreamWaitEvent(second, event, 0))?;
    stage.launch(Kernel::Tick, second, 2)
}

pub(super) fn legacy_default_stream(stage: &Stage) -> Result<(), Failure> {
    let blocking = stage.stream(CUstream_flags::CU_STREAM_DEFAULT)?;
    let free = stage.free_stream()?;
    stage.begin()?;
    stage.launch(Kernel::Spin, blocking, 1)?;
    stage.launch(Kernel::Tick, free, 2)?;
    stage.launch(Kernel::Tick, default_stream(LEGACY), 3)?;
    stage.launch(Kernel::Tick, blocking, 4)
}

pub(super) fn per_thread_default_stream(stage: &Stage) -> Result<(), Failure> {
    let blocking = stage.stream(CUstream_flags::CU_STREAM_DEFAULT)?;
    stage.begin()?;
    stage.launch(Kernel::Spin, blocking, 1)?;
    stage.launch(Kernel::Tick, default_stream(PER_THREAD), 2)
}

pub(super) fn events(stage: &Stage) -> Result<(), Failure> {
    let (stream, other) = (stage.free_stream()?, stage.free_stream()?);
    let (before, behind) = (stage.event()?, stage.event()?);
    stage.begin()?;
    call!(cuEventRecord(before, stream))?;
    stage.launch(Kernel::Tick, stream, 1)?;
    call!(cuEventRecord(behind, stream))?;
    call!(cuStreamWaitEvent(other, behind, 0))?;
    stage.launch(Kernel::Tick, other, 2)?;
    call!(cuEventSynchronize(behind))?;
    // The same event once more: its records tell the two recordings apart.
    call!(cuEventRecord(behind, other))?;
    call!(cuEventSynchronize(behind))?;
    call!(cuStreamSynchronize(stream))
}

pub(super) fn host_function(stage: &Stage) -> Result<(), Failure> {
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    let stream = stage.free_stream()?;
    stage.begin()?;
    stage.launch(Kernel::Tick, stream, 1)?;
    call!(cuLaunchHostFunc(
        stream,
        Some(nothing),
        std::ptr::null_mut()
    ))?;
    stage.launch(Kernel::Tick, stream, 2)
}

pub(super) fn wait_value(stage: &Stage) -> Result<(), Failure> {
    let (waiting, writing) = (stage.free_stream()?, stage.free_stream()?);
    let value = stage.at(0);
    call!(cuMemsetD8_v2(value, 0, 8))?;
    let at_least = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
    let plainly = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32;
    stage.begin()?;
    call!(cuStreamWaitValue64_v2(waiting, value, 1, at_least))?;
    stage.launch(Kernel::Tick, waiting, 2)?;
    stage.launch(Kernel::Spin, writing, 1)?;
    call!(cuStreamWriteValue64_v2(writing, value, 1, plainly))
}

/// The kernels trigger nothing, so that the second begins when the first has ended, whoever runs them.
pub(super) fn programmatic_launch(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { pad: [0; 64] },
    };
    attribute.value.programmaticStreamSerializationAllowed = 1;
    let config = CUlaunchConfig {
        gridDimX: 2,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: &raw mut attribute,
        numAttrs: 1,
    };
    let mut duration = SPIN_NS;
    let mut parameters = [(&raw mut duration).cast::<c_void>()];
    let (function, none) = (stage.function(Kernel::Tick), std::ptr::null_mut());
    stage.begin()?;
    stage.launch(Kernel::Spin, stream, 1)?;
    call!(cuLaunchKernelEx(
        &config,
        function,
        parameters.as_mut_ptr(),
        none
    ))
}
