//! What goes out: rows and faults, and their effect on the totals.

use super::join::Joined;
use crate::fault::{FaultCode, FaultFamily};
use crate::id::{HostNanos, LaunchEpoch, ProcessOrdinal};
use crate::observation::DropSite;
use crate::row::{Binding, LooseFault, Row, RowGraph, Unattributed};
use crate::totals::{TemplateKind, Totals};

/// A set of fault codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FaultSet(u32);

impl FaultSet {
    pub(super) fn add(&mut self, code: FaultCode) {
        self.0 |= 1 << code as u32;
    }

    pub(super) fn has(self, code: FaultCode) -> bool {
        self.0 & (1 << code as u32) != 0
    }

    /// These and those.
    pub(super) fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    fn iter(self) -> impl Iterator<Item = FaultCode> {
        // Nearly every row has none: then no code is looked at.
        let codes = if self.0 == 0 { &[] } else { FaultCode::ALL };
        codes.iter().copied().filter(move |&code| self.has(code))
    }

    pub(super) fn to_vec(self) -> Vec<FaultCode> {
        self.iter().collect()
    }

    /// A lost join: see [`Totals::lost`].
    fn lost(self) -> bool {
        use FaultCode::{L01, L02, L03, L06};
        [L01, L02, L03, L06].into_iter().any(|code| self.has(code))
    }

    /// A wrong join: see [`Totals::wrong`].
    fn wrong(self) -> bool {
        self.iter().any(|code| code.family() == FaultFamily::Wrong)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    BothObserved,
    CallbackOnly,
    ExternalOnly,
    ContainmentOnly,
    Disputed,
    Lost,
    Unattributed(Unattributed),
}

/// What a row counts for, kept so that it can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect {
    class: Class,
    faults: FaultSet,
    after_retirement: bool,
    contained: bool,
    containment_differs: bool,
    unreachable: bool,
    external_missing: bool,
    /// What is known of the node it is.
    template: Option<TemplateKind>,
    /// It is a call above the last operation that was recorded.
    pub(super) after_recording: bool,
}

impl Effect {
    pub(super) fn of(joined: &Joined, faults: FaultSet, graph: Option<&RowGraph>) -> Self {
        let sources = &joined.sources;
        let epoch = match joined.binding {
            Binding::Bound(epoch) => Some(epoch),
            _ => None,
        };
        let class = match joined.binding {
            Binding::Bound(_) => {
                let names = |source: Option<crate::id::Attribution>| {
                    source.and_then(|source| source.epoch()).is_some()
                };
                match (names(sources.external), names(sources.callback)) {
                    (true, true) => Class::BothObserved,
                    (true, false) => Class::ExternalOnly,
                    (false, true) => Class::CallbackOnly,
                    (false, false) => Class::ContainmentOnly,
                }
            }
            Binding::Disputed(..) => Class::Disputed,
            Binding::Lost => Class::Lost,
            Binding::Unattributed(why) => Class::Unattributed(why),
        };
        let scope = sources.containment.filter(|_| epoch.is_some());
        Self {
            class,
            faults,
            after_retirement: joined.after_retirement,
            contained: scope.is_some(),
            containment_differs: scope.is_some_and(|scope| scope.epoch() != epoch),
            unreachable: epoch.is_some() && sources.reachable == Some(false),
            external_missing: joined.external_missing,
            template: graph.and_then(|graph| TemplateKind::of(&graph.template)),
            after_recording: false,
        }
    }

    /// Whether the row had this fault.
    pub(super) fn has(self, code: FaultCode) -> bool {
        self.faults.has(code)
    }

