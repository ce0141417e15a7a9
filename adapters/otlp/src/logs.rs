//! Faults as log records.

use lineage_core::fault::{FaultCode, FaultFamily};
use lineage_core::row::{Binding, Row};
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use rustc_hash::FxHashMap;

use crate::attributes as names;
use crate::resource::{number, text};
use crate::spans::{FaultNote, signed};

/// Records of one code between two exports of the metrics, which count them all.
const MOST: u64 = 100;

/// Makes log records of faults, so many of each code and no more: a fault often comes with every
/// launch.
#[derive(Debug, Default)]
pub(crate) struct FaultLog {
    written: FxHashMap<FaultCode, u64>,
}

impl FaultLog {
    /// A new period.
    pub(crate) fn start_over(&mut self) {
        self.written.clear();
    }

    /// The record of a fault; `None` if there were enough of its code.
    pub(crate) fn record(
        &mut self,
        note: &FaultNote,
        unix_ns: Option<u64>,
        observed_unix_ns: u64,
    ) -> Option<LogRecord> {
        let written = self.written.entry(note.code).or_default();
        *written += 1;
        let more = match (*written).cmp(&MOST) {
            std::cmp::Ordering::Less => "",
            std::cmp::Ordering::Equal => {
                "; further ones of this code are counted only, until the metrics are exported next"
            }
            std::cmp::Ordering::Greater => return None,
        };
        let (severity_number, severity_text) = match note.code.family() {
            FaultFamily::Wrong => (SeverityNumber::Error, "ERROR"),
            _ => (SeverityNumber::Warn, "WARN"),
        };
        let code = note.code;
        let mut attributes = vec![
            text(names::FAULT_CODE, code.code()),
            number(names::FAULT_COUNT, signed(note.count)),
        ];
        if let Some(epoch) = note.epoch {
            attributes.push(number(names::EPOCH_ID, signed(epoch.id.get())));
            let version = i64::from(epoch.version.get());
            attributes.push(number(names::EPOCH_VERSION, version));
        }
        let body = format!("{} {}: {}{more}", code.code(), code.name(), note.detail);
        let (trace_id, span_id) = note.place.map_or_else(Default::default, |place| {
            let (trace, span) = (place.trace.to_bytes(), place.span.to_bytes());
            (trace.to_vec(), span.to_vec())
        });
        Some(LogRecord {
            time_unix_nano: unix_ns.unwrap_or(0),
            observed_time_unix_nano: observed_unix_ns,
            severity_number: severity_number.into(),
            severity_text: severity_text.to_owned(),
            body: Some(AnyValue {
                value: Some(Value::StringValue(body)),
            }),
            attributes,
            event_name: names::EVENT_FAULT.to_owned(),
            trace_id,
            span_id,
            ..LogRecord::default()
        })
    }
}

/// What is wrong with a row, each as a note of its own.
pub(crate) fn faults_of(row: &Row) -> impl Iterator<Item = FaultNote> + '_ {
    row.faults.iter().map(|&code| FaultNote {
        code,
        at: row.stages.api_enter.at().or(row.stages.start.at()),
        epoch: match row.binding {
            Binding::Bound(epoch) | Binding::Disputed(epoch, _) => Some(epoch),
            _ => None,
        },
        place: None,
        count: 1,
        detail: detail_of(row, code),
    })
}

fn detail_of(row: &Row, code: FaultCode) -> String {
    let mut detail = code.summary().to_owned();
    if let Some(call) = &row.call {
        detail.push_str(&format!(
            ": {} on thread {}, correlation id {}",
            call.api, call.tid, call.correlation.0
        ));
    }
    if let Binding::Disputed(one, other) = row.binding {
        detail.push_str(&format!(", named as the work of {one} and of {other}"));
    }
    detail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(code: FaultCode) -> FaultNote {
        FaultNote {
            code,
            at: None,
            epoch: None,
            place: None,
            count: 1,
            detail: "an envelope was never opened".to_owned(),
        }
    }

    #[test]
    fn so_many_of_each_code_and_the_last_says_that_there_are_more() {
        let mut log = FaultLog::default();
        let record = |log: &mut FaultLog, code| log.record(&note(code), Some(5), 9);
        let body = |record: &LogRecord| match &record.body.as_ref().expect("a body").value {
            Some(Value::StringValue(text)) => text.clone(),
            other => panic!("{other:?}"),
        };
        let first = record(&mut log, FaultCode::L05).expect("the first");
        assert_eq!(
            body(&first),
            "L05 handoff-not-received: an envelope was never opened"
        );
        assert_eq!(
            (first.time_unix_nano, first.observed_time_unix_nano),
            (5, 9)
        );
        assert_eq!(first.severity_text, "WARN");
        let rest: Vec<LogRecord> = (1..500)
            .filter_map(|_| record(&mut log, FaultCode::L05))
            .collect();
        assert_eq!(rest.len(), 99);
        assert!(body(&rest[97]).ends_with("opened"));
        assert!(body(&rest[98]).contains("counted only"));
        let wrong = record(&mut log, FaultCode::W03).expect("another code");
        assert_eq!(wrong.severity_text, "ERROR");
        log.start_over();
        assert!(record(&mut log, FaultCode::L05).is_some());
    }
}
