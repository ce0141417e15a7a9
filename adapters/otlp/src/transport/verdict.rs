use std::time::Duration;

use prost::Message as _;

use crate::pipeline::ProblemKind;
use crate::pipeline::problem::{Trouble, shown};

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The collector has it, but for so many items that it refused.
    Accepted {
        refused: u64,
        warning: Option<Trouble>,
    },
    /// The same may succeed later: not before `after`, if the collector said so.
    Again {
        trouble: Trouble,
        after: Option<Duration>,
    },
    /// Too large for the collector. Half of it may not be.
    TooLarge(Trouble),
    /// The same would fail again.
    Refused(Trouble),
}

/// `Export{Trace,Metrics,Logs}ServiceResponse`, which have the same field numbers.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

impl Verdict {
    /// Of the message that answers a request that was taken.
    pub(super) fn of_response(message: &[u8]) -> Self {
        let response = match Response::decode(message) {
            Ok(response) => response,
            Err(why) => {
                return Self::unreadable(format!("took it and answered what is not OTLP ({why})"));
            }
        };
        let Some(partial) = response.partial_success else {
            return Self::Accepted {
                refused: 0,
                warning: None,
            };
        };
        let said = shown(&partial.error_message);
        let Ok(refused) = u64::try_from(partial.rejected) else {
            let rejected = partial.rejected;
            return Self::unreadable(format!(
                "took it and answered that it refused {rejected} items of it, which cannot be: {said:?}"
            ));
        };
        let what = match (refused, said.is_empty()) {
            (0, true) => None,
            (0, false) => Some(format!("took all of a request and warned: {said}")),
            (_, true) => Some(format!(
                "refused {refused} items of a request without a reason"
            )),
            (_, false) => Some(format!("refused {refused} items of a request: {said}")),
        };
        Self::Accepted {
            refused,
            warning: what.map(|what| {
                Trouble::new(ProblemKind::PartlyRefused, format!("the collector {what}"))
            }),
        }
    }

    /// A request that was taken, as far as the answer can be read.
    pub(super) fn unreadable(what: String) -> Self {
        Self::Accepted {
            refused: 0,
            warning: Some(Trouble::new(
                ProblemKind::UnreadableAnswer,
                format!("the server {what}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::logs::v1::{
        ExportLogsPartialSuccess, ExportLogsServiceResponse,
    };

    fn answer(rejected: i64, message: &str) -> Verdict {
        let response = ExportLogsServiceResponse {
            partial_success: Some(ExportLogsPartialSuccess {
                rejected_log_records: rejected,
                error_message: message.into(),
            }),
        };
        Verdict::of_response(&response.encode_to_vec())
    }

    #[test]
    fn what_a_collector_refuses_of_a_request_is_counted_and_said() {
        let Verdict::Accepted { refused, warning } = answer(3, "no\nid") else {
            panic!("it was taken");
        };
        assert_eq!(refused, 3);
        assert!(
            warning
                .expect("a warning")
                .what
                .ends_with("3 items of a request: no id")
        );
        let silent = Verdict::Accepted {
            refused: 0,
            warning: None,
        };
        assert_eq!(answer(0, ""), silent);
        assert_eq!(Verdict::of_response(b""), silent);
    }

    #[test]
    fn a_warning_refuses_nothing_and_garbage_is_said_to_be() {
        for (verdict, kind) in [
            (answer(0, "use gzip"), ProblemKind::PartlyRefused),
            (answer(-1, ""), ProblemKind::UnreadableAnswer),
            (
                Verdict::of_response(b"<html>"),
                ProblemKind::UnreadableAnswer,
            ),
        ] {
            let Verdict::Accepted {
                refused: 0,
                warning: Some(warning),
            } = verdict
            else {
                panic!("{verdict:?}");
            };
            assert_eq!(warning.kind, kind);
        }
    }
}
