//! Whether a recording asserts anything, and why not.

use lineage_validator::printable;

use super::examine::{Examined, Origin};
use crate::text::{counted, thousands};

/// Why no operation of a recording was joined to an epoch, or in another tool's recording without
/// candidate epochs to a call, in words; `None` if one was.
pub(crate) fn none(examined: &Examined) -> Option<String> {
    let counts = &examined.whole.counts;
    match &examined.origin {
        Origin::Import { epochs: false, .. } if counts.joined_operations() > 0 => return None,
        _ if examined.whole.operations_with_epoch() > 0 => return None,
        _ => {}
    }
    let mut reasons = Vec::new();
    match &examined.origin {
        Origin::Ledger { read, absent } => {
            if let Some(why) = absent {
                reasons.push(format!("no device evidence: {}", printable(why)));
            }
            if !read.complete {
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
        }
        Origin::Import { epochs, .. } => {
            if let Some(said) = no_device_activity(examined) {
                reasons.push(said);
            } else if *epochs && counts.epochs == 0 {
                reasons.push(
                    "no range became a candidate epoch: see `ranges` and `request ids` in `lineage show`"
                        .to_owned(),
                );
            }
        }
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

/// Of another tool's recording: that it has calls and nothing that a device did, which is another
/// thing than that all joins are lost.
pub(crate) fn no_device_activity(examined: &Examined) -> Option<String> {
    let counts = &examined.whole.counts;
    let imported = matches!(examined.origin, Origin::Import { .. });
    if !imported || counts.operations() > 0 || counts.api_calls == 0 {
        return None;
    }
    Some(format!(
        "no device activity recorded: {}, {} of them asking for GPU work, and not one kernel, copy or set",
        counted(counts.api_calls, "API call", "API calls"),
        thousands(counts.launch_without_activity),
    ))
}
