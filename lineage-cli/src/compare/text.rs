//! A comparison, for a person.

use super::side::{RUN, Side};
use super::{Comparison, Difference};
use crate::terminal::{FAINT, HEADING, UNSURE};
use crate::text::{counted, duration, labelled, notes, printable_path, printable_text, table};

const LABEL: usize = 9;

pub(super) fn text(before: &Side, after: &Side, of: &Comparison, width: usize) -> String {
    let mut out = format!("{HEADING}compared{HEADING:#}\n");
    for (label, of) in [("before", before), ("after", after)] {
        out += &labelled(2, label, LABEL, &side(of), width);
        out += &notes(&of.about.notes, LABEL, width);
        if let Some(part) = &of.about.part {
            out += &labelled(2, "part", LABEL, &part.words(), width);
        }
    }
    out += &labelled(2, "the work", LABEL, &mix(of), width);
    if !of.same_units {
        let text = format!(
            "{UNSURE}one side has epochs and the other has not: their units are not the same{UNSURE:#}"
        );
        out += &labelled(2, "units", LABEL, &text, width);
    }
    if before.whole.count == 0 || after.whole.count == 0 {
        let text = "a side without a unit: nothing can be compared";
        return out + &labelled(2, "nothing", LABEL, text, width);
    }
    out.push('\n');
    let mut rows = vec![row("all", &of.whole)];
    rows.extend(of.verdicts.iter().map(|(kind, of)| row(kind.name(), of)));
    let header = [
        "a unit's time",
        "before",
        "after",
        "difference",
        "99 % interval",
        "",
    ];
    out += &table(&header, &rows, width);
    out.push('\n');
    out += &labelled(2, "so", LABEL, &conclusion(of), width);
    out
}

fn side(side: &Side) -> String {
    let units = if side.of_epochs {
        counted(side.whole.count, "epoch", "epochs")
    } else {
        format!(
            "{} of {RUN} operations",
            counted(side.whole.count, "run", "runs")
        )
    };
    let mut text = format!(
        "{} ({}): {units}",
        printable_path(&side.file),
        printable_text(&side.about.recorder)
    );
    if side.without_path > 0 {
        let rows = counted(side.without_path, "row", "rows");
        text += &format!("; {rows} without a critical path");
    }
    if side.left_out > 0 {
        let rows = counted(side.left_out, "row", "rows");
        text += &format!("; {rows} in no unit");
    }
    text
}

fn mix(of: &Comparison) -> String {
    let percent = of.mix.apart * 100.0;
    if of.mix.is_same() {
        return format!("the same mix of operations ({percent:.1} % apart)");
    }
    let most: Vec<String> = of
        .mix
        .most
        .iter()
        .map(|(name, before, after)| {
            let (before, after) = (before * 100.0, after * 100.0);
            format!("{name} {before:.1} % before, {after:.1} % after")
        })
        .collect();
    format!(
        "{UNSURE}not the same mix of operations{UNSURE:#}: {percent:.1} % apart, so a difference may be of the work; most: {}",
        most.join("; ")
    )
}

fn row(name: &str, of: &Difference) -> Vec<String> {
    let interval = of.interval_ns.map_or_else(
        || "too few units".to_owned(),
        |(from, to)| format!("{} to {}", signed(from), signed(to)),
    );
    let certainty = if of.is_sure() { "sure" } else { "" };
    vec![
        name.to_owned(),
        duration(of.before_ns.round() as u64),
        duration(of.after_ns.round() as u64),
        signed(of.grew_by()),
        interval,
        certainty.to_owned(),
    ]
}

fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "+" };
    format!("{sign}{}", duration(ns.abs().round() as u64))
}

fn conclusion(of: &Comparison) -> String {
    let sure: Vec<String> = of
        .verdicts
        .iter()
        .filter(|(_, of)| of.is_sure())
        .take(3)
        .map(|(kind, of)| format!("{} {}", kind.name(), signed(of.grew_by())))
        .collect();
    if of.whole.interval_ns.is_none() {
        return "too few units on a side for an interval: record for longer".to_owned();
    }
    if sure.is_empty() {
        return "no verdict differs beyond its interval".to_owned();
    }
    let note = if of.mix.is_same() && of.same_units {
        String::new()
    } else {
        format!(" {FAINT}(and the work is not the same){FAINT:#}")
    };
    format!("a unit's time changed most by: {}{note}", sure.join(", "))
}
