//! The session's rows, held against what was derived anew.

mod graphs;

use std::collections::{BTreeMap, HashMap};

use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode;
use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::OperationsDue;
use lineage_core::row::{Binding, Row, RowCall, Template};

use crate::derive::{Childless, Derived, OperationJoin, Process, identity};
use crate::describe::{about_call, about_operation};
use crate::finding::{About, EvidenceLine, Finding, Findings};
use crate::options::Options;
use crate::truth::BoundReplay;
use crate::validation::RowCounts;

/// Of each process, the binding that the session's row gives each operation.
pub(crate) type RowBindings = BTreeMap<ProcessOrdinal, Vec<Option<Binding>>>;

/// Compares rows with the processes they are about.
pub(crate) fn compare(
    processes: &BTreeMap<ProcessOrdinal, Process<'_>>,
    rows: &[Row],
    options: &Options,
    findings: &mut Findings,
) -> (RowCounts, RowBindings) {
    let mut counts = RowCounts {
        given: rows.len() as u64,
        ..RowCounts::default()
    };
    let mut compared: BTreeMap<ProcessOrdinal, Compared> = processes
        .iter()
        .map(|(ordinal, process)| (*ordinal, Compared::new(process)))
        .collect();
    for row in last_words(rows, &mut counts) {
        let known = processes
            .get(&row.process)
            .zip(compared.get_mut(&row.process));
        let outcome = known.and_then(|(process, compared)| match &row.operation {
            Some(_) => compared.operation(process, row, options, findings),
            None => compared.call(process, row, findings),
        });
        match outcome {
            Some(Outcome::Agrees) => counts.agreeing += 1,
            Some(Outcome::OtherReason) => {
                counts.agreeing += 1;
                counts.other_reason += 1;
            }
            Some(Outcome::Differs) => counts.differing += 1,
            None => counts.extra += 1,
        }
    }
    for (ordinal, process) in processes {
        let missing = compared
            .get(ordinal)
            .map_or(0, |compared| compared.missing(process));
        // Where memory had no room for all observations, it had none for all rows.
        if missing == 0 || options.evicted_observations > 0 {
            continue;
        }
        counts.missing += missing;
        findings.raise_many(FaultCode::L07, missing, || {
            let detail = format!("{missing} operations or calls have no row, though all has come");
            Finding::new(FaultCode::L07, *ordinal, About::Recording, detail)
        });
    }
    if counts.extra > 0 && options.evicted_observations == 0 {
        let extra = counts.extra;
        findings.raise_many(FaultCode::W04, extra, || {
            let detail =
                format!("{extra} rows are about nothing that was observed, or are there twice");
            Finding::new(FaultCode::W04, ProcessOrdinal(0), About::Recording, detail)
        });
    }
    let bindings = compared
        .into_iter()
        .map(|(ordinal, compared)| (ordinal, compared.operations));
    (counts, bindings.collect())
}

/// The faults that rows carry, those of superseded rows left out.
pub(crate) fn faults(rows: &[Row]) -> BTreeMap<FaultCode, u64> {
    let mut faults = BTreeMap::new();
    for row in last_words(rows, &mut RowCounts::default()) {
        for code in &row.faults {
            *faults.entry(*code).or_default() += 1;
        }
    }
    faults
}

/// What rows say of operations that ran in graphs, those of superseded rows left out.
pub(crate) fn replays(rows: &[Row]) -> Vec<BoundReplay> {
    let of_graphs = last_words(rows, &mut RowCounts::default()).into_iter();
    let said = of_graphs.filter_map(|row| {
        let (operation, graph) = (row.operation.as_ref()?, row.graph.as_ref()?);
        Some(BoundReplay {
            process: row.process,
            session: operation.session,
            correlation: operation.correlation,
            node: operation.graph_node,
            iteration: graph.iteration,
            replay: graph.replay,
            capture: match graph.template {
                Template::Known(node) | Template::Inferred { node, .. } => Ok(node.capture),
                Template::Unknown { why } => Err(why),
                _ => Err(Why::NotSupported),
            },
        })
    });
    said.collect()
}

