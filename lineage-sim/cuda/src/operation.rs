//! Kernels, copies and sets: what the device does with them, and what is written down about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lineage_sim_model::Facts;

use crate::abi::{self, RawLaunch, RawOperation};
use crate::clock::now_ns;
use crate::config::{config, is_virtual};
use crate::cupti::records::DeviceRecord;
use crate::graph::launch;
use crate::kernels::Kernel;
use crate::memory;
use crate::objects::Function;
use crate::result;
use crate::submit::NodePlace;
use crate::truth;

/// Where a copy from the host reads.
pub(crate) enum HostSource {
    /// A copy that was made during the call, as the driver does with pageable memory.
    Staged(Box<[u8]>),
    /// Pinned memory, read when the copy runs.
    Pinned(u64),
}

/// Rows of a copy or a set in two dimensions; of one dimension, one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) count: u64,
    /// Bytes from one row's begin to the next one's.
    pub(crate) source_pitch: u64,
    pub(crate) target_pitch: u64,
}

impl Rows {
    pub(crate) const ONE: Self = Self {
        count: 1,
        source_pitch: 0,
        target_pitch: 0,
    };

    /// From the first byte to the last one, where all rows together have so many bytes.
    pub(crate) fn span(&self, bytes: u64, pitch: u64) -> u64 {
        let count = self.count.max(1);
        pitch
            .saturating_mul(count - 1)
            .saturating_add(bytes / count)
    }
}

pub(crate) enum Work {
    Kernel {
        function: Arc<Function>,
        kernel: Option<Arc<Kernel>>,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: u32,
        parameters: Box<[u8]>,
    },
    CopyHostToDevice {
        source: HostSource,
        to: u64,
        rows: Rows,
    },
    /// Pinned memory, or pageable memory whose owner waits in the call.
    CopyDeviceToHost {
        from: u64,
        to: u64,
        rows: Rows,
    },
    CopyDeviceToDevice {
        from: u64,
        to: u64,
        rows: Rows,
    },
    /// `value` is repeated in `width` bytes.
    Set {
        to: u64,
        value: u32,
        width: u8,
        rows: Rows,
    },
}

pub(crate) struct Operation {
    pub(crate) work: Work,
    pub(crate) bytes: u64,
    pub(crate) stream_id: u32,
    pub(crate) stream_error: Arc<AtomicU32>,
    pub(crate) record: Option<DeviceRecord>,
    pub(crate) asked: Asked,
    /// Read from what it did.
    pub(crate) label: Option<u64>,
    /// What it failed with; 0: it did not.
    pub(crate) result: u32,
}

/// What the truth says of an operation beside what the model knows of it.
pub(crate) struct Asked {
    pub(crate) ordinal: u64,
    pub(crate) call_ordinal: u64,
    pub(crate) call_start_ns: u64,
    /// `OPERATION_…` of the private interface.
    pub(crate) kind: u32,
    pub(crate) name: Option<&'static str>,
    pub(crate) thread_id: u32,
    pub(crate) thread_ordinal: u32,
    pub(crate) context_id: u32,
    pub(crate) correlation_id: u32,
    pub(crate) node: Option<NodePlace>,
}

