//! What to do about each fault, in a line.

use lineage_core::fault::FaultCode;

/// What to do next about a fault of this code. `lineage explain CODE` says more.
pub const fn advice(code: FaultCode) -> &'static str {
    match code {
        FaultCode::L01 => {
            "carry the epoch to this thread (an envelope, `in_epoch`, `Carrier`) and launch inside `epoch.launch(…)`; \
             if the work belongs to no request, say so with `detached`"
        }
        FaultCode::L02 => {
            "look for L07 at the same time; if there is none, check that the driver's API ids of this call are traced"
        }
        FaultCode::L03 => {
            "look for L07 at the same time; if there is none, check that the activity kind of this operation is enabled"
        }
        FaultCode::L04 => {
            "launch the work that was handed on inside the epoch, or `cancel()` it where it is given up"
        }
        FaultCode::L05 => {
            "open the carrier where its work goes on; if its value is taken out without the epoch, that line loses it"
        }
        FaultCode::L06 => "start lineage before the graph is built",
        FaultCode::L07 => {
            "raise `ring_capacity` (gaps) or drain more often; for CUPTI's own count enlarge its buffers"
        }
        FaultCode::L08 => {
            "enlarge CUPTI's device buffers, and do not flush by force; CUPTI does not count these as dropped"
        }
        FaultCode::W01 => "look for a clock that stepped, or an epoch id that outlived its session",
        FaultCode::W02 => {
            "do not hold a scope's guard across an await: give the future the epoch (`in_epoch`), or use `run` and `launch`"
        }
        FaultCode::W03 => {
            "enter the inner epoch with `launch` as well, so that it reaches CUPTI; look for another tool that pushes under our kind"
        }
        FaultCode::W04 => {
            "look for L07 and T03 at the same time; do not merge recordings of several processes or sessions under one number"
        }
        FaultCode::W05 => {
            "look for another tool that pushes external ids of our kind, and for epochs kept from an earlier session"
        }
        FaultCode::W06 => "report it: a replay's operations were joined to another launch",
        FaultCode::W07 => {
            "use the closure forms (`run`, `launch`), or drop each guard on its thread and before the next await"
        }
        FaultCode::W08 => {
            "report it: an executable graph's id was taken for that of an earlier one"
        }
        FaultCode::T01 => {
            "register CUPTI's timestamp callback once, before any context exists, with the session's own clock"
        }
        FaultCode::T02 => "look for a clock that stepped between the two times (T03)",
        FaultCode::T03 => {
            "record with CLOCK_MONOTONIC, and register CUPTI's timestamp callback once"
        }
        FaultCode::T04 => {
            "look for a clock that stepped (T03); queued and submitted times are weak for graph kernels"
        }
        _ => "`lineage explain` has a page for this code in the version that knows it",
    }
}
