//! The JSON object. Its fields are stable: `schema` rises when one changes its meaning or goes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::side::Side;
use super::{Comparison, Difference};
use crate::part::Looked;
use crate::text::json_line;

/// Schema of the object.
pub(super) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    before: SideObject<'a>,
    after: SideObject<'a>,
    mix_apart: f64,
    same_mix: bool,
    same_units: bool,
    whole: DifferenceObject,
    verdicts: BTreeMap<&'static str, DifferenceObject>,
}

#[derive(Serialize)]
struct SideObject<'a> {
    file: String,
    recorder: &'a str,
    notes: &'a [String],
    part: Option<Looked>,
    units: u64,
    units_are_epochs: bool,
    rows_without_path: u64,
    rows_left_out: u64,
}

#[derive(Serialize)]
struct DifferenceObject {
    before_ns: f64,
    after_ns: f64,
    interval_ns: Option<(f64, f64)>,
    sure: bool,
}

impl From<&Difference> for DifferenceObject {
    fn from(of: &Difference) -> Self {
        Self {
            before_ns: of.before_ns,
            after_ns: of.after_ns,
            interval_ns: of.interval_ns,
            sure: of.is_sure(),
        }
    }
}

fn side(side: &Side) -> SideObject<'_> {
    SideObject {
        file: side.file.display().to_string(),
        recorder: &side.about.recorder,
        notes: &side.about.notes,
        part: side.about.part,
        units: side.whole.count,
        units_are_epochs: side.of_epochs,
        rows_without_path: side.without_path,
        rows_left_out: side.left_out,
    }
}

/// The comparison, on a line.
pub(super) fn object(before: &Side, after: &Side, of: &Comparison) -> String {
    let verdicts = of.verdicts.iter();
    json_line(&Object {
        schema: SCHEMA,
        before: side(before),
        after: side(after),
        mix_apart: of.mix.apart,
        same_mix: of.mix.is_same(),
        same_units: of.same_units,
        whole: (&of.whole).into(),
        verdicts: verdicts
            .map(|(kind, of)| (kind.name(), of.into()))
            .collect(),
    })
}
