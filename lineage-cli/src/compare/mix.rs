//! Whether two recordings did the same work.

use std::collections::BTreeMap;

use super::side::{Kind, Side};
use crate::text::{cut, printable_whole};

/// Beyond this share of operations two mixes are not the same.
const SAME: f64 = 0.05;
/// Kinds that are named where they are not.
const NAMED: usize = 3;
/// Columns of a kind's name.
const NAME: usize = 50;

/// How far two mixes of operations are apart.
pub(super) struct Mix {
    /// The share of operations that would have to be of another kind: half the sum of the
    /// differences of all kinds' shares ("total variation").
    pub(super) apart: f64,
    /// Kinds whose share differs most, as they are shown, with their shares before and after. Those that
    /// would be shown alike, since long names are cut, are one.
    pub(super) most: Vec<(String, f64, f64)>,
}

impl Mix {
    pub(super) fn of(before: &Side, after: &Side) -> Self {
        let share = |side: &Side, kind: &Kind| {
            let all: u64 = side.operations.values().sum();
            let of_kind = side.operations.get(kind).copied().unwrap_or(0);
            of_kind as f64 / all.max(1) as f64
        };
        let mut kinds: Vec<&Kind> = before.operations.keys().collect();
        let new = after.operations.keys();
        kinds.extend(new.filter(|kind| !before.operations.contains_key(kind)));
        let mut sum = 0.0;
        let mut by_name: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for kind in kinds {
            let (before, after) = (share(before, kind), share(after, kind));
            sum += (before - after).abs();
            let shares = by_name.entry(named(kind)).or_default();
            *shares = (shares.0 + before, shares.1 + after);
        }
        let shares = by_name.into_iter();
        let mut shares: Vec<(String, f64, f64)> = shares
            .map(|(name, (before, after))| (name, before, after))
            .collect();
        let apart = |of: &(String, f64, f64)| (of.1 - of.2).abs();
        shares.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
        shares.truncate(NAMED);
        Self {
            apart: sum / 2.0,
            most: shares,
        }
    }

    pub(super) fn is_same(&self) -> bool {
        self.apart <= SAME
    }
}

/// A kind as a person tells it from others.
fn named((name, [x, y, z], _): &Kind) -> String {
    let name = printable_whole(name);
    let whole = if [*x, *y, *z] == [0; 3] {
        name
    } else {
        format!("grid {x}x{y}x{z} of {name}")
    };
    cut(&whole, NAME)
}
