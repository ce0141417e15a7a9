//! What CUPTI does around one API call: correlation ids, callbacks, records.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::config::config;
use crate::cupti::activity::Domain;
use crate::cupti::client::PerClient;
use crate::cupti::records::{ApiRecord, write_api};
use crate::faults::{self, faults};
use crate::objects::{CONTEXTS, current_context_number};
use crate::threads::{ThreadState, Tops};

/// Added to the configured first id. 64 bits, so that skipped zeros stay exact.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// The next correlation id: counts up from the configured one, wraps, and is never 0.
pub(crate) fn next_correlation_id() -> u32 {
    let step = u64::from(faults().correlation_id_step);
    let given = GIVEN.fetch_add(step, Ordering::Relaxed);
    // The ids are 1 to u32::MAX, round and round.
    let period = u64::from(u32::MAX);
    let first = u64::from(config().first_correlation_id.max(1) - 1);
    ((first + given % period) % period) as u32 + 1
}

/// `CUpti_CallbackData`.
#[repr(C)]
pub(crate) struct CallbackData {
    /// 0: enter, 1: exit.
    callback_site: u32,
    function_name: *const c_char,
    function_params: *const c_void,
    function_return_value: *const u32,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

/// One API function in one domain.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) domain: Domain,
    pub(crate) id: u32,
    pub(crate) name: &'static CStr,
}

/// A call that CUPTI has entered and not left.
pub(crate) struct Traced {
    function: Function,
    parameters: *const c_void,
    symbol: *const c_char,
    correlation_id: u32,
    entries: PerClient<Entry>,
}

/// What is kept of it for one client.
struct Entry {
    tops: Tops,
    start_ns: u64,
    correlation_data: u64,
}

impl Traced {
    pub(crate) fn enter(
        thread: &ThreadState,
        function: Function,
        parameters: *const c_void,
        symbol: *const c_char,
        correlation_id: u32,
    ) -> Self {
        let mut traced = Self {
            function,
            parameters,
            symbol,
            correlation_id,
            entries: PerClient::new(|client| Entry {
                tops: thread.tops(client),
                start_ns: client.clock.stamp_ns(),
                correlation_data: 0,
            }),
        };
        traced.call(0, std::ptr::null());
        if config().push_inside_enter_counts == 1 {
            for (client, entry) in traced.entries.each() {
                entry.tops = thread.tops(client);
            }
        }
        traced
    }

    /// `asks_for_work`: faults may hit its record.
    pub(crate) fn exit(mut self, thread: &ThreadState, result: u32, asks_for_work: bool) {
        let Function { domain, id, .. } = self.function;
        let mut fault = None;
        for (client, entry) in self.entries.each() {
            if !client.recording.ids(domain).contains(id) {
                continue;
            }
            let record = ApiRecord {
                domain,
                id,
                start_ns: entry.start_ns,
                end_ns: client.clock.stamp_ns(),
                correlation_id: self.correlation_id,
                result,
                fault: *fault.get_or_insert_with(|| {
                    asks_for_work.then(faults::of_next_call_record).flatten()
                }),
            };
            write_api(thread, client, &record, &entry.tops);
        }
        self.call(1, &result);
    }

    fn call(&mut self, site: u32, return_value: *const u32) {
        let Function { domain, id, name } = self.function;
        for (client, entry) in self.entries.each() {
            if !client.callbacks.has(domain, id) {
                continue;
            }
            let context = current_context_number();
            let context_uid = CONTEXTS.get_number(context).map_or(0, |context| context.id);
            let data = CallbackData {
                callback_site: site,
                function_name: name.as_ptr(),
                function_params: self.parameters,
                function_return_value: return_value,
                symbol_name: self.symbol,
                context: crate::handles::handle(context),
                context_uid,
                correlation_data: &mut entry.correlation_data,
                correlation_id: self.correlation_id,
            };
            client
                .callbacks
                .call(domain.number(), id, (&raw const data).cast());
        }
    }
}

/// The runtime functions that wrap driver calls, when the configuration says so.
pub(crate) mod runtime {
    use super::{Domain, Function};

    const fn function(id: u32, name: &'static std::ffi::CStr) -> Function {
        Function {
            domain: Domain::Runtime,
            id,
            name,
        }
    }

    pub(crate) const LAUNCH: Function = function(211, c"cudaLaunchKernel_v7000");
    pub(crate) const LAUNCH_EX: Function = function(430, c"cudaLaunchKernelExC_v11060");
    pub(crate) const LAUNCH_COOPERATIVE: Function =
        function(269, c"cudaLaunchCooperativeKernel_v9000");
    pub(crate) const COPY: Function = function(31, c"cudaMemcpy_v3020");
    pub(crate) const COPY_ASYNC: Function = function(41, c"cudaMemcpyAsync_v3020");
    pub(crate) const COPY_PEER: Function = function(160, c"cudaMemcpyPeer_v4000");
    pub(crate) const COPY_PEER_ASYNC: Function = function(161, c"cudaMemcpyPeerAsync_v4000");
    pub(crate) const GRAPH_LAUNCH: Function = function(311, c"cudaGraphLaunch_v10000");
    pub(crate) const COPY_BATCH: Function = function(482, c"cudaMemcpyBatchAsync_v12080");
    pub(crate) const COPY_2D: Function = function(32, c"cudaMemcpy2D_v3020");
    pub(crate) const COPY_2D_ASYNC: Function = function(44, c"cudaMemcpy2DAsync_v3020");
    pub(crate) const SET_2D: Function = function(50, c"cudaMemset2D_v3020");
    pub(crate) const SET_2D_ASYNC: Function = function(52, c"cudaMemset2DAsync_v3020");
    pub(crate) const SET: Function = function(49, c"cudaMemset_v3020");
    pub(crate) const SET_ASYNC: Function = function(51, c"cudaMemsetAsync_v3020");
}

/// `cuptiGetLastError`: the last error of any CUPTI call of the process.
pub(crate) static LAST_ERROR: AtomicU32 = AtomicU32::new(0);
