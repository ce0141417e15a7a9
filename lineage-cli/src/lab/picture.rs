//! The launches over time, drawn with characters.

use super::experiment::{Launched, Outcome};
use super::micros;

/// Launches with a line of their own; with more, each stream has one.
const LINES: usize = 16;

const CALL: char = '▒';
const BLOCKED: char = '×';
const WAITS: char = '·';
const RUNS: [char; 2] = ['█', '▓'];

/// What each character means.
pub(super) const LEGEND: &str = "▒ in the call, × blocked in the call, · in the queue, █ running";

/// No wider than so many columns.
pub(super) fn draw(outcome: &Outcome, width: usize) -> String {
    let end_ns = outcome.device.ended_ns.max(outcome.host.returned_ns).max(1);
    let by_stream = outcome.launches.len() > LINES;
    let label = if by_stream { "stream" } else { "launch" };
    let label_columns = label.len() + 1 + outcome.launches.len().to_string().len();
    let columns = width.saturating_sub(label_columns + 3).max(20);
    let mut out = format!(
        "  {:label_columns$} 0{:>rest$}\n",
        "",
        format!("{} µs", micros(end_ns)),
        rest = columns.saturating_sub(1)
    );
    let mut line = |name: &str, at: &dyn Fn(u64) -> Option<char>| {
        let cells = (0..columns).map(|column| {
            // The middle of the time that the cell stands for.
            let middle_ns = (2 * column as u64 + 1) * end_ns / (2 * columns as u64);
            at(middle_ns).unwrap_or(' ')
        });
        let text = format!("  {name:<label_columns$} {}", cells.collect::<String>());
        out += text.trim_end();
        out.push('\n');
    };
    let launches = &outcome.launches;
    line("host", &|at_ns| {
        launches.iter().find_map(|launch| in_call(launch, at_ns))
    });
    if by_stream {
        for stream in 1..=outcome.settings.streams {
            let of_stream = || launches.iter().filter(|launch| launch.stream == stream);
            line(&format!("{label} {stream}"), &|at_ns| {
                let runs = of_stream().enumerate().find_map(|(number, launch)| {
                    is_in(at_ns, launch.started_ns, launch.ended_ns).then(|| RUNS[number % 2])
                });
                let waits = || {
                    of_stream()
                        .any(|launch| is_in(at_ns, launch.enqueued_ns, launch.started_ns))
                        .then_some(WAITS)
                };
                runs.or_else(waits)
            });
        }
    } else {
        for launch in launches {
            line(&format!("{label} {}", launch.launch), &|at_ns| {
                if is_in(at_ns, launch.started_ns, launch.ended_ns) {
                    Some(RUNS[0])
                } else if is_in(at_ns, launch.enqueued_ns, launch.started_ns) {
                    Some(WAITS)
                } else {
                    None
                }
            });
        }
    }
    out
}

fn is_in(at_ns: u64, from_ns: u64, to_ns: u64) -> bool {
    (from_ns..to_ns).contains(&at_ns)
}

/// What the host does in the call of a launch: its own work first, then waiting for room.
fn in_call(launch: &Launched, at_ns: u64) -> Option<char> {
    let blocked_ns: u64 = launch
        .held_up_by
        .iter()
        .filter(|held| held.cause == "queue full")
        .map(|held| held.ns)
        .sum();
    let ready_ns = launch.enqueued_ns - blocked_ns;
    if is_in(at_ns, launch.called_ns, ready_ns) {
        // Calls that follow each other are told apart.
        Some(if launch.launch % 2 == 1 { CALL } else { '░' })
    } else {
        is_in(at_ns, ready_ns, launch.enqueued_ns).then_some(BLOCKED)
    }
}
