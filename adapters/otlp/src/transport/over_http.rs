//! What an answer of OTLP over HTTP says, see <https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use prost::Message as _;

use super::Verdict;
use super::exchange::Answer;
use crate::config::without_secrets;
use crate::pipeline::ProblemKind;
use crate::pipeline::problem::{Trouble, shown};

/// `google.rpc.Status`, the body of a refusal.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

pub(super) fn judge(answer: &Answer) -> Verdict {
    let status = answer.status;
    if status.is_success() {
        return taken(answer);
    }
    let said = said(answer);
    let what = match said.is_empty() {
        true => format!("the server answered {status}"),
        false => format!("the server answered {status}: {said}"),
    };
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Verdict::TooLarge(Trouble::new(ProblemKind::TooLarge, what))
        }
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Verdict::Again {
            trouble: Trouble::new(ProblemKind::Unavailable, what),
            after: retry_after(answer, SystemTime::now()),
        },
        _ => {
            let trouble = Trouble::new(ProblemKind::Refused(status.as_u16()), what);
            Verdict::Refused(if status.is_redirection() {
                trouble
                    .with_advice("redirects are not followed: set the endpoint to where it points")
            } else {
                trouble
            })
        }
    }
}

fn taken(answer: &Answer) -> Verdict {
    if answer.is_cut {
        return Verdict::unreadable("took it and sent a very long answer".into());
    }
    let kind = answer.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/x-protobuf" | "application/protobuf" => Verdict::of_response(&answer.body),
        _ if answer.body.is_empty() => Verdict::of_response(&[]),
        // Some answer in JSON whatever they were sent: `{}`, or `{"partialSuccess":{}}`.
        "application/json" if !says_anything(&answer.body) => Verdict::of_response(&[]),
        kind => {
            let said = shown(&String::from_utf8_lossy(&answer.body));
            Verdict::unreadable(format!("took it and answered in {:?}: {said}", shown(kind)))
        }
    }
}

/// Whether JSON holds more than empty objects.
fn says_anything(json: &[u8]) -> bool {
    let text: String = String::from_utf8_lossy(json).split_whitespace().collect();
    !matches!(
        &*text,
        "{}" | r#"{"partialSuccess":{}}"# | r#"{"partialSuccess":null}"#
    )
}

fn said(answer: &Answer) -> String {
    if answer.status.is_redirection() {
        let location = answer.headers.get(LOCATION);
        let location = location.map(|it| String::from_utf8_lossy(it.as_bytes()));
        return location.map_or_else(String::new, |location| {
            format!("see {}", shown(&without_secrets(&location)))
        });
    }
    let kind = answer.headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    if kind.is_some_and(|kind| kind.starts_with(b"application/x-protobuf"))
        && let Ok(status) = Status::decode(answer.body.clone())
    {
        return shown(&status.message);
    }
    shown(&String::from_utf8_lossy(&answer.body))
}

/// A number of seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(answer: &Answer, now: SystemTime) -> Option<Duration> {
    let text = answer.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &'static [u8]) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header"));
        }
        Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: map,
            body: Bytes::from_static(body),
            is_cut: false,
            trailers: HeaderMap::new(),
        }
    }

    #[test]
    fn exactly_what_otlp_calls_retryable_is_tried_again() {
        for status in [
            300, 301, 400, 401, 403, 404, 408, 429, 500, 501, 502, 503, 504, 505,
        ] {
            let again = [429, 502, 503, 504].contains(&status);
            let verdict = judge(&answer(status, &[], b"no"));
            assert_eq!(
                matches!(verdict, Verdict::Again { .. }),
                again,
                "{status}: {verdict:?}"
            );
            assert_eq!(
                matches!(verdict, Verdict::Refused(_)),
                !again,
                "{status}: {verdict:?}"
            );
        }
        assert!(matches!(
            judge(&answer(413, &[], b"")),
            Verdict::TooLarge(_)
        ));
        let plain = Verdict::Accepted {
            refused: 0,
            warning: None,
        };
        assert_eq!(judge(&answer(200, &[], b"")), plain);
        assert_eq!(
            judge(&answer(
                200,
                &[("content-type", "application/json")],
                b"{ }"
            )),
            plain
        );
    }

    #[test]
    fn retry_after_is_read_in_seconds_and_as_a_date() {
        // 1994-11-06 08:49:37 UTC, the example of RFC 9110, is 784111777 s after 1970.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_700);
        for (text, expected) in [
            ("3", Some(3)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(77)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("soon", None),
            ("-3", None),
        ] {
            let read = retry_after(&answer(429, &[("retry-after", text)], b""), now);
            assert_eq!(read, expected.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn of_where_a_redirect_points_no_query_is_shown() {
        let headers = [("location", "https://me:pw@there/v1/traces?token=secret#x")];
        let Verdict::Refused(trouble) = judge(&answer(307, &headers, b"")) else {
            panic!("redirects are not followed");
        };
        let expected =
            "the server answered 307 Temporary Redirect: see https://…@there/v1/traces?…";
        assert_eq!(trouble.what, expected);
    }

    #[test]
    fn a_page_that_answers_everything_with_200_is_noticed() {
        let page = answer(
            200,
            &[("content-type", "text/html; charset=utf-8")],
            b"<html>\x1b[2J",
        );
        let Verdict::Accepted {
            refused: 0,
            warning: Some(warning),
        } = judge(&page)
        else {
            panic!("it says that it took it");
        };
        assert_eq!(warning.kind, ProblemKind::UnreadableAnswer);
        assert!(warning.what.contains("text/html") && !warning.what.contains('\x1b'));
    }
}
