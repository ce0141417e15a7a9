//! `lineage compare`: which reasons grew from one recording to another.
//!
//! Both recordings are cut into units: requests and batches by their epochs, or, where work belongs
//! to no epoch, runs of operations in a row. Of each unit the time under each verdict is summed; the
//! means of both sides are compared with an interval. Whether both sides did the same mix of work is
//! said first: else a difference may be of the work, and not of the machine.

mod json;
mod mix;
mod side;
mod text;

use crate::arguments::Compare;
use crate::terminal::Terminal;
use crate::{BAD, FINE};

use mix::Mix;
use side::{Side, Spread};

/// Units on one side, below which no interval is given.
const ENOUGH: u64 = 30;
/// Half the width of an interval in standard errors: 99 % by the normal distribution.
const STANDARD_ERRORS: f64 = 2.576;

/// How the time under one verdict, or all of it, differs from one side to the other, in ns a unit.
#[derive(Debug, Clone, Copy)]
struct Difference {
    before_ns: f64,
    after_ns: f64,
    /// Of `after - before`, from and to, at 99 %; `None` with too few units.
    interval_ns: Option<(f64, f64)>,
}

impl Difference {
    fn of(before: &Spread, after: &Spread) -> Self {
        let enough = before.count >= ENOUGH && after.count >= ENOUGH;
        let difference = after.mean() - before.mean();
        let error = STANDARD_ERRORS * (before.error_squared() + after.error_squared()).sqrt();
        Self {
            before_ns: before.mean(),
            after_ns: after.mean(),
            interval_ns: enough.then_some((difference - error, difference + error)),
        }
    }

    fn grew_by(&self) -> f64 {
        self.after_ns - self.before_ns
    }

    /// Whether the interval leaves zero out.
    fn is_sure(&self) -> bool {
        self.interval_ns
            .is_some_and(|(from, to)| from > 0.0 || to < 0.0)
    }
}

/// Compares two recordings.
pub(crate) fn run(arguments: &Compare, terminal: &mut Terminal) -> u8 {
    let mut sides = Vec::new();
    for file in [&arguments.before, &arguments.after] {
        match side::gather(file, arguments) {
            Ok(side) => sides.push(side),
            Err(refusal) => {
                if arguments.json {
                    terminal.print(&refusal.object(json::SCHEMA, file));
                }
                terminal.complain(&refusal.to_string());
                return BAD;
            }
        }
    }
    let [before, after] = &sides[..] else {
        return BAD;
    };
    let comparison = Comparison::of(before, after);
    terminal.print(&if arguments.json {
        json::object(before, after, &comparison)
    } else {
        text::text(before, after, &comparison, terminal.width())
    });
    FINE
}

/// What was found.
struct Comparison {
    mix: Mix,
    whole: Difference,
    /// By verdict, the largest difference first.
    verdicts: Vec<(lineage_core::verdict::VerdictKind, Difference)>,
    /// Both sides are cut into units of one kind.
    same_units: bool,
}

impl Comparison {
    fn of(before: &Side, after: &Side) -> Self {
        let kinds = lineage_core::verdict::VerdictKind::ALL.iter();
        let mut verdicts: Vec<_> = kinds
            .map(|&kind| {
                (
                    kind,
                    Difference::of(&before.spread(kind), &after.spread(kind)),
                )
            })
            .filter(|(_, difference)| difference.before_ns > 0.0 || difference.after_ns > 0.0)
            .collect();
        verdicts.sort_by(|(_, a), (_, b)| b.grew_by().abs().total_cmp(&a.grew_by().abs()));
        Self {
            mix: Mix::of(before, after),
            whole: Difference::of(&before.whole, &after.whole),
            verdicts,
            same_units: before.of_epochs == after.of_epochs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: impl IntoIterator<Item = u64>) -> Spread {
        let mut spread = Spread::default();
        values.into_iter().for_each(|value| spread.add(value));
        spread
    }

    #[test]
    fn a_difference_is_sure_only_if_its_interval_leaves_zero_out() {
        // Means 100 and 110, variance 100 * 50 / 49 each: the standard error of the difference is
        // sqrt(2 * 100 / 49) = 2.0203, the interval 10 -+ 5.2043.
        let around =
            |mean: u64| (0..50).map(move |at| if at % 2 == 0 { mean - 10 } else { mean + 10 });
        let grown = Difference::of(&spread(around(100)), &spread(around(110)));
        assert!((grown.grew_by() - 10.0).abs() < 1e-9);
        let (from, to) = grown.interval_ns.expect("50 units each");
        assert!(
            (from - 4.7957).abs() < 1e-3 && (to - 15.2043).abs() < 1e-3,
            "{from} {to}"
        );
        assert!(grown.is_sure());
        let alike = Difference::of(&spread(around(100)), &spread(around(104)));
        assert!(!alike.is_sure(), "4 -+ 5.2 may be nothing");
        let few = Difference::of(&spread([100; 29]), &spread([500; 29]));
        assert_eq!(few.interval_ns, None);
        assert!(!few.is_sure());
    }
}
