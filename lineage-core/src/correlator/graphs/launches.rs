//! Launches of graphs: what each means, and which number it has.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use super::templates::{ExecRef, Meant};
use super::windows::Windows;
use crate::correlator::calls::CallRef;
use crate::correlator::epochs::AGED_AFTER;
use crate::correlator::session::{Context, Session};
use crate::correlator::unwrap::id_of;
use crate::id::HostNanos;
use crate::observation::{Gap, GraphChange, GraphEvent, GraphLaunch};

/// Flushes for which a launch is kept whose call is under way.
pub(in super::super) const UNDER_WAY: u64 = 1_024;

/// What is known of a call's graph.
#[derive(Debug, Default)]
pub(in super::super) struct Launch {
    /// The launch itself, where its record came.
    pub(super) told: Option<Told>,
    /// How often each node of the generation has run in it, by its place among them.
    pub(super) ran: Vec<u32>,
    /// The same of nodes that are not known.
    pub(super) ran_unknown: FxHashMap<u64, u32>,
}

/// The record of a launch.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) exec: u32,
    pub(super) sequence: u64,
    pub(super) at: HostNanos,
    /// Flushes of the process when it came.
    since: u64,
    /// What the id meant; `None` as long as changes from before it are missing.
    pub(super) meant: Option<Meant>,
    /// The generation, which is known also after it is gone.
    pub(super) generation: u32,
    pub(super) replay: Option<u64>,
    is_open: bool,
}

/// Launches that wait.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// For changes from before them, by the last of those, and how many they are.
    changes: BTreeMap<u64, Vec<CallRef>>,
    waiting: usize,
    /// For launches from before them, which other rings may hold.
    launches: VecDeque<(CallRef, u64)>,
    /// Between which times launches may have been missed.
    gaps: Windows,
}

/// What may still come of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct LaunchMissing {
    /// Changes from before it.
    pub(in super::super) changes: bool,
    /// Launches from before it, or earlier runs of its nodes.
    pub(in super::super) order: bool,
}

impl Launch {
    /// No operation of it has a row.
    pub(in super::super) fn forget_runs(&mut self) {
        self.ran.clear();
        self.ran_unknown.clear();
    }
}

impl Session {
    /// A graph changed.
    pub(in super::super) fn graph(&mut self, event: &GraphEvent, context: &mut Context<'_>) {
        let wire = event.correlation.filter(|wire| wire.0 != 0);
        let key = wire.map(|wire| self.ids.place(wire, event.at.0));
        let captured_by = key.map(id_of);
        let bound = context.limits.graph_nodes;
        let change = self.graphs.change(event, captured_by, bound);
        let totals = &mut context.out.totals;
        totals.duplicates += u64::from(change.duplicate);
        totals.graphs.graphs += change.graphs;
        totals.graphs.executables += change.execs;
        totals.graphs.changes_lost += change.lost;
        if change.forgotten > 0 {
            context.out.forget(context.process, change.forgotten);
        }
        if let (GraphChange::NodeCreated { .. }, Some(key)) = (&event.change, key) {
            self.capture(key, context);
        }
        let asks_for_work = matches!(
            event.change,
            GraphChange::NodeCreated { .. } | GraphChange::ParametersSet { .. }
        );
        if let (true, Some(epoch)) = (asks_for_work, event.attribution.epoch()) {
            context.launched(epoch);
        }
        let newest = self.graphs.newest();
        while let Some(first) = self.graphs.pending.changes.first_entry() {
            if *first.key() > newest {
                break;
            }
            let waited = first.remove();
            self.graphs.pending.waiting -= waited.len();
            for call in waited {
                if let Some(slot) = self.calls.at(call) {
                    self.resolve(slot);
                    self.changed(slot, context);
                }
            }
        }
    }

    /// A graph was launched.
    pub(in super::super) fn launch(&mut self, launch: &GraphLaunch, context: &mut Context<'_>) {
        context.out.totals.graphs.launches += 1;
        self.graphs.has_launches = true;
        if launch.correlation.0 == 0 {
            return;
        }
        let key = self.ids.place(launch.correlation, launch.at.0);
        self.ids.note(key, launch.at.0);
        let slot = self.entry_of_record(key, context);
        let call = self.calls.reference(slot);
        let entry = self.calls.get_mut(slot);
        let graph = entry.graph.get_or_insert_default();
        if graph.told.is_some() {
            context.out.totals.duplicates += 1;
            return;
        }
        graph.told = Some(Told {
            exec: launch.exec,
            sequence: launch.sequence.0,
            at: launch.at,
            since: context.flushes,
            meant: None,
            generation: 0,
            replay: None,
            is_open: false,
        });
        let pending = &mut self.graphs.pending;
        pending.launches.push_back((call, context.flushes));
        if launch.sequence.0 > self.graphs.newest() {
            let pending = &mut self.graphs.pending;
            let waiting = pending.changes.entry(launch.sequence.0);
            waiting.or_default().push(call);
            pending.waiting += 1;
        } else {
            self.resolve(slot);
        }
        self.changed(slot, context);
    }

    /// Forgets launches that wait for something, and whose calls are gone.
    pub(in super::super) fn prune_launches(&mut self) {
        let most = 2 * self.open_count + 1_024;
        let (calls, pending) = (&self.calls, &mut self.graphs.pending);
        if pending.launches.len() > most {
            pending
                .launches
                .retain(|(call, _)| calls.at(*call).is_some());
        }
        if pending.waiting > most {
            pending.changes.retain(|_, waiting| {
                waiting.retain(|call| calls.at(*call).is_some());
                !waiting.is_empty()
            });
            pending.waiting = pending.changes.values().map(Vec::len).sum();
        }
    }

