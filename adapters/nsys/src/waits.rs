//! What a wait waits for.
//!
//! `syncType` numbers the kinds in four different ways between schema 2.9 and 3.25, and the table of
//! its meanings that every export carries is right for only some of them. The call that waits is
//! named in all of them, so the kind is that of its function.

use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::SynchronizationKind;
use rustc_hash::FxHashMap;

/// Waits that are remembered until their records come.
const MOST_REMEMBERED: usize = 1 << 20;

/// What a function waits for, by its name as Nsight Systems writes it: `cudaEventSynchronize_v3020`,
/// `cuStreamWaitEvent_ptsz`.
pub(crate) fn kind_of(function: &str) -> Option<SynchronizationKind> {
    let function = function
        .strip_prefix("cuda")
        .or_else(|| function.strip_prefix("cu"))?;
    let base = function.split('_').next()?;
    match base {
        "EventSynchronize" | "EventQuery" => Some(SynchronizationKind::Event),
        "StreamWaitEvent" => Some(SynchronizationKind::StreamWait),
        "StreamSynchronize" | "StreamQuery" => Some(SynchronizationKind::Stream),
        "DeviceSynchronize" | "ThreadSynchronize" | "CtxSynchronize" => {
            Some(SynchronizationKind::Context)
        }
        _ => None,
    }
}

/// The calls of a file that wait, by process and correlation id.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    kinds: FxHashMap<(ProcessOrdinal, u64), SynchronizationKind>,
    pub(crate) forgotten: u64,
}

impl Waits {
    /// Remembers a call that waits.
    pub(crate) fn add(
        &mut self,
        process: ProcessOrdinal,
        correlation: u64,
        kind: SynchronizationKind,
    ) {
        if self.kinds.len() == MOST_REMEMBERED {
            self.forgotten += 1;
        } else if correlation != 0 {
            self.kinds.insert((process, correlation), kind);
        }
    }

    /// What the call of a wait's record waits for.
    pub(crate) fn kind(&self, process: ProcessOrdinal, correlation: u64) -> SynchronizationKind {
        let kind = self.kinds.get(&(process, correlation));
        kind.copied().unwrap_or(SynchronizationKind::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_wait_are_known_under_all_their_names() {
        for (name, kind) in [
            (
                "cudaEventSynchronize_v3020",
                Some(SynchronizationKind::Event),
            ),
            ("cuEventQuery", Some(SynchronizationKind::Event)),
            (
                "cudaStreamWaitEvent_v3020",
                Some(SynchronizationKind::StreamWait),
            ),
            (
                "cuStreamWaitEvent_ptsz",
                Some(SynchronizationKind::StreamWait),
            ),
            (
                "cudaStreamSynchronize_ptsz_v7000",
                Some(SynchronizationKind::Stream),
            ),
            ("cudaStreamSynchronize", Some(SynchronizationKind::Stream)),
            (
                "cudaDeviceSynchronize_v3020",
                Some(SynchronizationKind::Context),
            ),
            ("cuCtxSynchronize", Some(SynchronizationKind::Context)),
            ("cudaLaunchKernel_v7000", None),
            ("EventSynchronize", None),
            ("", None),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }
}
