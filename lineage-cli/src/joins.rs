//! Whether a recording asserts anything, and why not.

use lineage_core::observation::{DeviceSession, Event};
use lineage_validator::{Validation, printable};

use crate::load::Ledger;

/// Why no operation of a recording was joined to an epoch, in words; `None` if one was.
pub(crate) fn nothing_joined(ledger: &Ledger, validation: &Validation) -> Option<String> {
    if validation.operations_with_epoch() > 0 {
        return None;
    }
    let counts = &validation.counts;
    let mut reasons = Vec::new();
    let absent = ledger.observations.iter().find_map(|of| match &of.event {
        Event::DeviceSession(DeviceSession::Absent { why, .. }) => Some(why),
        _ => None,
    });
    if let Some(why) = absent {
        reasons.push(format!("no device evidence: {}", printable(why)));
    }
    if !ledger.summary.is_complete() {
        let undecided = match counts.pending {
            0 => String::new(),
            1 => ": 1 call or operation undecided".to_owned(),
            many => format!(": {many} calls and operations undecided"),
        };
        reasons.push(format!("the file is not complete{undecided}"));
    }
    if counts.epochs == 0 {
        let said = "no epoch was ever declared: is `lineage.layer()` installed, or are the spans filtered out?";
        reasons.push(said.to_owned());
    }
    if reasons.is_empty() {
        let said = match (counts.calls, counts.operations()) {
            (0, 0) => "neither a call nor an operation was recorded",
            (_, 0) => "no operation was recorded",
            (0, _) => "no call was recorded",
            _ => "no call with an operation belongs to an epoch",
        };
        reasons.push(said.to_owned());
    }
    Some(reasons.join("; "))
}
