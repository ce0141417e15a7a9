//! The truth that the joins are scored against. It is carried by data and never by a thread.
//!
//! A request's number travels in its job, from the handler to the kernel's argument; a batch has a
//! number as well, and the batcher knows from the jobs' data which requests it serves. The
//! simulated device reports for each operation the number that it really ran with: a kernel's
//! argument, or in a graph what lies in memory where the argument points. Nothing of lineage is on
//! that way, so a wrong envelope, a stale scope or a lost one cannot make truth and joins wrong alike.
//!
//! A kernel of a graph is joined twice, to the batch that it ran for and to the capture that built
//! it. It is right only if both are: the device knows which launch of which graph it was and which
//! call was captured as it, and the engine noted under which epoch it captured a graph of that size.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Mutex;

use launch_lineage::id::EpochId;
use launch_lineage::observation::{Event, LinkKind};
use launch_lineage::row::{Binding, Row, RowGraph, Template};
use launch_lineage::{Attribution, Epoch, LaunchEpoch, Report};
use lineage_sim::{Call, GraphNode, Truth};

/// Set in the labels of batches, so that they differ from those of requests.
const BATCH: u64 = 1 << 32;
/// How many lost joins, and how many wrong ones, are shown in full.
const EXAMPLES: u64 = 2;

/// Which label stands for whom, noted by the handlers and the batcher from their own data.
#[derive(Default)]
pub struct Labels(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    requests: u64,
    batches: Vec<Vec<u64>>,
    /// The request for which a handler declared this epoch.
    declared: HashMap<EpochId, u64>,
    /// The epoch that the graph for batches of this size was captured under.
    graphs: BTreeMap<usize, LaunchEpoch>,
}

impl Labels {
    /// The number of a new request, whose handler has declared this epoch.
    pub fn request(&self, epoch: &Epoch) -> u64 {
        let mut noted = self.lock();
        noted.requests += 1;
        let number = noted.requests;
        if let Some(epoch) = epoch.id() {
            noted.declared.insert(epoch.id, number);
        }
        number
    }

    /// The label of a new batch of these requests.
    pub fn batch(&self, members: Vec<u64>) -> u64 {
        let mut noted = self.lock();
        noted.batches.push(members);
        BATCH | noted.batches.len() as u64
    }

