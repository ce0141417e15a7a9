//! One process: its sessions, and what the host saw.

use super::emit::{Outbox, loose};
use super::epochs::{Deciding, Epochs};
use super::limits::Limits;
use super::session::{Context, ScopeFor, Session};
use super::settle::Allowed;
use super::threads::{Awaiting, Containment, Threads};
use crate::fault::FaultCode;
use crate::id::{HostNanos, ProcessOrdinal, ThreadKey};
use crate::observation::{
    Call, DeviceSession, DropSite, Dropped, Event, Flushed, Gap, Misuse, MisuseKind, Scope,
};

#[derive(Debug)]
pub(super) struct Process {
    pub(super) ordinal: ProcessOrdinal,
    epochs: Epochs,
    threads: Threads,
    sessions: Vec<Session>,
    /// When each session is known to have started, in order of their numbers.
    started: Vec<(HostNanos, u32)>,
    flushes: u64,
    host_evidence: bool,
    gaps: bool,
}

/// Everything of a process that one of its sessions needs.
macro_rules! context {
    ($process:ident, $limits:ident, $out:ident) => {
        Context {
            process: $process.ordinal,
            limits: $limits,
            epochs: &mut $process.epochs,
            threads: &mut $process.threads,
            out: $out,
            flushes: $process.flushes,
            host_evidence: $process.host_evidence,
            gaps: $process.gaps,
        }
    };
}

impl Process {
    pub(super) fn new(ordinal: ProcessOrdinal) -> Self {
        Self {
            ordinal,
            epochs: Epochs::default(),
            threads: Threads::default(),
            sessions: Vec::new(),
            started: Vec::new(),
            flushes: 0,
            host_evidence: false,
            gaps: false,
        }
    }

    pub(super) fn oldest_open_call(&self) -> Option<HostNanos> {
        self.sessions
            .iter()
            .filter_map(Session::oldest_open_call)
            .min()
    }

    pub(super) fn observe(&mut self, event: &Event, limits: &Limits, out: &mut Outbox) {
        match event {
            Event::Call(call) => return self.call(call, limits, out),
            Event::Scope(scope) => return self.scope(scope, limits, out),
            Event::Api(api) => {
                self.epochs.device_seen = true;
                let at = self.session(api.session);
                return self.sessions[at].api(api, &mut context!(self, limits, out));
            }
            Event::External(external) => {
                let at = self.session(external.session);
                return self.sessions[at].external(external, &mut context!(self, limits, out));
            }
            Event::Operation(operation) => {
                let at = self.session(operation.session);
                return self.sessions[at].operation(operation, &mut context!(self, limits, out));
            }
            Event::Flushed(flushed) => return self.flushed(flushed, limits, out),
            Event::DeviceSession(session) => return self.device_session(session, limits, out),
            Event::Gap(gap) => return self.gap(gap, limits, out),
            Event::Misuse(misuse) => return self.misuse(misuse, out),
            Event::Dropped(dropped) => return self.dropped(dropped, out),
            Event::Graph(graph) => {
                let at = self.session(graph.session);
                return self.sessions[at].graph(graph, &mut context!(self, limits, out));
            }
            Event::GraphLaunch(launch) => {
                let at = self.session(launch.session);
                return self.sessions[at].launch(launch, &mut context!(self, limits, out));
            }
            Event::Extent(extent) => {
                let at = self.session(extent.session);
                return self.sessions[at].extend(extent);
            }
            // What orders work, and what the scheduler did, changes no join.
            Event::Synchronization(_)
            | Event::EventRecord(_)
            | Event::GraphNode(_)
            | Event::Scheduled(_)
            | Event::OsCall(_)
            | Event::SchedulerSession(_)
            | Event::RunQueue(_)
            | Event::Overhead(_)
            | Event::LaunchAttributes(_)
            | Event::Placement(_)
            | Event::StreamDescribed(_)
            | Event::DeviceDescribed(_)
            | Event::Collected(_) => return,
            _ => {}
        }
        self.host_evidence = true;
        let (process, flushes) = (self.ordinal, self.flushes);
        let mut deciding = Deciding {
            process,
            limits,
            flushes,
            out,
        };
        let (epochs, deciding) = (&mut self.epochs, &mut deciding);
        let event_of: Option<(ThreadKey, HostNanos, bool)> = match event {
            Event::Declared(declared) => {
                epochs.declare(declared, deciding);
                Some((declared.thread, declared.at, true))
            }
            Event::Linked(linked) => {
                epochs.link(linked, deciding);
                None
            }
            Event::Stepped(stepped) => {
                epochs.step(stepped, deciding);
                Some((stepped.thread, stepped.at, true))
            }
            Event::Marked(marked) => {
                epochs.mark(marked, deciding);
                Some((marked.thread, marked.at, true))
            }
            Event::Retired(retired) => {
                epochs.retire(retired, deciding);
                None
            }
            Event::Sent(sent) => {
                epochs.send(sent, deciding);
                Some((sent.thread, sent.at, true))
            }
            Event::Received(received) => {
                epochs.receive(received, deciding);
                Some((received.thread, received.at, true))
            }
            Event::Abandoned(abandoned) => {
                epochs.abandon(abandoned.handoff, deciding);
                None
            }
            Event::ThreadStarted(started) => {
                self.threads.of(started.thread, started.at, limits.threads);
                None
            }
            Event::ThreadEnded(ended) => {
                self.threads
                    .of(ended.thread, ended.at, limits.threads)
                    .end(ended.at);
                None
            }
            // A span's identity and a reason's name change no join.
            _ => None,
        };
        if let Some((thread, at, names_epoch)) = event_of {
            self.threads
                .of(thread, at, limits.threads)
                .event(at, names_epoch);
        }
        let forgotten = self.threads.take_forgotten();
        if forgotten > 0 {
            out.forget(process, forgotten);
        }
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self, limits: &Limits, out: &mut Outbox) {
        for at in 0..self.sessions.len() {
            self.sessions[at].finish(Allowed::ALL, &mut context!(self, limits, out));
        }
        let (process, flushes) = (self.ordinal, self.flushes);
        self.epochs.end(&mut Deciding {
            process,
            limits,
            flushes,
            out,
        });
    }