    fn apply(self, totals: &mut Totals, step: fn(&mut u64)) {
        step(&mut totals.rows);
        match self.class {
            Class::BothObserved => step(&mut totals.bound_by.external_and_callback),
            Class::CallbackOnly => step(&mut totals.bound_by.callback_only),
            Class::ExternalOnly => step(&mut totals.bound_by.external_only),
            Class::ContainmentOnly => step(&mut totals.bound_by.containment_only),
            Class::Disputed => step(&mut totals.disputed),
            Class::Unattributed(why) => step(totals.unattributed.of(why)),
            Class::Lost => {}
        }
        let bound = matches!(
            self.class,
            Class::BothObserved
                | Class::CallbackOnly
                | Class::ExternalOnly
                | Class::ContainmentOnly
        );
        for (holds, count) in [
            (bound, &mut totals.bound),
            (self.faults.lost(), &mut totals.lost),
            (self.faults.wrong(), &mut totals.wrong),
            (self.after_retirement, &mut totals.after_retirement),
            (self.contained, &mut totals.contained),
            (self.containment_differs, &mut totals.containment_differs),
            (self.unreachable, &mut totals.unreachable),
            (self.external_missing, &mut totals.external_missing),
            (self.after_recording, &mut totals.after_recording),
        ] {
            if holds {
                step(count);
            }
        }
        if let Some(template) = self.template {
            step(totals.graphs.of(template));
        }
        for code in self.faults.iter() {
            step(totals.faults.of(code));
        }
    }
}

/// Rows and faults on their way out, and the totals.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    rows: Vec<Row>,
    faults: Vec<LooseFault>,
    undrained: usize,
    /// Forgotten since the last drain, by process.
    forgotten: Vec<(ProcessOrdinal, u64)>,
    pub(super) totals: Totals,
}

impl Outbox {
    pub(super) fn new(undrained: usize) -> Self {
        Self {
            undrained: undrained.max(1),
            ..Self::default()
        }
    }

    /// Gives a row; what it takes the place of is taken back.
    pub(super) fn row(&mut self, row: Row, effect: Effect, superseded: Option<Effect>) {
        if let Some(earlier) = superseded {
            self.totals.superseded += 1;
            earlier.apply(&mut self.totals, |count| *count = count.saturating_sub(1));
        }
        effect.apply(&mut self.totals, |count| *count += 1);
        self.forget_oldest(|out| &mut out.rows, |row| row.process);
        self.rows.push(row);
    }

    /// Gives a fault that belongs to no row.
    pub(super) fn fault(&mut self, fault: LooseFault) {
        *self.totals.faults.of(fault.code) += fault.count;
        self.forget_oldest(|out| &mut out.faults, |fault| fault.process);
        self.faults.push(fault);
    }

    /// Makes room where nobody drains: the oldest eighth gives way at once, since moving the rest up
    /// is dear.
    fn forget_oldest<T>(
        &mut self,
        list: fn(&mut Self) -> &mut Vec<T>,
        of: fn(&T) -> ProcessOrdinal,
    ) {
        let bound = self.undrained;
        let list = list(self);
        if list.len() < bound {
            return;
        }
        let oldest: Vec<ProcessOrdinal> = list
            .drain(..(bound / 8).max(1))
            .map(|gone| of(&gone))
            .collect();
        for process in oldest {
            self.forget(process, 1);
        }
    }

    /// Notes that something was forgotten to stay within the limits.
    pub(super) fn forget(&mut self, process: ProcessOrdinal, count: u64) {
        self.totals.evicted += count;
        *self.totals.dropped.of(DropSite::Correlator) += count;
        match self
            .forgotten
            .iter_mut()
            .find(|(known, _)| *known == process)
        {
            Some((_, forgotten)) => *forgotten += count,
            None => self.forgotten.push((process, count)),
        }
    }

    /// Moves everything out.
    pub(super) fn drain(&mut self, rows: &mut Vec<Row>, faults: &mut Vec<LooseFault>) {
        for (process, count) in std::mem::take(&mut self.forgotten) {
            let detail =
                format!("the correlator forgot the oldest {count} it held: its limits are reached");
            self.fault(loose(process, FaultCode::L07, None, None, count, detail));
        }
        move_all(&mut self.rows, rows);
        move_all(&mut self.faults, faults);
    }
}

/// Appends, and leaves what was taken from with room for as many again.
fn move_all<T>(from: &mut Vec<T>, to: &mut Vec<T>) {
    if to.is_empty() {
        std::mem::swap(from, to);
    } else {
        to.append(from);
    }
}

/// A fault that belongs to no row.
pub(super) fn loose(
    process: ProcessOrdinal,
    code: FaultCode,
    epoch: Option<LaunchEpoch>,
    at: Option<HostNanos>,
    count: u64,
    detail: String,
) -> LooseFault {
    LooseFault {
        process,
        code,
        epoch,
        at,
        count,
        detail,
    }
}
