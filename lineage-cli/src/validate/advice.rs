//! What to do about a fault, where it is in another tool's recording: what can be done there is
//! another thing than in a program of one's own.

use lineage_core::fault::FaultCode;
use lineage_validator::Finding;

use super::examine::{Examined, Origin};

/// What to do next about a finding.
pub(super) fn next(examined: &Examined, finding: &Finding) -> &'static str {
    match examined.origin {
        Origin::Ledger { .. } => finding.next,
        Origin::Import { .. } => of_import(finding.code).unwrap_or(finding.next),
    }
}

const fn of_import(code: FaultCode) -> Option<&'static str> {
    Some(match code {
        FaultCode::L02 => {
            "see whether the file was cut or merged by hand; else its recorder lost the call: record a shorter time, or less"
        }
        FaultCode::L03 => {
            "see `call results` in `lineage show`: without them a launch that failed looks lost; else its recorder lost the \
             operation: record a shorter time, or less"
        }
        FaultCode::L07 => {
            "see `skipped` and the notes in `lineage show`: they say what could not be used, and why"
        }
        FaultCode::L08 => {
            "the recorder has no times of these: nothing can be said of when they ran"
        }
        FaultCode::W03 => {
            "report it with the file: the correlator and the validator differ about the ranges around a call"
        }
        FaultCode::W04 => {
            "see whether the file was merged from several processes or recordings: validate each one's own file"
        }
        FaultCode::T01 | FaultCode::T03 => {
            "do not compare host and device times of this file by less than this; `--clock-error-ns` allows for a known error"
        }
        FaultCode::T02 | FaultCode::T04 => {
            "trust no duration that rests on these times: they are so in the file"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recording_can_have_wrong_has_advice_of_its_own() {
        // The others are not raised in imports: see their pages.
        for code in [
            "L02", "L03", "L07", "L08", "W03", "W04", "T01", "T02", "T03", "T04",
        ] {
            let code = FaultCode::from_code(code).expect("a code");
            assert!(of_import(code).is_some(), "{code}");
        }
        assert_eq!(of_import(FaultCode::L01), None);
    }
}