    fn call(&mut self, call: &Call, limits: &Limits, out: &mut Outbox) {
        self.host_evidence = true;
        self.epochs.device_seen = true;
        // A call does not say which session it belongs to: it is the one that ran at that time.
        let running = self
            .started
            .iter()
            .rev()
            .find(|(started, _)| *started <= call.entered);
        let number = running.or(self.started.first()).map(|&(_, number)| number);
        let number = number
            .or(self.sessions.first().map(|session| session.number))
            .unwrap_or(1);
        let at = self.session(number);
        self.sessions[at].call(call, &mut context!(self, limits, out));
    }

    fn scope(&mut self, scope: &Scope, limits: &Limits, out: &mut Outbox) {
        self.host_evidence = true;
        if let (true, Some(epoch)) = (scope.boundary, scope.attribution.epoch()) {
            let (process, flushes) = (self.ordinal, self.flushes);
            let deciding = &mut Deciding {
                process,
                limits,
                flushes,
                out,
            };
            self.epochs.enter_boundary(epoch, deciding);
        }
        let mut found: Vec<(Awaiting, Containment)> = Vec::new();
        let thread = self.threads.of(scope.thread, scope.entered, limits.threads);
        thread.scope_ended(scope, limits.scopes_per_thread, |call, containment| {
            found.push((*call, containment));
        });
        let mut across_tasks = 0;
        for (call, containment) in found {
            let at = self.session(call.session);
            let mut context = context!(self, limits, out);
            let scope_for = self.sessions[at].contained(&call, containment, &mut context);
            let is_innermost = call.attribution == scope.attribution;
            let other_task = scope.task.is_some() && scope.task != call.task;
            if scope_for == ScopeFor::GivenCall && is_innermost && other_task {
                across_tasks += 1;
            }
        }
        if across_tasks > 0 {
            out.totals.wrong += across_tasks;
            let detail = format!(
                "{across_tasks} calls, whose rows were given before the scope ended, were made in \
                 another task than the one that entered scope {}",
                scope.token.0
            );
            let (epoch, at) = (scope.attribution.epoch(), Some(scope.entered));
            out.fault(loose(
                self.ordinal,
                FaultCode::W02,
                epoch,
                at,
                across_tasks,
                detail,
            ));
        }
    }