impl Operation {
    /// Starts the work. Returns when it began, and how long it lasts (each of its blocks, where multiprocessors are modelled).
    pub(crate) fn begin(&mut self, facts: &Facts) -> (u64, u64) {
        let failed_before = self.stream_error.load(Ordering::Acquire);
        // A host function starts when it starts; everything else starts when it was due.
        let runs_host_function = matches!(&self.work, Work::Kernel { kernel: Some(kernel), .. } if kernel.function.is_some());
        let waits_for_it = runs_host_function && !is_virtual();
        let start_ns = if waits_for_it {
            now_ns().max(facts.start_ns)
        } else {
            facts.start_ns
        };
        if let Some(record) = &mut self.record {
            record.begin(start_ns, facts);
        }
        let outcome = match failed_before {
            0 => self.run(),
            error => Err(error),
        };
        let end_ns = match outcome {
            Ok(duration_ns) => {
                let end_ns = start_ns.saturating_add(duration_ns);
                if waits_for_it {
                    end_ns.max(now_ns())
                } else {
                    end_ns
                }
            }
            Err(error) => {
                self.result = error;
                // The first error sticks to the context.
                let _ = self.stream_error.compare_exchange(
                    0,
                    error,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                if is_virtual() {
                    start_ns
                } else {
                    now_ns().max(start_ns)
                }
            }
        };
        (start_ns, end_ns - start_ns)
    }

    /// Writes down that the work has ended.
    pub(crate) fn finish(self, facts: &Facts) {
        truth::push_operation(self.truth(facts));
        if let Some(record) = self.record {
            record.finish(facts.end_ns);
        }
    }

    fn truth(&self, facts: &Facts) -> RawOperation {
        let asked = &self.asked;
        let node = asked.node.unwrap_or_default();
        RawOperation {
            ordinal: asked.ordinal,
            call_ordinal: asked.call_ordinal,
            name: asked.name.map_or(std::ptr::null(), str::as_ptr),
            name_bytes: asked.name.map_or(0, str::len),
            label: self.label.unwrap_or(0),
            bytes: self.bytes,
            call_start_ns: asked.call_start_ns,
            start_ns: facts.start_ns,
            end_ns: facts.end_ns,
            kind: asked.kind,
            has_label: self.label.is_some().into(),
            thread_id: asked.thread_id,
            stream_id: self.stream_id,
            context_id: asked.context_id,
            correlation_id: asked.correlation_id,
            result: self.result,
            thread_ordinal: asked.thread_ordinal,
            device: facts.device,
            channel: facts.channel,
            last_dependency: facts.last_dependency as u32,
            limit: facts.limit as u32,
            queued_ns: facts.queued_ns,
            submitted_ns: facts.submitted_ns,
            dependencies_ns: facts.dependencies_ns,
            dependency_ordinal: facts.dependency_number,
            issued_ns: facts.issued_ns,
            channel_ordinal: facts.channel_number,
            resources_ns: facts.resources_ns,
            resource_ordinal: facts.resource_number,
            preempted_ns: facts.preempted_ns,
            waited_inside_ns: facts.waited_inside_ns,
            graph_id: node.graph_id,
            graph_launch: node.launch,
            graph_node_id: node.node_id,
            source_node_id: node.source_node_id,
            capture_call_ordinal: node.capture_call_ordinal,
            waits: facts.waits.shares(),
        }
    }

    /// Does the work; returns how long it lasts at least.
    fn run(&mut self) -> Result<u64, u32> {
        let bytes = self.bytes;
        match &self.work {
            Work::Kernel { kernel, .. } => {
                self.label = None;
                let Some(kernel) = kernel.clone() else {
                    return Ok(config().default_kernel_ns);
                };
                self.read_label(&kernel);
                self.run_host_function(&kernel)?;
                Ok(kernel.duration_ns())
            }
            Work::CopyHostToDevice { source, to, rows } => {
                let from = match source {
                    HostSource::Staged(staged) => staged.as_ptr().expose_provenance() as u64,
                    HostSource::Pinned(address) => *address,
                };
                let (to, rows) = (*to, *rows);
                self.copy(from, to, rows, &[(to, rows.target_pitch)])
            }
            Work::CopyDeviceToHost { from, to, rows } => {
                let (from, to, rows) = (*from, *to, *rows);
                self.copy(from, to, rows, &[(from, rows.source_pitch)])
            }
            Work::CopyDeviceToDevice { from, to, rows } => {
                let (from, to, rows) = (*from, *to, *rows);
                let device = [(from, rows.source_pitch), (to, rows.target_pitch)];
                self.copy(from, to, rows, &device)
            }
            Work::Set {
                to,
                value,
                width,
                rows,
            } => {
                if !memory::is_device_range(*to, rows.span(bytes, rows.target_pitch)) {
                    return Err(result::ILLEGAL_ADDRESS);
                }
                let pattern = value.to_le_bytes();
                let row_bytes = bytes / rows.count.max(1);
                for row in 0..rows.count {
                    let start = *to + row * rows.target_pitch;
                    let target = std::ptr::with_exposed_provenance_mut::<u8>(start as usize);
                    // SAFETY: the range is device memory, which only this thread touches.
                    let target =
                        unsafe { std::slice::from_raw_parts_mut(target, row_bytes as usize) };
                    if *width == 1 {
                        target.fill(pattern[0]);
                    } else {
                        for chunk in target.chunks_mut(usize::from(*width)) {
                            chunk.copy_from_slice(&pattern[..chunk.len()]);
                        }
                    }
                }
                Ok(transfer_ns(bytes))
            }
        }
    }

    /// Moves the bytes and reads the label from them. `device` are the places that must be device memory, and their pitches.
    fn copy(&mut self, from: u64, to: u64, rows: Rows, device: &[(u64, u64)]) -> Result<u64, u32> {
        let is_device = |(address, pitch): &(u64, u64)| {
            memory::is_device_range(*address, rows.span(self.bytes, *pitch))
        };
        if !device.iter().all(is_device) {
            return Err(result::ILLEGAL_ADDRESS);
        }
        let row_bytes = self.bytes / rows.count.max(1);
        for row in 0..rows.count {
            let source = (from + row * rows.source_pitch) as usize;
            let target = (to + row * rows.target_pitch) as usize;
            let source = std::ptr::with_exposed_provenance::<u8>(source);
            let target = std::ptr::with_exposed_provenance_mut::<u8>(target);
            // SAFETY: device ranges are checked; the host's range is a staged copy, or the program's
            // to keep valid until the copy is done, as the driver interface demands.
            unsafe { std::ptr::copy(source, target, row_bytes as usize) };
        }
        if row_bytes >= 8 {
            let target = std::ptr::with_exposed_provenance::<[u8; 8]>(to as usize);
            // SAFETY: as above; the target's first row now holds at least these bytes.
            let label = unsafe { target.read_unaligned() };
            self.label = Some(u64::from_le_bytes(label));
        }
        Ok(transfer_ns(self.bytes))
    }

    fn read_label(&mut self, kernel: &Kernel) {
        let Work::Kernel {
            function,
            parameters,
            ..
        } = &self.work
        else {
            return;
        };
        let Some(index) = kernel.label_argument else {
            return;
        };
        let label = function
            .parameters
            .get(index as usize)
            .and_then(|parameter| {
                let size = parameter.size as usize;
                let offset = parameter.offset as usize;
                let bytes = parameters.get(offset..offset + size)?;
                let mut number = [0; 8];
                number.get_mut(..size)?.copy_from_slice(bytes);
                Some(u64::from_le_bytes(number))
            });
        let label = match label {
            Some(address) if kernel.label_is_behind => memory::read_label(address),
            label => label,
        };
        self.label = label;
    }

    fn run_host_function(&self, kernel: &Kernel) -> Result<(), u32> {
        let Work::Kernel {
            function,
            grid,
            block,
            dynamic_shared_bytes,
            parameters,
            ..
        } = &self.work
        else {
            return Ok(());
        };
        let Some(host_function) = kernel.function else {
            return Ok(());
        };
        let launch = RawLaunch {
            grid: *grid,
            block: *block,
            dynamic_shared_bytes: *dynamic_shared_bytes,
            stream_id: self.stream_id,
            name: function.name.as_ptr(),
            name_bytes: function.name.len(),
            parameters: parameters.as_ptr(),
            parameters_bytes: parameters.len(),
            layout: function.parameters.as_ptr(),
            layout_count: function.parameters.len(),
            device_range_is_valid: memory::device_range_is_valid,
            set_conditional: launch::set_value,
        };
        // SAFETY: the registrant promises that the function may be called here with its pointer;
        // everything in `launch` outlives the call.
        match unsafe { host_function(&launch, kernel.user) } {
            abi::KERNEL_OK => Ok(()),
            abi::KERNEL_ILLEGAL_ADDRESS => Err(result::ILLEGAL_ADDRESS),
            _ => Err(result::LAUNCH_FAILED),
        }
    }
}

fn transfer_ns(bytes: u64) -> u64 {
    config().copy_latency_ns + bytes / config().copy_bytes_per_ns
}