/// Rows that no later one took the place of.
fn last_words<'r>(rows: &'r [Row], counts: &mut RowCounts) -> Vec<&'r Row> {
    let call = |row: &Row| {
        let call = row.call.as_ref()?;
        Some((row.process, call.session, call.correlation))
    };
    let operation = |row: &Row| Some((row.process, identity(row.operation.as_ref()?)));
    let mut of_calls = HashMap::new();
    let mut of_operations = HashMap::new();
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.supersedes) {
        of_calls.extend(call(row).map(|key| (key, number)));
        of_operations.extend(operation(row).map(|key| (key, number)));
    }
    let superseded = |number: usize, row: &Row| {
        let by_call = || of_calls.get(&call(row)?);
        let by_operation = || of_operations.get(&operation(row)?);
        let by = match (&row.call, &row.operation) {
            (Some(_), None) => by_call(),
            (None, Some(_)) => by_operation(),
            _ => None,
        };
        by.is_some_and(|&later| later > number)
    };
    let mut last = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        if superseded(number, row) {
            counts.superseded += 1;
        } else {
            last.push(row);
        }
    }
    last
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Agrees,
    OtherReason,
    Differs,
}

impl Outcome {
    /// What both come to: a row that differs in one thing differs.
    fn and(self, other: Self) -> Self {
        self.max(other)
    }
}

/// Which operations and calls of a process have had their row.
struct Compared {
    operations: Vec<Option<Binding>>,
    calls: Vec<bool>,
}

impl Compared {
    fn new(process: &Process<'_>) -> Self {
        Self {
            operations: vec![None; process.operations.operations.len()],
            calls: vec![false; process.calls.calls.len()],
        }
    }

    /// Compares the row of an operation; `None` if there is no such operation, or it has had one.
    fn operation(
        &mut self,
        process: &Process<'_>,
        row: &Row,
        options: &Options,
        findings: &mut Findings,
    ) -> Option<Outcome> {
        let operation = row.operation.as_ref()?;
        let operations = &process.operations.operations;
        let key = identity(operation);
        let from = operations.partition_point(|other| identity(other.seen.what) < key);
        let same = operations[from..]
            .iter()
            .take_while(|other| identity(other.seen.what) == key);
        let number = same
            .enumerate()
            .find(|(at, other)| {
                other.seen.what == operation && self.operations[from + at].is_none()
            })
            .map(|(at, _)| from + at)?;
        self.operations[number] = Some(row.binding);

        let joined = operations[number].join.call();
        match (&operations[number].join, joined) {
            (_, Some(call)) => self.calls[call] = true,
            // It stands for all of them: whose it is cannot be told.
            (OperationJoin::Ambiguous { .. }, None) => {
                let like = process
                    .calls
                    .with_wire_id(operation.session, operation.correlation);
                like.iter().for_each(|key| self.calls[key.call] = true);
            }
            _ => {}
        }
        let differs = match (&row.call, joined) {
            (Some(said), Some(call)) => {
                let call = &process.calls.calls[call];
                let same =
                    said.session == call.session && call.has_wire_id(said.correlation.wire());
                (!same).then_some((FaultCode::W04, "its row gives it to another call"))
            }
            (None, Some(_)) => Some((FaultCode::L02, "its row has no call, and one was recorded")),
            (Some(said), None) if is_doubted(process, number, said, row) => None,
            (Some(_), None) => Some((
                FaultCode::W04,
                "its row gives it to a call that the records do not tell",
            )),
            (None, None) => None,
        };
        if let Some((code, detail)) = differs {
            findings.raise(code, || {
                let mut evidence = vec![
                    said(row),
                    EvidenceLine {
                        label: "operation",
                        text: process.operation(operation),
                    },
                ];
                evidence.extend(
                    joined
                        .map(|call| process.call_evidence(call))
                        .unwrap_or_default(),
                );
                Finding::new(
                    code,
                    row.process,
                    about_operation(operation),
                    detail.to_owned(),
                )
                .at(operation.start)
                .evidence(evidence)
            });
            return Some(Outcome::Differs);
        }
        let by_graph = graphs::compare(process, number, row, options, findings);
        let by_call = joined.map_or(Outcome::Agrees, |call| {
            binding(process, call, row, findings)
        });
        Some(by_call.and(by_graph))
    }

    /// Compares the row of a call without an operation.
    fn call(
        &mut self,
        process: &Process<'_>,
        row: &Row,
        findings: &mut Findings,
    ) -> Option<Outcome> {
        let said = row.call.as_ref()?;
        let candidates = process
            .calls
            .with_wire_id(said.session, said.correlation.wire());
        let number = match (candidates, row.stages.api_enter.at()) {
            ([], _) => return None,
            ([only], _) => only.call,
            (several, Some(entered)) => {
                let begun =
                    several.partition_point(|key| key.start.is_none_or(|start| start <= entered));
                several[begun.saturating_sub(1)].call
            }
            (several, None) => several.iter().find(|key| !self.calls[key.call])?.call,
        };
        if std::mem::replace(&mut self.calls[number], true)
            && process.operations_of[number].is_empty()
        {
            return None;
        }
        if !process.operations_of[number].is_empty() {
            findings.raise(FaultCode::L03, || {
                let call = &process.calls.calls[number];
                let detail = "its row has no operation, and one was recorded".to_owned();
                Finding::new(FaultCode::L03, row.process, about_call(call), detail)
                    .at(call.start)
                    .evidence(process.call_evidence(number))
            });
            return Some(Outcome::Differs);
        }
        Some(binding(process, number, row, findings))
    }