    /// A graph for batches of this size is about to be captured under this epoch.
    pub fn graph(&self, size: usize, epoch: &Epoch) {
        if let Some(epoch) = epoch.id() {
            self.lock().graphs.insert(size, epoch);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        // Nothing panics while it holds the lock; what was noted until then would be right anyway.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Noted {
    /// The requests that work with this label is for; none for label 0.
    fn requests_of(&self, label: u64) -> Option<BTreeSet<u64>> {
        match label {
            0 => Some(BTreeSet::new()),
            batch if batch & BATCH != 0 => {
                let index = (batch & !BATCH).checked_sub(1)?;
                let members = self.batches.get(usize::try_from(index).ok()?)?;
                Some(members.iter().copied().collect())
            }
            request if request <= self.requests => Some(BTreeSet::from([request])),
            _ => None,
        }
    }
}

/// How the joins compare with the truth.
#[derive(Debug, Default)]
pub struct Score {
    /// Operations that the device ran.
    pub operations: u64,
    /// Joined to exactly the requests that they were for.
    pub right: u64,
    /// Joined to nobody, or not recorded at all.
    pub lost: u64,
    /// Joined to other requests, or to only some of theirs.
    pub wrong: u64,
    /// Of them, kernels of graphs.
    pub replayed: u64,
    /// Of the lost and wrong: those whose rows have no fault, so that only the truth shows them.
    pub unnoticed: u64,
    /// The first few that were not right, for a person.
    pub examples: Vec<String>,
}

/// Compares every operation that the device really ran with the row that lineage has of it.
pub fn score(report: &Report, labels: &Labels, truth: &Truth) -> Score {
    let noted = labels.lock();
    let members = members(report);
    // All kernels of a graph's launch have the launch's correlation id.
    let mut rows: HashMap<(u32, Option<u64>), &Row> = HashMap::new();
    for row in &report.rows {
        if let Some(operation) = &row.operation {
            rows.insert((operation.correlation.0, operation.graph_node), row);
        }
    }
    let calls: HashMap<u64, &Call> = truth
        .calls
        .iter()
        .map(|call| (call.ordinal, call))
        .collect();
    let mut score = Score {
        operations: truth.operations.len() as u64,
        ..Score::default()
    };
    for operation in &truth.operations {
        let truly = operation.label.and_then(|label| noted.requests_of(label));
        let node = operation.graph.map(|node| node.node_id);
        let row = rows.remove(&(operation.correlation_id, node));
        let mut joined = row.map_or(Joined::NotRecorded, |row| Joined::of(row, &members, &noted));
        if let (Some(node), Some(row)) = (&operation.graph, row) {
            score.replayed += 1;
            joined = joined.and_captured(noted.captured(row, node, &calls));
        }
        match (&truly, &joined) {
            (Some(truly), Joined::To(requests)) if truly == requests => score.right += 1,
            (Some(truly), Joined::Nobody) if truly.is_empty() => score.right += 1,
            (truly, joined) => {
                let count = match joined {
                    Joined::Nobody | Joined::NotRecorded | Joined::NoTemplate => &mut score.lost,
                    Joined::To(_) | Joined::Disputed | Joined::OtherTemplate => &mut score.wrong,
                };
                *count += 1;
                if *count <= EXAMPLES {
                    let what = operation.name.as_deref().unwrap_or("a copy");
                    let truly = truly
                        .as_ref()
                        .map_or_else(|| "an unknown label".to_owned(), list);
                    score
                        .examples
                        .push(format!("{what} ran for {truly}: {joined}"));
                }
                score.unnoticed += u64::from(row.is_none_or(|row| row.faults.is_empty()));
            }
        }
    }
    // What lineage has and the device never ran.
    score.wrong += if truth.operations_not_kept == 0 {
        rows.len() as u64
    } else {
        0
    };
    score
}

/// The epochs that were merged into each batch's.
fn members(report: &Report) -> HashMap<EpochId, Vec<EpochId>> {
    let mut members: HashMap<EpochId, Vec<EpochId>> = HashMap::new();
    for observation in &report.observations {
        if let Event::Linked(link) = &observation.event
            && link.kind == LinkKind::Merge
        {
            members.entry(link.epoch.id).or_default().push(link.from.id);
        }
    }
    members
}

/// Whether lineage found the capture of a graph's kernel.
enum Captured {
    Rightly,
    Otherwise,
    Not,
}

impl Noted {
    /// Compares what a row says of a graph's kernel with what the device says.
    fn captured(&self, row: &Row, node: &GraphNode, calls: &HashMap<u64, &Call>) -> Captured {
        let Some(RowGraph {
            exec,
            replay,
            iteration,
            template,
            ..
        }) = row.graph
        else {
            return Captured::Not;
        };
        let Template::Known(template) = template else {
            return Captured::Not;
        };
        let call = node.capture_call_ordinal.and_then(|call| calls.get(&call));
        // A block for each member, padding included.
        let size = row.operation.as_ref().map(|operation| operation.grid[0]);
        let epoch = size.and_then(|size| self.graphs.get(&(size as usize)));
        let rightly = exec == Some(node.graph_id)
            && replay == Some(node.launch.into())
            && iteration == 1
            && template.node == node.source_node_id
            && template.captured_by.map(|call| call.wire().0)
                == call.map(|call| call.correlation_id)
            && epoch.is_some_and(|epoch| template.capture == Attribution::Epoch(*epoch));
        if rightly {
            Captured::Rightly
        } else {
            Captured::Otherwise
        }
    }
}

/// To whom lineage joined an operation.
enum Joined {
    To(BTreeSet<u64>),
    Nobody,
    Disputed,
    NotRecorded,
    /// A graph's kernel, whose capture is not known.
    NoTemplate,
    /// A graph's kernel, joined to another capture, launch or graph than its own.
    OtherTemplate,
}

impl Joined {
    fn and_captured(self, captured: Captured) -> Self {
        match captured {
            Captured::Rightly => self,
            Captured::Otherwise => Self::OtherTemplate,
            Captured::Not => Self::NoTemplate,
        }
    }

    fn of(row: &Row, members: &HashMap<EpochId, Vec<EpochId>>, noted: &Noted) -> Self {
        let number = |epoch: &EpochId| noted.declared.get(epoch).copied();
        match row.binding {
            Binding::Bound(epoch) => Self::To(match (number(&epoch.id), members.get(&epoch.id)) {
                (Some(request), _) => BTreeSet::from([request]),
                // An epoch that no handler declared is nobody's: request 0.
                (None, Some(members)) => members
                    .iter()
                    .map(|member| number(member).unwrap_or(0))
                    .collect(),
                (None, None) => BTreeSet::from([0]),
            }),
            Binding::Disputed(..) => Self::Disputed,
            _ => Self::Nobody,
        }
    }
}

impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(requests) => write!(f, "joined to {}", list(requests)),
            Self::Nobody => f.write_str("joined to nobody"),
            Self::Disputed => f.write_str("its sources disagree"),
            Self::NotRecorded => f.write_str("not recorded"),
            Self::NoTemplate => f.write_str("its capture is not known"),
            Self::OtherTemplate => f.write_str("joined to another capture or replay"),
        }
    }
}

fn list(requests: &BTreeSet<u64>) -> String {
    let numbers: Vec<_> = requests.iter().map(u64::to_string).collect();
    match numbers.as_slice() {
        [] => "no request".to_owned(),
        [one] => format!("request {one}"),
        _ => format!("requests {}", numbers.join(", ")),
    }
}
