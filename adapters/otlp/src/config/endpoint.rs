//! Where a signal is sent.

use std::fmt;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use super::Protocol;
use crate::pipeline::Signal;

/// A URL of which nothing is left to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) secure: bool,
    /// Without brackets around an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) authority: Authority,
    pub(crate) path: PathAndQuery,
}

/// As a person would write it. There is no user in it, so no password either.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)?;
        match self.path.as_str() {
            "/" => Ok(()),
            path => f.write_str(path.split('?').next().unwrap_or_default()),
        }
    }
}

/// What an endpoint is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// All signals: HTTP's paths are put after it.
    All,
    /// One signal: it is used as it is.
    One,
}

impl Endpoint {
    /// Why a text is no endpoint is told in the words that end a [`SettingsError`](super::SettingsError).
    ///
    /// `insecure` is for an endpoint of gRPC without a scheme.
    pub(crate) fn parse(
        text: &str,
        protocol: Protocol,
        given_for: For,
        signal: Signal,
        insecure: bool,
    ) -> Result<Self, String> {
        let with_scheme = match protocol {
            Protocol::Grpc if !text.contains("://") => {
                let scheme = if insecure { "http" } else { "https" };
                format!("{scheme}://{text}")
            }
            _ => text.to_owned(),
        };
        let uri: Uri = with_scheme
            .parse()
            .map_err(|why| format!("a URL is expected, as http://localhost:4317 ({why})"))?;
        let secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err("a URL that begins with http:// or https:// is expected".into()),
        };
        let Some(authority) = uri.authority().cloned() else {
            return Err("the URL names no host".into());
        };
        if authority.as_str().contains('@') {
            return Err(
                "a user and password in the URL are not sent: put `authorization=Basic …` into the headers".into(),
            );
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err("the URL names no host".into());
        }
        let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
            None if secure => 443,
            None => 80,
            Some(digits) => match digits.parse() {
                Ok(0) | Err(_) => return Err("its port is not a number from 1 to 65535".into()),
                Ok(port) => port,
            },
        };
        let given = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let path = match protocol {
            Protocol::Grpc if given.trim_end_matches('/').is_empty() => "/".to_owned(),
            Protocol::Grpc if path_of_a_signal(given).is_some() => {
                return Err(
                    "an endpoint of gRPC has no path: that is one of OTLP over HTTP, whose protocol is http/protobuf".into(),
                );
            }
            Protocol::Grpc => return Err("an endpoint of gRPC has no path".into()),
            Protocol::HttpProtobuf if given_for == For::One => given.to_owned(),
            Protocol::HttpProtobuf if given.contains('?') => {
                return Err("the path of the signal cannot be put after a query".into());
            }
            Protocol::HttpProtobuf => match path_of_a_signal(given) {
                Some((base, path)) => {
                    let scheme = if secure { "https" } else { "http" };
                    return Err(format!(
                        "an endpoint for all signals gets their paths put after it, so write {scheme}://{authority}{base} \
                         (for one signal alone, a variable such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT takes a URL with {path})"
                    ));
                }
                None => format!("{}/v1/{signal}", given.trim_end_matches('/')),
            },
        };
        let path = PathAndQuery::try_from(path).map_err(|why| format!("its path: {why}"))?;
        Ok(Self {
            secure,
            host,
            port,
            authority,
            path,
        })
    }
}

/// What comes before the path of a signal, and that path, where a path ends in one.
fn path_of_a_signal(path: &str) -> Option<(&str, String)> {
    let path = path.trim_end_matches('/');
    Signal::ALL.into_iter().find_map(|signal| {
        let own = format!("/v1/{signal}");
        Some((path.strip_suffix(&own)?, own))
    })
}

