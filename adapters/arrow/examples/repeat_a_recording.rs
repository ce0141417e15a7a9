//! A long recording made of a short one, one time after the other: what reading it takes is measured on it.
//!
//! ```text
//! cargo run --release -p lineage-arrow --example repeat_a_recording -- run.lineage 400 long.lineage
//! ```
//!
//! Each time has ids of its own for epochs, handoffs and calls, and begins where the one before ended.

use std::error::Error;

use lineage_arrow::{Reader, Writer};
use lineage_core::evidence::Evidence;
use lineage_core::id::{
    Attribution, CorrelationId, EpochId, HandoffId, HostNanos, LaunchEpoch, PackedEpoch,
    UnwrappedCorrelationId,
};
use lineage_core::ledger::Entry;
use lineage_core::observation::{DeviceSession, Event, Operation, SchedulerSession};
use lineage_core::part::Times;
use lineage_core::row::{Binding, Row};
use lineage_core::source::{SessionInfo, Sink};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(times), Some(to)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: repeat_a_recording FROM.lineage TIMES TO.lineage".into());
    };
    let times: u64 = times.parse()?;
    let reader = Reader::open(&from)?;
    let header = reader.header();
    let entries: Vec<Entry> = reader.collect::<Result<_, _>>()?;
    let mut end = header.started;
    for entry in &entries {
        let of = match entry {
            Entry::Observation(of) => Times::of_observation(of),
            Entry::Row(of) => Times::of_row(of),
            _ => None,
        };
        end = end.max(of.and_then(|of| of.host).unwrap_or_default());
    }
    let mut session = SessionInfo::new(header.process, &*header.service, header.started);
    if let Some(unix_ns) = header.started_unix_ns {
        session = session.started_at_unix_ns(unix_ns);
    }
    let mut writer = Writer::new(&to).replace(true);
    writer.begin(&session)?;
    for number in 0..times {
        let again = Again {
            later_ns: number * (end.0 - header.started.0),
            number,
        };
        let is_last = number + 1 == times;
        for entry in &entries {
            match entry {
                Entry::Observation(of) => {
                    let mut of = of.clone();
                    // What is said of the whole session is said once.
                    if again.event(&mut of.event, is_last) {
                        writer.observations(&[of])?;
                    }
                }
                Entry::Row(of) => {
                    let mut of = of.clone();
                    again.row(&mut of);
                    writer.rows(&[of], &[])?;
                }
                _ => {}
            }
        }
    }
    writer.finish()?;
    println!("{:?}", writer.counts());
    Ok(())
}

/// Ids that a short recording does not reach.
const IDS: u64 = 100_000;

struct Again {
    later_ns: u64,
    number: u64,
}

impl Again {
    fn at(&self, at: &mut HostNanos) {
        at.0 += self.later_ns;
    }

    fn all<const COUNT: usize>(&self, all: [&mut Option<HostNanos>; COUNT]) {
        all.into_iter().flatten().for_each(|at| self.at(at));
    }

    fn epoch(&self, epoch: &mut LaunchEpoch) {
        if let Some(id) = EpochId::new(epoch.id.get() + self.number * IDS) {
            epoch.id = id;
        }
    }

    fn attribution(&self, attribution: &mut Attribution) {
        if let Attribution::Epoch(epoch) = attribution {
            self.epoch(epoch);
        }
    }

    fn handoff(&self, id: &mut HandoffId) {
        id.0 += self.number * IDS;
    }

    fn correlation(&self, id: &mut CorrelationId) {
        id.0 = id.0.wrapping_add((self.number * IDS) as u32);
    }

    fn evidence(&self, evidence: &mut Evidence) {
        match evidence {
            Evidence::Observed { at, .. } | Evidence::Inferred { at, .. } => self.at(at),
            Evidence::Bounded {
                not_before,
                not_after,
                ..
            } => self.all([not_before, not_after]),
            _ => {}
        }
    }

    fn operation(&self, of: &mut Operation) {
        self.correlation(&mut of.correlation);
        self.all([
            &mut of.queued,
            &mut of.submitted,
            &mut of.start,
            &mut of.end,
        ]);
    }