    /// Launches may have been missed.
    pub(in super::super) fn graph_gap(&mut self, gap: &Gap) {
        let from = gap.not_before.unwrap_or(HostNanos(0));
        self.graphs.pending.gaps.add(from, gap.not_after);
    }

    /// A flush returned: launches from before the one before it are here, and have their numbers.
    pub(in super::super) fn graphs_flushed(&mut self, context: &mut Context<'_>) {
        while let Some(&(call, since)) = self.graphs.pending.launches.front() {
            if context.flushes < since + AGED_AFTER {
                break;
            }
            self.graphs.pending.launches.pop_front();
            if let Some(slot) = self.calls.at(call) {
                self.number(slot);
                self.changed(slot, context);
            }
        }
        self.graphs.flushed();
    }

    /// The entry whose record tells what was launched: its own, or that of the call it is nested in or
    /// that is nested in it.
    pub(super) fn launching(&self, slot: u32) -> Option<u32> {
        let entry = self.calls.get(slot);
        let tells = |slot: &u32| {
            let graph = self.calls.get(*slot).graph.as_ref();
            graph.is_some_and(|graph| graph.told.is_some())
        };
        if tells(&slot) {
            return Some(slot);
        }
        let related = entry.children.iter().chain(&entry.parent);
        related
            .filter_map(|&key| self.calls.find(key))
            .find(|slot| tells(slot))
    }

    pub(super) fn told(&self, slot: u32) -> Option<&Told> {
        self.calls.get(slot).graph.as_ref()?.told.as_ref()
    }

    fn told_mut(&mut self, slot: u32) -> Option<&mut Told> {
        self.calls.get_mut(slot).graph.as_mut()?.told.as_mut()
    }

    /// What may still come of the launch that this call is.
    pub(in super::super) fn launch_missing(
        &self,
        slot: u32,
        context: &Context<'_>,
    ) -> LaunchMissing {
        let told = self.launching(slot).and_then(|slot| self.told(slot));
        let Some(told) = told else {
            return LaunchMissing::default();
        };
        let entry = self.calls.get(slot);
        let exec = told.exec_ref().and_then(|exec| self.graphs.exec(exec));
        let may_iterate = exec.is_some_and(|exec| exec.may_iterate());
        LaunchMissing {
            changes: told.meant.is_none(),
            order: context.flushes < told.since + AGED_AFTER || (may_iterate && !entry.fenced),
        }
    }

    /// Whether a launch may rightly have no operation: all of its nodes are disabled, or run by
    /// values, or are none that CUPTI records; or it is not known what it launched.
    pub(in super::super) fn may_launch_nothing(&self, slot: u32) -> bool {
        let told = self.launching(slot).and_then(|slot| self.told(slot));
        told.is_some_and(|told| {
            let exec = told.exec_ref().and_then(|exec| self.graphs.exec(exec));
            exec.is_none_or(|exec| !exec.has_certain_work(told.sequence))
        })
    }

    /// Nothing more is due of this call: what it launched may go.
    pub(in super::super) fn close_launch(&mut self, slot: u32) {
        let Some(told) = self.told_mut(slot) else {
            return;
        };
        if std::mem::take(&mut told.is_open) {
            let (exec, sequence) = (told.exec_ref(), told.sequence);
            if let Some(exec) = exec.and_then(|exec| self.graphs.exec_mut(exec)) {
                exec.close(sequence);
            }
        }
    }

    /// Every change from before this launch is here.
    fn resolve(&mut self, slot: u32) {
        let key = self.calls.get(slot).key();
        let Some(told) = self.told(slot) else { return };
        let sequence = told.sequence;
        let meant = self.graphs.meant(told.exec, sequence);
        let mut generation = 0;
        let mut is_open = false;
        if let Meant::Exec(exec) = meant
            && let Some(exec) = self.graphs.exec_mut(exec)
        {
            exec.open(sequence, key);
            generation = exec.generation;
            is_open = true;
        }
        if let Some(told) = self.told_mut(slot) {
            told.meant = Some(meant);
            told.generation = generation;
            told.is_open = is_open;
        }
    }

    /// Gives numbers to the launches up to this one.
    pub(super) fn number(&mut self, slot: u32) {
        let until = self.calls.get(slot).key();
        let exec = self.told(slot).and_then(Told::exec_ref);
        let Some(exec) = exec else { return };
        loop {
            let Some(known) = self.graphs.exec_mut(exec) else {
                return;
            };
            let created_at = known.created_at;
            let Some(key) = known.next_unnumbered(until) else {
                return;
            };
            let slot = self.calls.find(key);
            if slot.is_some_and(|slot| self.calls.get(slot).failed()) {
                continue;
            }
            let number = self.graphs.exec_mut(exec).and_then(|exec| exec.number());
            let Some(at) = slot.and_then(|slot| self.told(slot)).map(|told| told.at) else {
                continue;
            };
            let missed = self.graphs.pending.gaps.meet(created_at, at);
            if let Some(told) = slot.and_then(|slot| self.told_mut(slot)) {
                told.replay = number.filter(|_| !missed);
            }
        }
    }
}

impl Told {
    pub(super) fn exec_ref(&self) -> Option<ExecRef> {
        match self.meant {
            Some(Meant::Exec(exec)) => Some(exec),
            _ => None,
        }
    }
}
