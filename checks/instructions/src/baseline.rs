//! The counts on record, and how far they may be exceeded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.txt");

/// How much a step may grow.
const PERCENT: u64 = 10;

/// Growth that is allowed to the smallest steps, which one instruction more would put beyond the percentage.
const AT_LEAST: u64 = 2;

pub fn write(rustc: &str, counts: &[(&str, u64)]) -> Result<(), String> {
    let mut text = format!("# {rustc}\n");
    for (step, count) in counts {
        let _ = writeln!(text, "{step} {count}");
    }
    print!("{text}");
    std::fs::write(FILE, text).map_err(|error| format!("baseline.txt: {error}"))
}

/// Prints what was counted beside what is on record; `false` if a step grew too much or is not on record.
pub fn compare(rustc: &str, counts: &[(&str, u64)]) -> Result<bool, String> {
    let text = std::fs::read_to_string(FILE).map_err(|error| format!("baseline.txt: {error}"))?;
    let (recorded_with, lines) = text.split_once('\n').unwrap_or_default();
    let pairs = lines.lines().filter_map(|line| line.split_once(' '));
    let known: BTreeMap<&str, u64> = pairs
        .filter_map(|(step, count)| Some((step, count.parse().ok()?)))
        .collect();
    let same_compiler = recorded_with.trim_start_matches("# ") == rustc;
    let mut good = true;
    println!("{:>28} {:>9} {:>6}", "step", "on record", "now");
    for (step, now) in counts {
        let Some(&before) = known.get(step) else {
            println!("{step:>28} {:>9} {now:>6}  not on record", "");
            good = false;
            continue;
        };
        let verdict = verdict(before, *now);
        good &= verdict != TOO_MUCH;
        println!("{step:>28} {before:>9} {now:>6}  {verdict}");
    }
    if !good {
        println!(
            "a step takes over {PERCENT} % more than before: mend it, or say why in the commit that runs this with --write"
        );
    }
    if !same_compiler {
        println!(
            "counted with {rustc}; on record: {recorded_with}. Another compiler makes other code: renew the record with --write"
        );
    }
    Ok(good)
}

const TOO_MUCH: &str = "grew too much";

fn verdict(before: u64, now: u64) -> &'static str {
    let allowed = (before * PERCENT / 100).max(AT_LEAST);
    if now > before + allowed {
        TOO_MUCH
    } else if now + allowed < before {
        "shrank: --write puts that on record"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_ten_percent_more_is_too_much_and_one_instruction_of_a_few_is_not() {
        for (before, now, too_much) in [
            (100, 110, false),
            (100, 111, true),
            (4, 6, false),
            (4, 7, true),
            (100, 50, false),
        ] {
            assert_eq!(
                verdict(before, now) == TOO_MUCH,
                too_much,
                "{before} -> {now}"
            );
        }
    }
}
