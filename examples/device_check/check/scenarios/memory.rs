//! Copies, sets, and memory of a pool. Each has a size of its own, by which its record is known.

use cudarc::driver::sys::CUdeviceptr;

use super::stage::{Stage, call};
use crate::check::failure::Failure;

pub(super) fn pageable_copies(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let mut host = vec![7_u8; 128 << 10];
    let (source, target) = (host.as_ptr().cast(), host.as_mut_ptr().cast());
    stage.begin()?;
    call!(cuMemcpyHtoDAsync_v2(stage.at(0), source, 1 << 10, stream))?;
    // More than what is staged at once, as the driver's reference says of 64 KiB.
    call!(cuMemcpyHtoDAsync_v2(stage.at(0), source, 128 << 10, stream))?;
    call!(cuMemcpyDtoHAsync_v2(target, stage.at(0), 2 << 10, stream))?;
    call!(cuStreamSynchronize(stream))?;
    call!(cuMemcpyHtoD_v2(stage.at(0), source, 3 << 10))?;
    call!(cuMemcpyDtoH_v2(target, stage.at(0), 4 << 10))
}

pub(super) fn pinned_copies(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let (_, pinned) = stage.memory();
    let half = stage.at(512 << 10);
    stage.begin()?;
    call!(cuMemcpyHtoDAsync_v2(stage.at(0), pinned, 1 << 10, stream))?;
    call!(cuMemcpyDtoDAsync_v2(half, stage.at(0), 2 << 10, stream))?;
    call!(cuMemcpyDtoHAsync_v2(pinned, half, 3 << 10, stream))?;
    call!(cuStreamSynchronize(stream))
}

pub(super) fn sets(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    stage.begin()?;
    call!(cuMemsetD8Async(stage.at(0), 3, 1 << 10, stream))?;
    call!(cuMemsetD32Async(stage.at(0), 5, 512, stream))?;
    call!(cuMemsetD8_v2(stage.at(0), 0, 3 << 10))
}

pub(super) fn pooled(stage: &Stage) -> Result<(), Failure> {
    const BYTES: usize = 64 << 10;
    let (first, second) = (stage.free_stream()?, stage.free_stream()?);
    let event = stage.event()?;
    stage.begin()?;
    let mut memory: CUdeviceptr = 0;
    call!(cuMemAllocAsync(&mut memory, BYTES, first))?;
    call!(cuMemsetD8Async(memory, 1, 1 << 10, first))?;
    call!(cuMemFreeAsync(memory, first))?;
    call!(cuEventRecord(event, first))?;
    call!(cuStreamWaitEvent(second, event, 0))?;
    call!(cuMemAllocAsync(&mut memory, BYTES, second))?;
    call!(cuMemsetD8Async(memory, 2, 2 << 10, second))?;
    call!(cuMemFreeAsync(memory, second))
}
