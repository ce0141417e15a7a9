//! Tokens: the steps of requests, and the time between them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::samples::{Samples, Summary};
use crate::id::{HostNanos, LaunchEpoch, ProcessOrdinal};
use crate::observation::{Event, LinkKind, Observation};
use crate::row::{Binding, Row};

/// What a service promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Objective {
    /// The first token of a request, at most so long after it was declared.
    pub first_token_ns: Option<u64>,
    /// A later token, at most so long after the one before.
    pub between_tokens_ns: Option<u64>,
}

/// How figures are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenOptions {
    /// Requests that were declared within so long after the first one are warm-up: they are kept
    /// apart. Default 0.
    pub warm_up_ns: u64,
    /// What is promised. Default: nothing.
    pub objective: Objective,
    /// Steps that are kept, 24 bytes each, and members of batches, 16 bytes each; beyond it they
    /// are counted only. Default 4,194,304.
    pub limit: usize,
}

impl Default for TokenOptions {
    fn default() -> Self {
        Self {
            warm_up_ns: 0,
            objective: Objective::default(),
            limit: 1 << 22,
        }
    }
}

/// How often a promise was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Missed {
    /// What was promised, in nanoseconds.
    pub objective_ns: u64,
    /// How many there were.
    pub count: u64,
    /// How many took longer.
    pub missed: u64,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// Figures of a set of requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RequestFigures {
    /// Requests with at least one token.
    pub requests: u64,
    /// Their tokens.
    pub tokens: u64,
    /// From a request's declaration to the end of its first step.
    pub first_token: Summary,
    /// Every time between two tokens of one request that follow one another, of all requests
    /// together ("inter-token latency").
    pub between_tokens: Summary,
    /// For each request with two tokens or more, the mean time between its tokens ("time per
    /// output token"): one value a request, however many tokens it has.
    pub per_output_token: Summary,
    /// Requests with a single token: of these, no time between tokens is defined.
    pub single_token: u64,
    /// From the first declaration to the last token.
    pub span_ns: u64,
    /// How often the first token came too late, where that was promised.
    pub first_token_missed: Option<Missed>,
    /// How often a later token came too late, where that was promised.
    pub between_tokens_missed: Option<Missed>,
}

impl RequestFigures {
    /// Tokens a second; `None` where nothing took any time.
    pub fn tokens_per_second(&self) -> Option<f64> {
        (self.span_ns > 0).then(|| self.tokens as f64 * 1e9 / self.span_ns as f64)
    }
}

/// Figures of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TokenFigures {
    /// Of requests behind the warm-up.
    pub served: RequestFigures,
    /// Of those within it.
    pub warm_up: RequestFigures,
    /// Requests that were declared and have no step.
    pub without_tokens: u64,
    /// Steps and members that could not be kept.
    pub not_kept: u64,
}

/// A process's epoch, without its version.
type Id = (ProcessOrdinal, u64);

#[derive(Debug, Default)]
struct Request {
    declared: u64,
    /// Ends of its steps, in nanoseconds.
    tokens: Vec<u64>,
}

/// Finds the tokens of requests.
///
/// A **request** is a declared epoch that is no batch, and no part of other work. A **step** is one
/// version of a batch; of a request that is in no batch, one version of its own. A step is over
/// when its last operation has ended, and then each request that takes part has a **token**. What a
/// request launches for itself before it joins a batch, as the reading of its prompt, is no token.
#[derive(Debug)]
pub struct Tokens {
    options: TokenOptions,
    /// By declaration: whether it is a request, and when it was declared.
    declared: FxHashMap<Id, u64>,
    /// What an epoch is a part of, and whether it is the same work that goes on under a fresh id.
    part_of: FxHashMap<Id, (Id, bool)>,
    /// The members of batches.
    members: FxHashMap<Id, Vec<Id>>,
    /// When the last operation of each version of an epoch ended.
    steps: BTreeMap<(Id, u32), u64>,
    kept: usize,
    not_kept: u64,
}

impl Tokens {
    /// Finds them with these options.
    pub fn new(options: TokenOptions) -> Self {
        Self {
            options,
            declared: FxHashMap::default(),
            part_of: FxHashMap::default(),
            members: FxHashMap::default(),
            steps: BTreeMap::new(),
            kept: 0,
            not_kept: 0,
        }
    }

    fn has_room(&mut self) -> bool {
        let room = self.kept < self.options.limit;
        if room {
            self.kept += 1;
        } else {
            self.not_kept += 1;
        }
        room
    }

    /// Takes what was observed.
    pub fn observe(&mut self, observation: &Observation) {
        let process = observation.process;
        let id = |epoch: LaunchEpoch| (process, epoch.id.get());
        match &observation.event {
            Event::Declared(declared) => self.declared(id(declared.epoch), declared.at),
            Event::Linked(linked) => self.linked(id(linked.epoch), id(linked.from), linked.kind),
            _ => {}
        }
    }

    fn declared(&mut self, id: Id, at: HostNanos) {
        if self.has_room() {
            self.declared.insert(id, at.0);
        }
    }

