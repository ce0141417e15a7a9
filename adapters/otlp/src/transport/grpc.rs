//! What an answer of gRPC says.
//!
//! See <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md> for where its status is, and
//! <https://opentelemetry.io/docs/specs/otlp/#failures> for what to do about it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, StatusCode};
use prost::Message as _;

use super::Verdict;
use super::exchange::Answer;
#[cfg(feature = "gzip")]
use super::exchange::MOST_OF_AN_ANSWER;
use crate::pipeline::ProblemKind;
use crate::pipeline::problem::{Trouble, shown};

/// The codes' names, by number (<https://grpc.io/docs/guides/status-codes/>).
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
const CANCELLED: u16 = 1;
const UNKNOWN: u16 = 2;
const DEADLINE_EXCEEDED: u16 = 4;
const PERMISSION_DENIED: u16 = 7;
const RESOURCE_EXHAUSTED: u16 = 8;
const ABORTED: u16 = 10;
const OUT_OF_RANGE: u16 = 11;
const UNIMPLEMENTED: u16 = 12;
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;
const DATA_LOSS: u16 = 15;
const UNAUTHENTICATED: u16 = 16;

/// `google.rpc.Status`, in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, prost::Message)]
struct Details {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, prost::Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

pub(super) fn judge(answer: &Answer) -> Verdict {
    // The status is in the trailers, or, with an answer that has no body, in the headers.
    let place = if answer.trailers.contains_key("grpc-status") {
        &answer.trailers
    } else {
        &answer.headers
    };
    let Some(code) = place.get("grpc-status") else {
        return without_status(answer);
    };
    let code = code.to_str().ok().and_then(|code| code.parse().ok());
    let code: u16 = code.unwrap_or(UNKNOWN);
    if code == 0 {
        return taken(answer);
    }
    let message = place
        .get("grpc-message")
        .map_or(&b""[..], |it| it.as_bytes());
    of_code(code, &percent_decoded(message), retry_delay(place))
}

fn of_code(code: u16, message: &str, delay: Option<Option<Duration>>) -> Verdict {
    let name = NAMES.get(usize::from(code)).unwrap_or(&"an unknown status");
    let what = match shown(message) {
        said if said.is_empty() => format!("the collector answered {name}"),
        said => format!("the collector answered {name}: {said}"),
    };
    if is_too_large(code, message) {
        return Verdict::TooLarge(Trouble::new(ProblemKind::TooLarge, what));
    }
    let again = |trouble| Verdict::Again {
        trouble,
        after: delay.flatten(),
    };
    match code {
        CANCELLED | DEADLINE_EXCEEDED | ABORTED | OUT_OF_RANGE | UNAVAILABLE | DATA_LOSS => {
            again(Trouble::new(ProblemKind::Unavailable, what))
        }
        RESOURCE_EXHAUSTED if delay.is_some() => {
            again(Trouble::new(ProblemKind::Unavailable, what))
        }
        _ => {
            let trouble = Trouble::new(ProblemKind::Refused(code), what);
            Verdict::Refused(match code {
                UNAUTHENTICATED | PERMISSION_DENIED => trouble.with_advice(
                    "set the credentials that the collector asks for in OTEL_EXPORTER_OTLP_HEADERS",
                ),
                UNIMPLEMENTED => trouble.with_advice(
                    "does this endpoint take OTLP over gRPC, and this signal? http/protobuf has a port of its own",
                ),
                _ => trouble,
            })
        }
    }
}

/// No code means it alone: the servers of Go and Java say RESOURCE_EXHAUSTED, tonic's says OUT_OF_RANGE, and each of them says
/// in words what it is.
fn is_too_large(code: u16, message: &str) -> bool {
    let words = ["larger than max", "too large", "exceeds maximum size"];
    matches!(code, RESOURCE_EXHAUSTED | OUT_OF_RANGE)
        && words.iter().any(|words| message.contains(words))
}

fn taken(answer: &Answer) -> Verdict {
    if answer.is_cut {
        return Verdict::unreadable("took it and sent a very long answer".into());
    }
    let Some((frame, message)) = answer.body.split_first_chunk::<5>() else {
        return Verdict::of_response(&[]);
    };
    let [compressed, length @ ..] = *frame;
    let Some(message) = message.get(..u32::from_be_bytes(length) as usize) else {
        return Verdict::unreadable("took it and cut its answer short".into());
    };
    if compressed == 0 {
        return Verdict::of_response(message);
    }
    match decompressed(message) {
        Some(message) => Verdict::of_response(&message),
        None => Verdict::unreadable("took it and compressed its answer beyond recognition".into()),
    }
}

/// Servers in Go compress the answer as the request was.
#[cfg(feature = "gzip")]
fn decompressed(message: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read as _;

    let mut plain = Vec::new();
    let decoder = flate2::read::GzDecoder::new(message);
    let mut bounded = decoder.take(MOST_OF_AN_ANSWER as u64);
    bounded.read_to_end(&mut plain).ok()?;
    Some(plain)
}

#[cfg(not(feature = "gzip"))]
fn decompressed(_: &[u8]) -> Option<Vec<u8>> {
    None
}

/// An answer that does not come from a gRPC server, or was cut off before its end
/// (<https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md>).
fn without_status(answer: &Answer) -> Verdict {
    let what = if answer.is_cut {
        "the server's answer was longer than 64 KiB, and was not read to its end".to_owned()
    } else {
        let said = String::from_utf8_lossy(&answer.body);
        match shown(&said) {
            said if said.is_empty() => format!(
                "a server that is not one of gRPC answered {}",
                answer.status
            ),
            said => format!(
                "a server that is not one of gRPC answered {}: {said}",
                answer.status
            ),
        }
    };
    let code = match answer.status {
        StatusCode::OK if !answer.is_cut && answer.body.is_empty() => {
            let what = "the answer ended before its status";
            return Verdict::Again {
                trouble: Trouble::new(ProblemKind::Unreachable, what),
                after: None,
            };
        }
        StatusCode::BAD_REQUEST => INTERNAL,
        StatusCode::UNAUTHORIZED => UNAUTHENTICATED,
        StatusCode::FORBIDDEN => PERMISSION_DENIED,
        StatusCode::NOT_FOUND => UNIMPLEMENTED,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => UNAVAILABLE,
        StatusCode::PAYLOAD_TOO_LARGE => {
            return Verdict::TooLarge(Trouble::new(ProblemKind::TooLarge, what));
        }
        _ => UNKNOWN,
    };
    match of_code(code, "", None) {
        Verdict::Refused(trouble) => Verdict::Refused(Trouble { what, ..trouble }),
        Verdict::Again { trouble, after } => Verdict::Again {
            trouble: Trouble { what, ..trouble },
            after,
        },
        other => other,
    }
}

/// `Some` if the status comes with retry information, which may name a delay.
fn retry_delay(place: &HeaderMap) -> Option<Option<Duration>> {
    // Padding may be there or not.
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    let encoded = place.get("grpc-status-details-bin")?;
    let details = Details::decode(&*engine.decode(encoded.as_bytes()).ok()?).ok()?;
    let info = details
        .details
        .iter()
        .find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let info = RetryInfo::decode(&*info.value).ok()?;
    Some(info.retry_delay.map(|delay| {
        let seconds = u64::try_from(delay.seconds).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(delay.nanos).unwrap_or(0))
    }))
}

