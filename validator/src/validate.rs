//! The validation as a whole.

use std::collections::BTreeMap;

use lineage_core::id::{LaunchEpoch, ProcessOrdinal};
use lineage_core::observation::Observation;
use lineage_core::row::Binding;

use crate::checks;
use crate::derive::{Derived, Process, gather};
use crate::finding::Findings;
use crate::options::Options;
use crate::rows;
use crate::truth::{BoundOperation, BoundReplay};
use crate::validation::{Conclusions, Counts, Validation};

/// Derives all joins anew from observations, raises what is lost, wrong or impossible, and holds
/// the session's own rows, where there are any, against the result.
///
/// Takes time and memory in proportion to the observations, but for the sorting.
pub fn validate(
    observations: &[Observation],
    conclusions: Option<Conclusions<'_>>,
    options: &Options,
) -> Validation {
    let processes: BTreeMap<ProcessOrdinal, Process<'_>> = gather(observations)
        .into_iter()
        .map(|(ordinal, gathered)| (ordinal, Process::new(ordinal, gathered, options)))
        .collect();

    let mut counts = Counts::default();
    let mut findings = Findings::new(options.listed_per_code);
    for process in processes.values() {
        checks::check(process, options, &mut counts, &mut findings);
    }
    let mut session_faults = BTreeMap::new();
    let mut row_bindings = None;
    if let Some(conclusions) = conclusions {
        let (row_counts, bindings) =
            rows::compare(&processes, conclusions.rows, options, &mut findings);
        counts.wrong += row_counts.differing;
        counts.rows = Some(row_counts);
        row_bindings = Some(bindings);
        session_faults = rows::faults(conclusions.rows);
        for fault in conclusions.faults {
            let count = session_faults.entry(fault.code).or_default();
            *count = count.saturating_add(fault.count);
        }
    }

    let mut operations = Vec::new();
    let mut with_epoch = 0;
    for (ordinal, process) in &processes {
        let rows = row_bindings.as_ref().map(|bindings| bindings.get(ordinal));
        for (number, joined) in process.operations.operations.iter().enumerate() {
            let derived = joined
                .join
                .call()
                .map(|call| process.bindings[call].derived);
            let concluded = rows.map(|rows| rows.and_then(|rows| rows[number]));
            let epoch = match concluded {
                Some(concluded) => concluded.and_then(bound_by_row),
                None => derived.and_then(bound),
            };
            with_epoch += u64::from(epoch.is_some());
            if !options.keep_bindings {
                continue;
            }
            operations.push(BoundOperation {
                process: *ordinal,
                session: joined.seen.what.session,
                correlation: joined.seen.what.correlation,
                start: joined.seen.what.start,
                epoch,
            });
        }
    }
    operations.sort_by_key(BoundOperation::key);
    let mut replays = match conclusions {
        _ if !options.keep_bindings => Vec::new(),
        Some(conclusions) => rows::replays(conclusions.rows),
        None => processes.values().flat_map(derived_replays).collect(),
    };
    replays.sort_by_key(BoundReplay::key);
    let (faults, fault_counts, not_listed) = findings.finish();
    Validation {
        counts,
        faults,
        fault_counts,
        not_listed,
        session_faults,
        operations,
        replays,
        with_epoch,
    }
}

/// What was derived for the operations that ran in graphs.
fn derived_replays<'p>(process: &'p Process<'_>) -> impl Iterator<Item = BoundReplay> + 'p {
    let operations = process.operations.operations.iter();
    let replayed = operations.zip(&process.graphs.of_operation);
    replayed.filter_map(|(operation, replayed)| {
        let replayed = replayed.as_ref()?;
        let what = operation.seen.what;
        let replay = replayed.replay.map(|at| &process.graphs.replays[at]);
        Some(BoundReplay {
            process: process.ordinal,
            session: what.session,
            correlation: what.correlation,
            node: what.graph_node,
            iteration: replayed.iteration,
            replay: replay.and_then(|replay| replay.number),
            capture: replayed.template.map(|node| node.capture),
        })
    })
}

const fn bound(derived: Derived) -> Option<LaunchEpoch> {
    match derived {
        Derived::Bound(epoch) => Some(epoch),
        _ => None,
    }
}

const fn bound_by_row(binding: Binding) -> Option<LaunchEpoch> {
    match binding {
        Binding::Bound(epoch) => Some(epoch),
        _ => None,
    }
}