    /// How many operations and calls of ended sessions have had no row.
    fn missing(&self, process: &Process<'_>) -> u64 {
        let operations = process.operations.operations.iter().zip(&self.operations);
        let operations = operations.filter(|(operation, binding)| {
            binding.is_none() && process.sessions.has_ended(operation.seen.what.session)
        });
        let calls = self.calls.iter().enumerate().filter(|(number, has_row)| {
            let call = &process.calls.calls[*number];
            let due = call.due() != OperationsDue::None;
            let childless = process.childless(*number);
            let expected = childless.is_some_and(|why| why != Childless::NoneDue) && due;
            !**has_row && expected && process.sessions.has_ended(call.session)
        });
        (operations.count() + calls.count()) as u64
    }
}

/// Whether several calls have an operation's id, and its row names one of them with W04: it does
/// not claim to know.
fn is_doubted(process: &Process<'_>, number: usize, said: &RowCall, row: &Row) -> bool {
    let operation = &process.operations.operations[number];
    let what = operation.seen.what;
    matches!(operation.join, OperationJoin::Ambiguous { .. })
        && row.faults.contains(&FaultCode::W04)
        && (said.session, said.correlation.wire()) == (what.session, what.correlation)
}

fn said(row: &Row) -> EvidenceLine {
    let binding = match row.binding {
        Binding::Bound(epoch) => format!("bound to epoch {epoch}"),
        Binding::Disputed(one, other) => format!("disputed between {one} and {other}"),
        Binding::Unattributed(why) => format!(
            "unattributed: {}",
            crate::validation::unattributed_name(why)
        ),
        Binding::Lost => "lost".to_owned(),
        _ => "something this build does not know".to_owned(),
    };
    let call = row
        .call
        .as_ref()
        .map(|call| format!("call {}", call.correlation.wire().0));
    EvidenceLine {
        label: "row",
        text: format!(
            "{binding}, {}",
            call.unwrap_or_else(|| "no call".to_owned())
        ),
    }
}

/// Holds a row's binding against the one derived for its call.
fn binding(process: &Process<'_>, number: usize, row: &Row, findings: &mut Findings) -> Outcome {
    let derived = process.bindings[number].derived;
    let (code, detail) = match (derived, row.binding) {
        (Derived::Unsettled, _) => return Outcome::Agrees,
        (Derived::Bound(epoch), Binding::Bound(said)) if said == epoch => return Outcome::Agrees,
        (Derived::Bound(epoch), Binding::Bound(said)) => (
            FaultCode::W03,
            format!("its row is bound to epoch {said}, and its sources name {epoch}"),
        ),
        (Derived::Bound(epoch), Binding::Disputed(..)) => (
            FaultCode::W03,
            format!("its row is disputed, and its sources agree on epoch {epoch}"),
        ),
        (Derived::Bound(epoch), _) => (
            FaultCode::L01,
            format!("its row has no epoch, and its sources name {epoch}"),
        ),
        // A dispute was already raised for the call; a row must not decide it.
        (Derived::Disputed(..), Binding::Bound(said)) => (
            FaultCode::W03,
            format!("its row is bound to epoch {said}, although its sources differ"),
        ),
        (Derived::Disputed(..), _) => return Outcome::Agrees,
        (_, Binding::Bound(said)) => (
            FaultCode::W03,
            format!("its row is bound to epoch {said}, which no source of it names"),
        ),
        (_, Binding::Disputed(one, other)) => (
            FaultCode::W03,
            format!("its row is disputed between {one} and {other}, which no source of it names"),
        ),
        (Derived::Unattributed(why), Binding::Unattributed(said)) if why == said => {
            return Outcome::Agrees;
        }
        (Derived::Lost, Binding::Lost) => return Outcome::Agrees,
        _ => return Outcome::OtherReason,
    };
    findings.raise(code, || {
        let call = &process.calls.calls[number];
        let mut evidence = vec![said(row)];
        evidence.extend(process.call_evidence(number));
        if let Binding::Bound(said) = row.binding {
            evidence.extend(process.epoch_evidence(said));
        }
        if let Derived::Bound(epoch) = derived {
            evidence.extend(process.epoch_evidence(epoch));
        }
        Finding::new(code, row.process, about_call(call), detail)
            .at(call.start)
            .evidence(evidence)
    });
    Outcome::Differs
}
