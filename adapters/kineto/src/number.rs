//! Numbers as a recording writes them: decimal text, with or without quotes around it.
//!
//! Nothing goes through floating point. A time of 2026 in nanoseconds has 19 digits, and an `f64`
//! holds 15 of them.

use crate::fields::Value;

/// Why a value is no number that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    /// It is no number: another type, or a text that says none.
    NotANumber,
    /// It is `NaN` or infinite.
    NotFinite,
    /// It has a fraction where a whole number belongs.
    NotWhole,
    /// It is beyond what any field of a recording holds.
    TooLarge,
}

/// More digits than any number has that is used: 2^64 has 20.
const DIGITS_AT_MOST: u32 = 30;

/// A decimal number: `digits` times ten to the power of `exponent`, and whether it is below zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: u128,
    exponent: i64,
}

/// The value as a whole number, which may be below zero: `-1` is how recordings say "none".
pub(crate) fn whole(value: Value<'_>) -> Result<i128, NumberFault> {
    let text = number_text(value)?;
    if let Some(number) = short_whole(text) {
        return Ok(i128::from(number));
    }
    scaled(text, 0, Rounding::Refuse)
}

/// The value, a time or a length of time in microseconds, as nanoseconds; half a nanosecond and
/// more is rounded away from zero.
pub(crate) fn microseconds(value: Value<'_>) -> Result<i128, NumberFault> {
    let text = number_text(value)?;
    if let Some(nanoseconds) = short_microseconds(text) {
        return Ok(i128::from(nanoseconds));
    }
    scaled(text, 3, Rounding::Nearest)
}

/// The text of a number, out of its quotes if it has them.
fn number_text(value: Value<'_>) -> Result<&[u8], NumberFault> {
    match value {
        Value::Bare(text) => Ok(text),
        Value::Text(text) => Ok(text.raw().trim_ascii()),
        Value::Object(_) | Value::Array(_) => Err(NumberFault::NotANumber),
    }
}

/// At most 18 digits and nothing else: nearly every number there is.
fn short_whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })
}

/// Digits, and no fraction or one of three digits: what Kineto writes.
fn short_microseconds(text: &[u8]) -> Option<u64> {
    match text {
        [head @ .., b'.', a, b, c] => {
            let fraction = short_whole(&[*a, *b, *c])?;
            short_whole(head)?.checked_mul(1000)?.checked_add(fraction)
        }
        _ => short_whole(text)?.checked_mul(1000),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Refuse,
    Nearest,
}

/// The number times ten to the power of `power`.
fn scaled(text: &[u8], power: i64, rounding: Rounding) -> Result<i128, NumberFault> {
    let decimal = decimal(text)?;
    let power = decimal.exponent.saturating_add(power);
    let size = if decimal.digits == 0 {
        0
    } else if power >= 0 {
        power_of_ten(power.unsigned_abs())
            .and_then(|factor| decimal.digits.checked_mul(factor))
            .ok_or(NumberFault::TooLarge)?
    } else {
        // Beyond 10^38 the divisor is larger than any number that `decimal` gives.
        let (quotient, remainder, half) = match power_of_ten(power.unsigned_abs()) {
            Some(divisor) => (
                decimal.digits / divisor,
                decimal.digits % divisor,
                divisor / 2,
            ),
            None => (0, decimal.digits, u128::MAX),
        };
        if rounding == Rounding::Refuse && remainder != 0 {
            return Err(NumberFault::NotWhole);
        }
        quotient + u128::from(remainder >= half)
    };
    let size = i128::try_from(size).map_err(|_| NumberFault::TooLarge)?;
    Ok(if decimal.negative { -size } else { size })
}

fn power_of_ten(power: u64) -> Option<u128> {
    10_u128.checked_pow(u32::try_from(power).ok()?)
}

/// Reads `-123.45e-6`. Digits after the thirtieth are dropped: they are far below what is asked
/// for, or the number is too large.
fn decimal(text: &[u8]) -> Result<Decimal, NumberFault> {
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if is_word_for_no_number(rest) {
        return Err(NumberFault::NotFinite);
    }
    let mut number = Decimal {
        negative,
        digits: 0,
        exponent: 0,
    };
    let mut kept = 0;
    let mut any = false;
    let mut in_fraction = false;
    let mut position = 0;
    while let Some(&byte) = rest.get(position) {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if kept < DIGITS_AT_MOST {
                    number.digits = number.digits * 10 + u128::from(byte - b'0');
                    kept += u32::from(number.digits != 0);
                    number.exponent -= i64::from(in_fraction);
                } else {
                    number.exponent += i64::from(!in_fraction);
                }
            }
            b'.' if !in_fraction => in_fraction = true,
            b'e' | b'E' if any => {
                number.exponent = number
                    .exponent
                    .saturating_add(exponent(&rest[position + 1..])?);
                return Ok(number);
            }
            _ => return Err(NumberFault::NotANumber),
        }
        position += 1;
    }
    if any {
        Ok(number)
    } else {
        Err(NumberFault::NotANumber)
    }
}