/// As `grpc-message` is encoded. What is not encoded well stays as it is.
fn percent_decoded(text: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high)
                    .zip(digit(low))
                    .map(|(high, low)| (high << 4 | low) as u8)
            }
            _ => None,
        };
        decoded.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn answer(headers: &[(&'static str, &str)]) -> Answer {
        let mut trailers = HeaderMap::new();
        for (name, value) in headers {
            trailers.insert(*name, value.parse().expect("a header"));
        }
        Answer {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            is_cut: false,
            trailers,
        }
    }

    fn kind(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Accepted { .. } => "accepted",
            Verdict::Again { .. } => "again",
            Verdict::TooLarge(_) => "too large",
            Verdict::Refused(_) => "refused",
        }
    }

    #[test]
    fn exactly_what_otlp_calls_retryable_is_tried_again() {
        // The table of https://opentelemetry.io/docs/specs/otlp/#failures
        let again = [1, 4, 10, 11, 14, 15];
        for code in 0..20_u16 {
            let expected = match code {
                0 => "accepted",
                _ if again.contains(&code) => "again",
                _ => "refused",
            };
            let verdict = judge(&answer(&[("grpc-status", &code.to_string())]));
            assert_eq!(kind(&verdict), expected, "{code}");
        }
    }

    #[test]
    fn exhausted_is_tried_again_when_the_collector_says_when() {
        // RetryInfo { retry_delay { seconds: 2, nanos: 500_000_000 } }, encoded by hand.
        let mut any = vec![0x0a, 40];
        any.extend_from_slice(b"type.googleapis.com/google.rpc.RetryInfo");
        any.extend_from_slice(&[0x12, 10, 0x0a, 8, 8, 2, 0x10, 0x80, 0xca, 0xb5, 0xee, 1]);
        let mut status = vec![0x08, 8, 0x1a, any.len() as u8];
        status.extend_from_slice(&any);
        let with_padding = base64::engine::general_purpose::STANDARD.encode(&status);
        for encoded in [with_padding.trim_end_matches('='), &*with_padding] {
            let verdict = judge(&answer(&[
                ("grpc-status", "8"),
                ("grpc-status-details-bin", encoded),
            ]));
            let Verdict::Again { after, .. } = verdict else {
                panic!("{verdict:?}");
            };
            assert_eq!(after, Some(Duration::from_millis(2500)));
        }
        let without = judge(&answer(&[("grpc-status", "8")]));
        assert_eq!(kind(&without), "refused");
        let garbage = judge(&answer(&[
            ("grpc-status", "8"),
            ("grpc-status-details-bin", "!"),
        ]));
        assert_eq!(kind(&garbage), "refused");
    }

    #[cfg(feature = "gzip")]
    #[test]
    fn a_compressed_answer_is_read_as_far_as_an_answer_may_be_long() {
        let framed = |plain: &[u8]| {
            use std::io::Write as _;
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(plain).expect("memory");
            let message = encoder.finish().expect("memory");
            let mut body = vec![1];
            body.extend_from_slice(&(message.len() as u32).to_be_bytes());
            body.extend_from_slice(&message);
            let mut answer = answer(&[("grpc-status", "0")]);
            answer.body = Bytes::from(body);
            judge(&answer)
        };
        // partial_success { rejected: 7 }, encoded by hand.
        let Verdict::Accepted { refused: 7, .. } = framed(&[0x0a, 2, 8, 7]) else {
            panic!("seven are refused");
        };
        let bomb = framed(&vec![0x0a; 10 << 20]);
        let Verdict::Accepted {
            refused: 0,
            warning: Some(warning),
        } = bomb
        else {
            panic!("{bomb:?}");
        };
        assert_eq!(warning.kind, ProblemKind::UnreadableAnswer);
    }

    #[test]
    fn too_large_is_told_from_exhausted_by_its_words() {
        for (code, message) in [
            (
                "8",
                "grpc: received message larger than max (5000000 vs. 4194304)",
            ),
            (
                "11",
                "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes",
            ),
            ("8", "gRPC message exceeds maximum size 4194304: 5000000"),
        ] {
            let verdict = judge(&answer(&[("grpc-status", code), ("grpc-message", message)]));
            assert_eq!(kind(&verdict), "too large", "{message}");
        }
    }

    #[test]
    fn messages_are_percent_decoded_and_what_is_not_well_encoded_stays() {
        for (encoded, decoded) in [
            ("a%20b%C3%A9", "a bé"),
            ("100% sure", "100% sure"),
            ("%", "%"),
            ("%4", "%4"),
        ] {
            assert_eq!(percent_decoded(encoded.as_bytes()), decoded);
        }
    }

    #[test]
    fn a_server_that_is_no_grpc_server_is_judged_by_its_http_status() {
        for (status, expected) in [
            (400, "refused"),
            (404, "refused"),
            (413, "too large"),
            (429, "again"),
            (503, "again"),
            (500, "refused"),
        ] {
            let mut answer = answer(&[]);
            answer.status = StatusCode::from_u16(status).expect("a status");
            answer.body = Bytes::from_static(b"<html>");
            assert_eq!(kind(&judge(&answer)), expected, "{status}");
        }
        assert_eq!(
            kind(&judge(&answer(&[]))),
            "again",
            "an answer that was cut off"
        );
    }
}
