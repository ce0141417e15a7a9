//! Histories that nobody thought of. What is exported must not depend on when the session says how
//! far it has come; and from every request one walks to all of its kernels, as the history has them.

use std::collections::{BTreeMap, BTreeSet};

use lineage_core::id::LaunchEpoch;
use lineage_core::observation::LinkKind;
use opentelemetry_sdk::trace::SpanData;
use proptest::prelude::*;

use super::support::*;
use crate::attributes as names;
use crate::spans::{Detail, Volume};

#[derive(Debug, Clone)]
enum What {
    Declare {
        parent: Option<(u128, u8)>,
        fork_of: Option<u64>,
    },
    Merge(Vec<u64>),
    Step(u32),
    Retire,
    Kernel {
        version: u32,
        called: u64,
        start: u64,
    },
}

/// Something that is told of an epoch, at a time.
#[derive(Debug, Clone)]
struct Told {
    at: u64,
    id: u64,
    what: What,
}

#[derive(Debug)]
struct History {
    told: Vec<Told>,
    /// Kernels by start, which tells them apart.
    kernels: Vec<(u64, LaunchEpoch)>,
    members: BTreeMap<u64, Vec<u64>>,
    origins: BTreeMap<u64, u64>,
    unsampled: BTreeSet<u64>,
    epochs: u64,
}

/// The next of a row of numbers that look random, below a bound.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// `late`: whether work may be declared for what is over. Its kernels are found, but what is exported
/// of the earlier work does not count them.
fn history(seed: u64, late: bool) -> History {
    let mut dice = Dice(seed);
    let epochs = 3 + dice.below(12);
    let mut made = History {
        told: Vec::new(),
        kernels: Vec::new(),
        members: BTreeMap::new(),
        origins: BTreeMap::new(),
        unsampled: BTreeSet::new(),
        epochs,
    };
    let mut lives: Vec<(u64, u64)> = Vec::new();
    let mut now = 1_000;
    let mut start = 1_000_000;
    for id in 1..=epochs {
        now += 1 + dice.below(500);
        let alive = lives.iter().filter(|(_, until)| late || *until > now);
        let alive: Vec<u64> = alive.map(|&(id, _)| id).collect();
        let kind = if alive.is_empty() { 0 } else { dice.below(4) };
        let what = match kind {
            0 | 1 => {
                let parent = (dice.below(3) > 0).then(|| {
                    let flags = u8::from(dice.below(4) > 0);
                    if flags == 0 {
                        made.unsampled.insert(id);
                    }
                    (u128::from(id) << 64 | 0xabc, flags)
                });
                What::Declare {
                    parent,
                    fork_of: None,
                }
            }
            2 => {
                let of = alive[dice.below(alive.len() as u64) as usize];
                made.origins.insert(id, of);
                What::Declare {
                    parent: None,
                    fork_of: Some(of),
                }
            }
            _ => {
                let mut members = alive.clone();
                members.retain(|_| dice.below(2) == 0);
                if members.is_empty() {
                    members.push(alive[0]);
                }
                made.members.insert(id, members.clone());
                What::Merge(members)
            }
        };
        made.told.push(Told { at: now, id, what });
        let mut then = now;
        let versions = 1 + dice.below(3) as u32;
        for version in 1..=versions {
            then += 1 + dice.below(800);
            if version > 1 {
                made.told.push(Told {
                    at: then,
                    id,
                    what: What::Step(version),
                });
            }
            for _ in 0..dice.below(3) {
                then += 1 + dice.below(100);
                start += 1_000;
                let of = epoch(id, version);
                made.kernels.push((start, of));
                // The row comes when it comes.
                let told_at = then + dice.below(5_000);
                made.told.push(Told {
                    at: told_at,
                    id,
                    what: What::Kernel {
                        version,
                        called: then,
                        start,
                    },
                });
            }
        }
        then += 1 + dice.below(300);
        lives.push((id, then));
        made.told.push(Told {
            at: then,
            id,
            what: What::Retire,
        });
    }
    made.told.sort_by_key(|told| told.at);
    made
}

