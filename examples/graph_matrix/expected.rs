//! What cannot be known: docs/graphs.md has the table.

use crate::cell::{Cupti, Variation};

/// Whether the capture of a kernel may be unknown, `changed` saying whether it came into the
/// executable graph by a change of that.
pub fn may_be_unknown(cupti: Cupti, variation: Variation, changed: bool) -> bool {
    // Before 13.0 nothing tells from which node an executable graph's was updated.
    changed && variation == Variation::Update && cupti < Cupti::V13_1
}