    fn flushed(&mut self, flushed: &Flushed, limits: &Limits, out: &mut Outbox) {
        // The last one may be reported before the rings are read for the last time.
        self.flushes += u64::from(!flushed.last);
        let at = self.session(flushed.session);
        self.sessions[at].flushed(flushed, &mut context!(self, limits, out));
        if flushed.last {
            self.end_session(at, limits, out);
        }
        let (process, flushes) = (self.ordinal, self.flushes);
        self.epochs.flushed(&mut Deciding {
            process,
            limits,
            flushes,
            out,
        });
    }

    fn device_session(&mut self, session: &DeviceSession, limits: &Limits, out: &mut Outbox) {
        match session {
            DeviceSession::Started {
                session: number,
                at: started,
                external_correlation,
                ..
            } => {
                self.epochs.device_seen = true;
                let at = self.session(*number);
                self.sessions[at].start(*external_correlation);
                self.started.push((*started, *number));
                self.started.sort_unstable();
            }
            DeviceSession::Imported {
                session: number,
                recorder,
                ..
            } => {
                self.epochs.device_seen = true;
                self.epochs.candidates = true;
                let at = self.session(*number);
                self.sessions[at].import(*recorder);
            }
            DeviceSession::Absent { .. } => {}
            DeviceSession::Ended {
                session: number, ..
            } => {
                let at = self.session(*number);
                self.end_session(at, limits, out);
            }
        }
    }

    fn end_session(&mut self, at: usize, limits: &Limits, out: &mut Outbox) {
        self.sessions[at].ended = true;
        self.sessions[at].finish(Allowed::DEVICE_ENDED, &mut context!(self, limits, out));
    }

    fn gap(&mut self, gap: &Gap, limits: &Limits, out: &mut Outbox) {
        self.host_evidence = true;
        self.gaps = true;
        for session in &mut self.sessions {
            session.graph_gap(gap);
        }
        let seen = gap.not_before.or(gap.not_after).unwrap_or(HostNanos(0));
        self.threads.of(gap.thread, seen, limits.threads).gap(gap);
        self.epochs.gap(gap);
        out.totals.dropped_in_rings += gap.count;
        let detail = format!(
            "{} records of thread {} did not fit into its ring",
            gap.count, gap.thread.tid
        );
        out.fault(loose(
            self.ordinal,
            FaultCode::L07,
            None,
            gap.not_before,
            gap.count,
            detail,
        ));
    }

    fn dropped(&mut self, dropped: &Dropped, out: &mut Outbox) {
        *out.totals.dropped.of(dropped.site) += dropped.count;
        if dropped.site == DropSite::CallbackPanic {
            self.epochs.calls_are_unseen();
        }
        let detail = format!("{} records were dropped: {:?}", dropped.count, dropped.site);
        out.fault(loose(
            self.ordinal,
            FaultCode::L07,
            None,
            Some(dropped.at),
            dropped.count,
            detail,
        ));
    }

    fn misuse(&mut self, misuse: &Misuse, out: &mut Outbox) {
        self.host_evidence = true;
        let (code, what) = match misuse.kind {
            MisuseKind::ScopeUnbalanced => (
                FaultCode::W07,
                "a scope was ended that is not open on this thread",
            ),
            MisuseKind::ScopeLeaked => (
                FaultCode::W07,
                "a scope was still open when its thread ended",
            ),
            MisuseKind::ScopeAcrossTasks => (FaultCode::W07, "a scope was held across an await"),
            MisuseKind::ForeignExternalId => (
                FaultCode::W05,
                "CUPTI's stack held another tool's id where ours was due",
            ),
        };
        let detail = format!(
            "{what} (thread {}, value {})",
            misuse.thread.tid, misuse.value
        );
        let (epoch, at) = (misuse.attribution.epoch(), Some(misuse.at));
        out.fault(loose(self.ordinal, code, epoch, at, 1, detail));
    }

    /// Where the session of this number is, made if it is new.
    fn session(&mut self, number: u32) -> usize {
        match self
            .sessions
            .iter()
            .rposition(|session| session.number == number)
        {
            Some(at) => at,
            None => {
                self.sessions.push(Session::new(number));
                self.sessions.len() - 1
            }
        }
    }
}