/// Tells a history; with progress wherever the dice say so, or at the end alone.
fn export(history: &History, mut progress: Option<Dice>) -> Vec<SpanData> {
    let mut session = Session::new(Volume::of_all(Detail::Everything));
    for (index, told) in history.told.iter().enumerate() {
        match &told.what {
            What::Declare { parent, fork_of } => {
                session.declare(told.id, told.at);
                if let Some((trace, flags)) = *parent {
                    session.child_of(told.id, trace, 0xdef, flags);
                }
                if let Some(of) = *fork_of {
                    session.link(told.id, epoch(of, 1), LinkKind::Fork);
                }
            }
            What::Merge(members) => {
                session.merge(told.id, members, told.at);
            }
            What::Step(version) => {
                session.step(epoch(told.id, *version), told.at);
            }
            What::Retire => {
                session.retire(told.id, told.at);
            }
            What::Kernel {
                version,
                called,
                start,
            } => {
                session.kernel_called(epoch(told.id, *version), *called, *start, start + 500);
            }
        }
        if let Some(dice) = &mut progress
            && dice.below(3) == 0
        {
            let read = told.at;
            let to_come = history.told[index + 1..]
                .iter()
                .filter_map(|later| match later.what {
                    What::Kernel { called, .. } => Some(called),
                    _ => None,
                });
            let settled = to_come.min().map_or(read, |called| called.min(read));
            session.progress_to(read, settled);
        }
    }
    session.end();
    let mut spans = session.out;
    spans.sort_by_key(|span| span.span_context.span_id().to_bytes());
    spans
}

impl History {
    /// The epoch whose head decides about this one, and those that this one's work is done for.
    fn served(&self, id: u64) -> BTreeSet<u64> {
        if let Some(members) = self.members.get(&id) {
            return members
                .iter()
                .flat_map(|&member| self.served(member))
                .collect();
        }
        match self.origins.get(&id) {
            Some(&origin) => self.served(origin),
            None => [id].into(),
        }
    }
}

/// Starts of the kernels that one reaches from a span: below it, and over links to batches.
fn reached(spans: &[SpanData], from: &SpanData, found: &mut BTreeSet<u64>) {
    let below = spans.iter().filter(|span| {
        span.parent_span_id == from.span_context.span_id()
            && span.span_context.trace_id() == from.span_context.trace_id()
    });
    for span in below {
        match text(span, names::SPAN).as_str() {
            "operation" => {
                found.insert(times(span).0);
            }
            "participation" => {
                let [(trace, id)] = links(span, "batch")[..] else {
                    panic!("one link to a batch");
                };
                let batch = spans.iter().find(|span| {
                    (span.span_context.trace_id(), span.span_context.span_id()) == (trace, id)
                });
                reached(spans, batch.expect("its batch is there"), found);
            }
            _ => reached(spans, span, found),
        }
    }
}

/// As much of a span as tells two of them apart, in a few lines.
fn about(span: &SpanData) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} {:?} under {}",
            span.name,
            place(span),
            span.parent_span_id
        ),
        format!("{:?}", times(span)),
    ];
    lines.extend(
        span.attributes
            .iter()
            .map(|it| format!("{} {}", it.key, it.value)),
    );
    lines.extend(
        span.links
            .links
            .iter()
            .map(|link| format!("{:?}", link.span_context)),
    );
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whenever_progress_is_told_the_same_is_exported(seed in any::<u64>(), when in any::<u64>()) {
        let history = history(seed, false);
        let (once, often) = (export(&history, None), export(&history, Some(Dice(when))));
        let differs = once.iter().zip(&often).find(|(once, often)| once != often);
        prop_assert!(differs.is_none(), "{:#?}", differs.map(|(once, often)| [about(once), about(often)]));
        prop_assert_eq!(once.len(), often.len());
    }

    #[test]
    fn one_walks_from_every_request_to_all_of_its_kernels(seed in any::<u64>(), when in any::<u64>()) {
        let history = history(seed, true);
        let spans = export(&history, Some(Dice(when)));
        let tops = (1..=history.epochs)
            .filter(|id| !history.members.contains_key(id) && !history.origins.contains_key(id));
        for request in tops {
            let span = spans.iter().find(|span| {
                span.span_context.span_id() == ids().epoch(epoch(request, 1))
            });
            prop_assert_eq!(span.is_none(), history.unsampled.contains(&request));
            let Some(span) = span else { continue };
            let mut found = BTreeSet::new();
            reached(&spans, span, &mut found);
            let expected: BTreeSet<u64> = history
                .kernels
                .iter()
                .filter(|(_, of)| history.served(of.id.get()).contains(&request))
                .map(|&(start, _)| start)
                .collect();
            prop_assert_eq!(found, expected, "of request {}", request);
        }
    }
}
