//! The diagnosis for people.

use super::Diagnosis;
use super::check::State;
use crate::terminal::{FAINT, FAULT, HEADING, SOUND, Style, UNSURE};
use crate::text::wrap;

/// Columns of the state, and of the name beside it.
const STATE: usize = 7;
const NAME: usize = 12;

pub(super) fn text(diagnosis: &Diagnosis, width: usize) -> String {
    let left = 2 + STATE + 2 + NAME + 2;
    let columns = width.saturating_sub(left).max(20);
    let mut out = format!(
        "{HEADING}lineage {} on {}{HEADING:#}\n\n",
        diagnosis.lineage, diagnosis.system
    );
    let mut said: Vec<&str> = Vec::new();
    for check in &diagnosis.checks {
        let style = style(check.state);
        for (number, line) in wrap(&check.found, columns).iter().enumerate() {
            out += &if number == 0 {
                let (word, name) = (check.state.word(), check.name);
                format!("  {style}{word:<STATE$}{style:#}  {name:<NAME$}  {line}\n")
            } else {
                format!("{:left$}{line}\n", "")
            };
        }
        for (label, text) in [("leaves open", &check.unknown), ("do next", &check.next)] {
            // What several checks leave open is said once.
            let Some(text) = text.as_deref().filter(|text| !said.contains(text)) else {
                continue;
            };
            said.push(text);
            for (number, line) in wrap(text, columns).iter().enumerate() {
                let label = if number == 0 { label } else { "" };
                out += &format!(
                    "{:indent$}{FAINT}{label:<NAME$}{FAINT:#}  {line}\n",
                    "",
                    indent = 2 + STATE + 2
                );
            }
        }
    }
    out.push('\n');
    let (style, verdict) = verdict(diagnosis);
    for line in wrap(&verdict, width) {
        out += &format!("{style}{line}{style:#}\n");
    }
    out
}

const fn style(state: State) -> Style {
    match state {
        State::Ok => SOUND,
        State::Unknown => UNSURE,
        State::Missing => FAULT,
    }
}

fn verdict(diagnosis: &Diagnosis) -> (Style, String) {
    if diagnosis.device_evidence {
        return (SOUND, "device evidence can be recorded here".to_owned());
    }
    let first = diagnosis
        .checks
        .iter()
        .find(|check| check.state == State::Missing);
    let first = first.map_or("session", |check| check.name);
    (
        FAULT,
        format!(
            "device evidence cannot be recorded here: begin with `{first}`; recordings are read and validated all the same"
        ),
    )
}