    fn row(&self, row: &mut Row) {
        if let Some(call) = &mut row.call {
            let UnwrappedCorrelationId(id) = &mut call.correlation;
            *id += self.number * IDS;
        }
        if let Some(operation) = &mut row.operation {
            self.operation(operation);
        }
        if let Binding::Bound(epoch) = &mut row.binding {
            self.epoch(epoch);
        }
        let stages = &mut row.stages;
        for stage in [
            &mut stages.declared,
            &mut stages.ready,
            &mut stages.scope_enter,
            &mut stages.api_enter,
            &mut stages.api_exit,
            &mut stages.queued,
            &mut stages.submitted,
            &mut stages.start,
            &mut stages.end,
        ] {
            self.evidence(stage);
        }
    }

    /// Moves an event; whether it is said again.
    fn event(&self, event: &mut Event, is_last: bool) -> bool {
        match event {
            Event::Declared(of) => {
                self.epoch(&mut of.epoch);
                self.at(&mut of.at);
            }
            Event::Parented(of) => {
                self.epoch(&mut of.epoch);
                self.at(&mut of.at);
            }
            Event::Linked(of) => {
                self.epoch(&mut of.epoch);
                self.epoch(&mut of.from);
                self.at(&mut of.at);
            }
            Event::Stepped(of) => {
                self.epoch(&mut of.epoch);
                self.at(&mut of.at);
            }
            Event::Marked(of) => {
                self.epoch(&mut of.epoch);
                self.at(&mut of.at);
            }
            Event::Retired(of) => {
                self.epoch(&mut of.epoch);
                self.at(&mut of.at);
            }
            Event::Sent(of) => {
                self.handoff(&mut of.handoff.id);
                self.epoch(&mut of.handoff.epoch);
                self.at(&mut of.at);
            }
            Event::Received(of) => {
                self.handoff(&mut of.handoff.id);
                self.epoch(&mut of.handoff.epoch);
                self.at(&mut of.at);
            }
            Event::Abandoned(of) => {
                self.handoff(&mut of.handoff.id);
                self.epoch(&mut of.handoff.epoch);
                self.at(&mut of.at);
            }
            Event::Scope(of) => {
                self.attribution(&mut of.attribution);
                self.at(&mut of.entered);
                self.at(&mut of.exited);
            }
            Event::Call(of) => {
                self.attribution(&mut of.attribution);
                self.correlation(&mut of.correlation);
                self.at(&mut of.entered);
                self.all([&mut of.exited]);
            }
            Event::Api(of) => {
                self.correlation(&mut of.correlation);
                self.all([&mut of.start, &mut of.end]);
            }
            Event::External(of) => {
                self.correlation(&mut of.correlation);
                if of.own_kind {
                    let mut named = PackedEpoch::from_bits(of.external_id).unpack();
                    self.attribution(&mut named);
                    of.external_id = PackedEpoch::from(named).bits();
                }
                self.all([&mut of.beside]);
            }
            Event::Operation(of) => self.operation(of),
            Event::Synchronization(of) => {
                self.correlation(&mut of.correlation);
                self.all([&mut of.start, &mut of.end]);
            }
            Event::Scheduled(of) => self.at(&mut of.at),
            Event::RunQueue(of) => {
                self.at(&mut of.not_before);
                self.at(&mut of.not_after);
            }
            Event::Overhead(of) => {
                self.at(&mut of.start);
                self.at(&mut of.end);
            }
            Event::LaunchAttributes(of) => self.correlation(&mut of.correlation),
            Event::Placement(of) => self.correlation(&mut of.correlation),
            Event::Flushed(of) => {
                self.at(&mut of.asked);
                self.at(&mut of.returned);
                of.last &= is_last;
            }
            Event::DeviceSession(DeviceSession::Ended { at, .. })
            | Event::SchedulerSession(
                SchedulerSession::Ended { at } | SchedulerSession::ThreadEnded { at, .. },
            ) => {
                self.at(at);
                return is_last;
            }
            _ => return self.number == 0,
        }
        true
    }
}