/// The text of a URL without what may be a secret: the user and password before an `@`, the query and the fragment.
pub(crate) fn without_secrets(text: &str) -> String {
    let (head, tail) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    let (scheme, rest) = match head.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), head),
    };
    // A password may hold a question mark, against the rules: then the head ends within it.
    if tail.contains('@') {
        return format!("{scheme}…");
    }
    let cut = if tail.is_empty() { "" } else { "?…" };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    // It may hold a slash as well: then all before the last `@` may be part of it.
    match rest[..host_ends].rfind('@').or_else(|| rest.rfind('@')) {
        Some(at) => format!("{scheme}…{}{cut}", &rest[at..]),
        None => format!("{scheme}{rest}{cut}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(text: &str, given_for: For) -> Result<String, String> {
        let protocol = Protocol::HttpProtobuf;
        let parsed = Endpoint::parse(text, protocol, given_for, Signal::Metrics, false)?;
        Ok(parsed.to_string())
    }

    fn grpc(text: &str, insecure: bool) -> Result<Endpoint, String> {
        Endpoint::parse(text, Protocol::Grpc, For::All, Signal::Logs, insecure)
    }

    #[test]
    fn paths_are_put_after_an_endpoint_for_all_and_not_after_one_signals() {
        // The examples of https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp
        for (text, all, one) in [
            (
                "http://collector:4318",
                "http://collector:4318/v1/metrics",
                "http://collector:4318",
            ),
            (
                "http://collector:4318/",
                "http://collector:4318/v1/metrics",
                "http://collector:4318",
            ),
            (
                "http://collector:4318/mycollector/",
                "http://collector:4318/mycollector/v1/metrics",
                "http://collector:4318/mycollector/",
            ),
        ] {
            assert_eq!(http(text, For::All).as_deref(), Ok(all));
            assert_eq!(http(text, For::One).as_deref(), Ok(one));
        }
    }

    #[test]
    fn the_path_of_a_signal_in_an_endpoint_for_all_is_told_with_what_to_write() {
        for (text, write) in [
            ("https://collector/v1/metrics", "write https://collector ("),
            ("http://host:4318/v1/traces/", "write http://host:4318 ("),
            ("http://host:1/a/v1/logs", "write http://host:1/a ("),
        ] {
            let said = http(text, For::All).expect_err(text);
            assert!(said.contains(write), "{said}");
            assert_eq!(http(text, For::One).as_deref(), Ok(text));
        }
        let said = grpc("http://host:4317/v1/traces", false).expect_err("a path");
        assert!(said.contains("http/protobuf"), "{said}");
    }

    #[test]
    fn grpc_takes_a_host_and_a_port_alone_and_is_then_secure_unless_told_otherwise() {
        for (text, insecure, secure, port) in [
            ("localhost:4317", false, true, 4317),
            ("localhost:4317", true, false, 4317),
            ("http://localhost:4317/", false, false, 4317),
            ("https://localhost", true, true, 443),
            ("[::1]:4317", true, false, 4317),
        ] {
            let endpoint = grpc(text, insecure).expect(text);
            assert_eq!((endpoint.secure, endpoint.port), (secure, port), "{text}");
        }
        assert_eq!(
            grpc("http://[::1]:1", false).expect("an endpoint").host,
            "::1"
        );
    }

    #[test]
    fn what_is_no_endpoint_is_told_why() {
        for (text, why) in [
            ("", "URL"),
            ("localhost:4318", "http://"),
            ("collector", "http://"),
            ("ftp://host/", "http://"),
            ("http://", "URL"),
            ("http://user:pass@host/", "authorization"),
            ("http://host:99999/", "65535"),
            ("http://host:/", "65535"),
            ("http://host:port/", "65535"),
            ("http://host name/", "URL"),
            ("http://host/?key=1", "query"),
        ] {
            let said = http(text, For::All).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
        assert!(grpc("http://host:4317/v1/traces", false).is_err());
    }

    #[test]
    fn users_passwords_queries_and_fragments_are_not_shown() {
        for (text, shown) in [
            ("http://host/a?key=secret", "http://host/a?…"),
            ("http://host/a#secret", "http://host/a?…"),
            ("http://host/?u=a@b&k=secret", "http://…"),
            ("http://u:p?secret@host/", "http://…"),
            ("http://u:p@host/?k=secret", "http://…@host/?…"),
            ("host?u=http://secret", "host?…"),
            ("/there?k=secret", "/there?…"),
            ("", ""),
            ("http://host/a", "http://host/a"),
            ("https://u:p@host:1/a@b", "https://…@host:1/a@b"),
            ("u:p@host", "…@host"),
            ("http://u:p/w@host/a", "http://…@host/a"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