    fn linked(&mut self, id: Id, from: Id, kind: LinkKind) {
        // A version's retry, say, leads from an epoch to itself.
        if id == from || !self.has_room() {
            return;
        }
        match kind {
            LinkKind::Merge => self.members.entry(id).or_default().push(from),
            _ => {
                self.part_of.insert(id, (from, kind != LinkKind::Fork));
            }
        }
    }

    /// Takes a row.
    pub fn row(&mut self, row: &Row) {
        let Binding::Bound(epoch) = row.binding else {
            return;
        };
        let Some(HostNanos(end)) = row.operation.as_ref().and_then(|operation| operation.end)
        else {
            return;
        };
        let step = ((row.process, epoch.id.get()), epoch.version.get());
        if !self.steps.contains_key(&step) && !self.has_room() {
            return;
        }
        let last = self.steps.entry(step).or_default();
        *last = end.max(*last);
    }

    /// What this is a part of in the end; through forks, too, if asked. A ring of links, which no
    /// honest recording has, ends.
    fn above(&self, mut id: Id, through_forks: bool) -> Id {
        for _ in 0..1_000 {
            match self.part_of.get(&id) {
                Some(&(above, goes_on)) if goes_on || through_forks => id = above,
                _ => break,
            }
        }
        id
    }

    /// The request or batch that this is a part of.
    fn whole(&self, id: Id) -> Id {
        self.above(id, true)
    }

    /// The figures of all that was taken.
    pub fn figures(&self) -> TokenFigures {
        let mut requests: FxHashMap<Id, Request> = FxHashMap::default();
        for (&id, &declared) in &self.declared {
            if !self.members.contains_key(&self.whole(id)) && !self.part_of.contains_key(&id) {
                let tokens = Vec::new();
                requests.insert(id, Request { declared, tokens });
            }
        }
        let in_batch: rustc_hash::FxHashSet<Id> = self
            .members
            .values()
            .flatten()
            .map(|&member| self.whole(member))
            .collect();
        for (&(id, _), &end) in &self.steps {
            // A fork's work is within its parent's step, and makes none of its own.
            let whole = self.above(id, false);
            if let Some(members) = self.members.get(&whole) {
                for &member in members {
                    if let Some(request) = requests.get_mut(&self.whole(member)) {
                        request.tokens.push(end);
                    }
                }
            } else if !in_batch.contains(&whole)
                && let Some(request) = requests.get_mut(&whole)
            {
                request.tokens.push(end);
            }
        }
        let mut requests: Vec<Request> = requests.into_values().collect();
        for request in &mut requests {
            request.tokens.sort_unstable();
            // Two batches whose last operations end at one moment give one token.
            request.tokens.dedup();
        }
        let without_tokens = requests.iter().filter(|request| request.tokens.is_empty());
        let without_tokens = without_tokens.count() as u64;
        requests.retain(|request| !request.tokens.is_empty());
        let first = requests.iter().map(|request| request.declared).min();
        let warm_until = first.unwrap_or(0).saturating_add(self.options.warm_up_ns);
        let (warm, served): (Vec<Request>, Vec<Request>) = requests
            .into_iter()
            .partition(|request| request.declared < warm_until);
        TokenFigures {
            served: self.figures_of(&served),
            warm_up: self.figures_of(&warm),
            without_tokens,
            not_kept: self.not_kept,
        }
    }

    fn figures_of(&self, requests: &[Request]) -> RequestFigures {
        let limit = self.options.limit;
        let mut first_token = Samples::new(limit);
        let mut between_tokens = Samples::new(limit);
        let mut per_output_token = Samples::new(limit);
        let (mut tokens, mut single_token) = (0, 0);
        for request in requests {
            tokens += request.tokens.len() as u64;
            let (Some(&first), Some(&last)) = (request.tokens.first(), request.tokens.last())
            else {
                continue;
            };
            // A token before the declaration is a fault of the recording, which rows tell.
            if let Some(after) = first.checked_sub(request.declared) {
                first_token.add(after);
            }
            for pair in request.tokens.windows(2) {
                between_tokens.add(pair[1] - pair[0]);
            }
            match request.tokens.len() as u64 - 1 {
                0 => single_token += 1,
                gaps => per_output_token.add((last - first) / gaps),
            }
        }
        let began = requests.iter().map(|request| request.declared).min();
        let ended = requests
            .iter()
            .filter_map(|request| request.tokens.last())
            .max();
        let missed = |samples: &Samples, objective: Option<u64>| {
            objective.map(|objective_ns| Missed {
                objective_ns,
                count: samples.count(),
                missed: samples.beyond(objective_ns),
                max_ns: samples.summary().max_ns,
            })
        };
        let objective = self.options.objective;
        RequestFigures {
            requests: requests.len() as u64,
            tokens,
            first_token: first_token.summary(),
            between_tokens: between_tokens.summary(),
            per_output_token: per_output_token.summary(),
            single_token,
            span_ns: began
                .zip(ended)
                .map_or(0, |(began, ended)| ended.saturating_sub(began)),
            first_token_missed: missed(&first_token, objective.first_token_ns),
            between_tokens_missed: missed(&between_tokens, objective.between_tokens_ns),
        }
    }
}
