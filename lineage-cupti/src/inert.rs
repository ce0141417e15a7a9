//! Where nothing is recorded: other systems than Linux, and builds without the feature `record`.

use std::time::Duration;

use lineage_core::observation::Observation;
use lineage_core::source::{EvidenceSource, NoEvidence, SourceContext};

use crate::Cupti;

#[cfg(not(target_os = "linux"))]
const WHY: &str = "not supported on this platform: CUPTI is used on Linux only";
#[cfg(target_os = "linux")]
const WHY: &str = "recording is compiled out: enable the feature record of lineage-cupti";

/// Stands for a session where there is none.
pub(crate) struct Session;

impl EvidenceSource for Cupti {
    fn start(&mut self, _context: SourceContext) -> Result<(), NoEvidence> {
        Err(NoEvidence::new(WHY))
    }

    fn drain(&mut self, _out: &mut dyn FnMut(Observation)) {}

    fn flush(&mut self) {}

    fn stop(&mut self, _within: Duration, _out: &mut dyn FnMut(Observation)) {}
}