/// Reads `-6`. One that is too long to be held is as good as the largest.
fn exponent(text: &[u8]) -> Result<i64, NumberFault> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberFault::NotANumber);
    }
    let size = digits.iter().fold(0_i64, |size, &digit| {
        size.saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    Ok(if negative { -size } else { size })
}

/// Whether the value is one of the words for a number that is none.
pub(crate) fn is_not_finite(value: Value<'_>) -> bool {
    matches!(value, Value::Bare(text)
        if is_word_for_no_number(text.strip_prefix(b"-").unwrap_or(text)))
}

/// Python writes `NaN` and `Infinity`, C++ `nan`, `-nan` and `inf`.
fn is_word_for_no_number(text: &[u8]) -> bool {
    ["nan", "inf", "infinity"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole_of(text: &str) -> Result<i128, NumberFault> {
        whole(Value::Bare(text.as_bytes()))
    }

    fn nanoseconds_of(text: &str) -> Result<i128, NumberFault> {
        microseconds(Value::Bare(text.as_bytes()))
    }

    #[test]
    fn whole_numbers_are_exact_beyond_every_integer_type() {
        for (text, number) in [
            ("0", 0),
            ("-1", -1),
            ("4294967296", 4_294_967_296),
            ("9223372036854775808", 9_223_372_036_854_775_808),
            ("18446744073709551615", 18_446_744_073_709_551_615),
            ("18446744073709551616", 18_446_744_073_709_551_616),
            ("123.0", 123),
            ("1.5e3", 1500),
            ("1500e-2", 15),
            ("+7", 7),
            ("-0", 0),
            ("0e99999999999999999999", 0),
        ] {
            assert_eq!(whole_of(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn microseconds_become_nanoseconds_digit_by_digit() {
        for (text, nanoseconds) in [
            ("1606910596297023", 1_606_910_596_297_023_000),
            ("4203669604595.407", 4_203_669_604_595_407),
            ("1428625731622.25", 1_428_625_731_622_250),
            ("0.769", 769),
            ("0.0004", 0),
            ("0.0005", 1),
            ("0.00049999999999999999999999999999999999999", 0),
            ("1234.5670000000001", 1_234_567),
            ("1.2e3", 1_200_000),
            ("1.606910596297023e15", 1_606_910_596_297_023_000),
            ("5E-3", 5),
            ("1e-400", 0),
            ("-2.5", -2_500),
            ("-0.0005", -1),
            ("18446744073709551.615", 18_446_744_073_709_551_615),
        ] {
            assert_eq!(nanoseconds_of(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn quotes_change_no_number() {
        let text = r#"{"a": "41", "b": " -1.5 ", "c": "stream 7"}"#;
        let mut members = crate::fields::Members::of_object(text.as_bytes());
        let mut next = || {
            members.next_key().ok()??;
            members.value().ok()
        };
        assert_eq!(next().map(whole), Some(Ok(41)));
        assert_eq!(next().map(microseconds), Some(Ok(-1500)));
        assert_eq!(next().map(whole), Some(Err(NumberFault::NotANumber)));
    }

    #[test]
    fn what_is_no_number_is_told_apart() {
        for (text, fault) in [
            ("NaN", NumberFault::NotFinite),
            ("-nan", NumberFault::NotFinite),
            ("Infinity", NumberFault::NotFinite),
            ("-inf", NumberFault::NotFinite),
            ("1.5", NumberFault::NotWhole),
            ("1e-40", NumberFault::NotWhole),
            ("1e40", NumberFault::TooLarge),
            ("1e99999999999999999999", NumberFault::TooLarge),
            (
                "999999999999999999999999999999999999999999",
                NumberFault::TooLarge,
            ),
            ("", NumberFault::NotANumber),
            ("-", NumberFault::NotANumber),
            (".", NumberFault::NotANumber),
            ("true", NumberFault::NotANumber),
            ("null", NumberFault::NotANumber),
            ("0x10", NumberFault::NotANumber),
            ("1e", NumberFault::NotANumber),
            ("1e5x", NumberFault::NotANumber),
            ("1.2.3", NumberFault::NotANumber),
            ("1-2", NumberFault::NotANumber),
        ] {
            assert_eq!(whole_of(text), Err(fault), "{text}");
        }
        assert_eq!(whole(Value::Array(b"[1]")), Err(NumberFault::NotANumber));
    }
}
