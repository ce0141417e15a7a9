//! Times as people write them: of a run, and by the wall clock.

use chrono::{DateTime, SecondsFormat};

/// Lengths beyond which numbers are not taken: a hundred days, in nanoseconds.
const LONGEST_NS: f64 = 9e15;

/// A time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// So many nanoseconds after its start.
    AfterStart(u64),
    /// So many nanoseconds before its end.
    BeforeEnd(u64),
    /// So many nanoseconds after 1970, by the wall clock.
    Wall(u64),
}

/// A time: `12m30s` after the start, `-10m` before the end, or a date.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    let wrong = || {
        "a time of the run is wanted: after its start, as 12m30s; before its end, as -10m; or a date with its zone, \
         as 2026-11-30T02:14:00Z"
            .to_owned()
    };
    if let Some(text) = text.strip_prefix('-') {
        return length(text).map(Moment::BeforeEnd).ok_or_else(wrong);
    }
    let after = length(text).map(Moment::AfterStart);
    after
        .or_else(|| date(text).map(Moment::Wall))
        .ok_or_else(wrong)
}

/// A length of time in nanoseconds: `10m`, `1h30m`, `2.5s`.
pub(crate) fn length_ns(text: &str) -> Result<u64, String> {
    length(text).ok_or_else(|| "a length of time is wanted, as 10m, 1h30m or 2.5s".to_owned())
}

/// Numbers with their units, one after the other.
fn length(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 8] = [
        // Longer names before those that they end with.
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3_600e9),
        ("d", 86_400e9),
    ];
    let mut rest = text.trim();
    let mut ns = 0.0;
    let mut last = f64::INFINITY;
    while !rest.is_empty() {
        let digits = rest.find(|of: char| !of.is_ascii_digit() && of != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(|of: char| of.is_ascii_digit());
        let unit = unit.map_or(rest.len(), |length| digits + length);
        let name = rest[digits..unit].trim();
        let (_, factor) = UNITS.iter().find(|(of, _)| *of == name)?;
        // As it is said: the larger units first, and each once.
        if *factor >= last {
            return None;
        }
        last = *factor;
        ns += number * factor;
        rest = &rest[unit..];
    }
    (last.is_finite() && (0.0..=LONGEST_NS).contains(&ns)).then_some(ns.round() as u64)
}

/// A date by RFC 3339, in nanoseconds since 1970.
fn date(text: &str) -> Option<u64> {
    let date = DateTime::parse_from_rfc3339(text.trim()).ok()?;
    u64::try_from(date.timestamp_nanos_opt()?).ok()
}

/// A date in words, to the second.
pub(super) fn said(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or_default();
    let date = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    date.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn lengths_are_read_with_their_units_the_larger_first() {
        for (text, ns) in [
            ("12m30s", 750 * SECOND),
            ("10m", 600 * SECOND),
            ("1h30m", 5_400 * SECOND),
            ("1d", 86_400 * SECOND),
            ("2.5s", 2_500_000_000),
            ("1s500ms", 1_500_000_000),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("7ns", 7),
            ("0s", 0),
        ] {
            assert_eq!(length(text), Some(ns), "{text}");
        }
        for text in [
            "", "10", "m", "10x", "10m10m", "30s12m", "1e3s", "-1s", "10m 30", "1..5s", "nan s",
            "200d",
        ] {
            assert_eq!(length(text), None, "{text}");
        }
    }

    /// As `date -d TEXT +%s` says it.
    #[test]
    fn dates_are_read_with_their_zone() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-11-30T02:14:00Z", 1_796_004_840),
            ("2026-11-30 02:14:00Z", 1_796_004_840),
            ("2026-11-30T03:14:00+01:00", 1_796_004_840),
            ("2026-11-29T21:14:00-05:00", 1_796_004_840),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            assert_eq!(date(text), Some(seconds * SECOND), "{text}");
            assert_eq!(
                date(&said(seconds * SECOND)),
                Some(seconds * SECOND),
                "{text}"
            );
        }
        let with_fraction = date("1970-01-01T00:00:01.25Z");
        assert_eq!(with_fraction, Some(1_250_000_000));
        for text in [
            "2026-11-30",
            "2026-11-30T02:14:00",
            "2026-13-30T02:14:00Z",
            "2026-02-29T02:14:00Z",
            "2026-11-30T24:14:00Z",
            "2026-11-30T02:14Z",
            "26-11-30T02:14:00Z",
            "1960-01-01T00:00:00Z",
            "2026-11-30T02:14:00+1:00",
            "+026-11-30T02:14:00Z",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_is_said_as_it_is_read() {
        assert_eq!(said(1_796_004_840 * SECOND), "2026-11-30T02:14:00Z");
        for day in 0..60_000 {
            let ns = (day * 86_400 + 86_399) * SECOND;
            let said = said(ns);
            assert_eq!(date(&said), Some(ns), "{said}");
            assert!(said.ends_with("T23:59:59Z"), "{said}");
        }
    }

    #[test]
    fn a_time_is_of_the_run_or_of_the_wall_clock() {
        assert_eq!(moment("-10m"), Ok(Moment::BeforeEnd(600 * SECOND)));
        assert_eq!(moment("10m"), Ok(Moment::AfterStart(600 * SECOND)));
        assert_eq!(moment("1970-01-01T00:00:01Z"), Ok(Moment::Wall(SECOND)));
        let said = moment("yesterday").expect_err("no time");
        assert!(said.contains("12m30s"), "{said}");
    }
}
