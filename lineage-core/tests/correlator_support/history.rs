//! Random histories whose truth is known: threads, epochs, handoffs, scopes, calls, operations.
//!
//! A history is executed on one clock, and every record is noted where it would lie: in the ring of
//! its thread, or in that thread's device buffers. Then it is delivered in some legal order: rings
//! keep their order, an external record stays right before its API record, buffers come shuffled,
//! and the buffers of an idle thread may sit until it goes on. Truth travels in the operation's
//! name, so it is carried by data and not by anything the correlator joins by.

use lineage_core::id::{Attribution, CorrelationId, LaunchEpoch, PackedEpoch, ScopeToken, TaskId};
use lineage_core::observation::{
    ActivityKind, ApiDomain, ApiId, ApiRecord, Call, Event, ExternalRecord, Operation,
    OperationsDue, Scope,
};
use lineage_core::row::Row;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Threads that launch, numbered from 1; thread 9 only declares and sends.
pub(crate) const THREADS: u64 = 3;
const HANDLER: u64 = 9;

/// Which ids the records of a runtime call and its driver call have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    DriverOnly,
    Shared,
    OperationsByRuntime,
    OperationsByDriver,
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// A request comes: declared on the handler's thread, sent to a thread, received there.
    Request { thread: u64 },
    /// The newest batch of a thread: its last requests are merged.
    Merge { thread: u64, members: usize },
    /// A launch under one of the thread's epochs.
    Launch {
        thread: u64,
        pick: usize,
        boundary: bool,
        outer: bool,
        calls: usize,
        operations: usize,
    },
    /// A launch that fails.
    Fail { thread: u64, pick: usize },
    /// All rings are emptied, and CUPTI is flushed; threads whose bit is set hold their buffers.
    Flush { holding: u8 },
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) ids: Ids,
    pub(crate) first_id: u32,
    pub(crate) actions: Vec<Action>,
    pub(crate) order: Vec<u32>,
}

pub(crate) fn action() -> impl Strategy<Value = Action> {
    let thread = 1..=THREADS;
    prop_oneof![
        2 => thread.clone().prop_map(|thread| Action::Request { thread }),
        1 => (thread.clone(), 1..4usize).prop_map(|(thread, members)| Action::Merge { thread, members }),
        6 => (thread.clone(), any::<usize>(), any::<bool>(), any::<bool>(), 1..4usize, 1..4usize)
            .prop_map(|(thread, pick, boundary, outer, calls, operations)| Action::Launch {
                thread, pick, boundary, outer, calls, operations,
            }),
        1 => (thread, any::<usize>()).prop_map(|(thread, pick)| Action::Fail { thread, pick }),
        1 => any::<u8>().prop_map(|holding| Action::Flush { holding }),
    ]
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let ids = prop_oneof![
        2 => Just(Ids::DriverOnly),
        1 => Just(Ids::Shared),
        1 => Just(Ids::OperationsByRuntime),
        1 => Just(Ids::OperationsByDriver),
    ];
    // Half of them cross 2^32.
    let first_id = prop_oneof![1..5_000u32, (u32::MAX - 40)..=u32::MAX];
    (ids, first_id, vec(action(), 1..60), vec(any::<u32>(), 64)).prop_map(
        |(ids, first_id, actions, order)| Plan {
            ids,
            first_id,
            actions,
            order,
        },
    )
}

/// A plan that has plain driver launches to break: `launches` of them inside boundaries.
pub(crate) fn breakable(launches: usize) -> impl Strategy<Value = Plan> {
    (plan(), vec(1..=THREADS, launches)).prop_map(|(mut plan, threads)| {
        plan.ids = Ids::DriverOnly;
        for thread in threads {
            let (pick, boundary, outer) = (0, true, false);
            plan.actions.push(Action::Launch {
                thread,
                pick,
                boundary,
                outer,
                calls: 1,
                operations: 1,
            });
        }
        plan
    })
}

/// What one call really was.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    pub(crate) epoch: LaunchEpoch,
    pub(crate) boundary: bool,
    pub(crate) tid: u64,
    pub(crate) wire: CorrelationId,
    pub(crate) operations: usize,
    pub(crate) failed: bool,
}

/// Records between two flushes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Round {
    /// By thread: what is in its ring.
    pub(crate) rings: Vec<(u64, Vec<Event>)>,
    /// By thread: groups of records that stay together.
    pub(crate) buffers: Vec<(u64, Vec<Vec<Event>>)>,
    holding: u8,
    ends: u64,
}

impl Round {
    fn ring(&mut self, tid: u64) -> &mut Vec<Event> {
        entry(&mut self.rings, tid)
    }

    fn buffer(&mut self, tid: u64) -> &mut Vec<Vec<Event>> {
        entry(&mut self.buffers, tid)
    }

    /// Every record, to be changed or taken out.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut Event) -> bool) {
        for (_, ring) in &mut self.rings {
            ring.retain_mut(&mut keep);
        }
        for (_, groups) in &mut self.buffers {
            groups
                .iter_mut()
                .for_each(|group| group.retain_mut(&mut keep));
        }
    }
}

fn entry<T: Default>(list: &mut Vec<(u64, T)>, tid: u64) -> &mut T {
    let at = list
        .iter()
        .position(|(known, _)| *known == tid)
        .unwrap_or_else(|| {
            list.push((tid, T::default()));
            list.len() - 1
        });
    &mut list[at].1
}

#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) rounds: Vec<Round>,
    pub(crate) truths: Vec<Truth>,
    pub(crate) handoffs: u64,
    order: Vec<u32>,
}

/// Where an operation's truth is read from.
pub(crate) fn truth_of<'a>(history: &'a History, row: &Row) -> Option<&'a Truth> {
    let name = row.operation.as_ref()?.name.as_ref()?;
    history.truths.get(name.parse::<usize>().ok()?)
}

/// How something is launched: what is on CUPTI's stack is recorded in a boundary only.
struct Launch {
    boundary: bool,
    /// Inside a scope of another epoch.
    outer: bool,
    calls: usize,
    operations: usize,
    failed: bool,
}

struct Machine {
    now: u64,
    next_id: u32,
    next_epoch: u64,
    next_handoff: u64,
    tokens: [u64; THREADS as usize + 1],
    /// By thread: the epochs that came to it.
    held: Vec<Vec<LaunchEpoch>>,
    rounds: Vec<Round>,
    truths: Vec<Truth>,
    ids: Ids,
}

impl Machine {
    /// Time goes by: more than the clock's error, so that any two moments can be told apart.
    fn tick(&mut self) -> u64 {
        self.now += 2_500;
        self.now
    }

    fn id(&mut self) -> CorrelationId {
        // Calls that are not recorded take ids too.
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1 + (self.now as u32 / 7) % 3);
        if id == 0 {
            self.id()
        } else {
            CorrelationId(id)
        }
    }

    fn round(&mut self) -> &mut Round {
        let last = self.rounds.len() - 1;
        &mut self.rounds[last]
    }

    fn declare(&mut self, tid: u64) -> LaunchEpoch {
        self.next_epoch += 1;
        let (epoch, ns) = (self.next_epoch, self.tick());
        self.round().ring(tid).push(declared(tid, epoch, ns));
        super::epoch(epoch)
    }

    fn request(&mut self, tid: u64) -> LaunchEpoch {
        let epoch = self.declare(HANDLER);
        self.next_handoff += 1;
        let (number, sent_at) = (self.next_handoff, self.tick());
        let received_at = self.tick();
        let id = epoch.id.get();
        self.round()
            .ring(HANDLER)
            .push(sent(HANDLER, number, id, sent_at));
        self.round()
            .ring(tid)
            .push(received(tid, number, id, received_at));
        self.held[tid as usize].push(epoch);
        epoch
    }

    fn pick(&mut self, tid: u64, pick: usize) -> LaunchEpoch {
        match self.held[tid as usize].len() {
            0 => self.request(tid),
            count => self.held[tid as usize][pick % count],
        }
    }

    fn merge(&mut self, tid: u64, members: usize) {
        let members: Vec<LaunchEpoch> = self.held[tid as usize]
            .iter()
            .rev()
            .take(members)
            .copied()
            .collect();
        if members.is_empty() {
            return;
        }
        let batch = self.declare(tid);
        for member in members {
            let ns = self.tick();
            let link = linked(batch.id.get(), member.id.get(), LinkKind::Merge, ns);
            self.round().ring(tid).push(link);
        }
        self.held[tid as usize].push(batch);
    }

    fn launch(&mut self, tid: u64, epoch: LaunchEpoch, what: &Launch) {
        let other = self.held[tid as usize][0];
        let outer = what.outer.then(|| (self.enter(tid), other));
        let inner = self.enter(tid);
        for _ in 0..what.calls {
            self.call(tid, epoch, what);
        }
        self.exit(tid, inner, epoch, what.boundary);
        if let Some((outer, other)) = outer {
            self.exit(tid, outer, other, false);
        }
    }

    fn enter(&mut self, tid: u64) -> (u64, u64) {
        self.tokens[tid as usize] += 1;
        (self.tokens[tid as usize], self.tick())
    }

    fn exit(&mut self, tid: u64, (token, entered): (u64, u64), epoch: LaunchEpoch, boundary: bool) {
        let exited = self.tick();
        let scope = Scope {
            token: ScopeToken(token),
            boundary,
            pushed: boundary,
            task: task(tid, epoch),
            ..scope_of(tid, Attribution::Epoch(epoch), token, entered, exited)
        };
        self.round().ring(tid).push(scope.into());
    }

    fn call(&mut self, tid: u64, epoch: LaunchEpoch, what: &Launch) {
        let &Launch {
            boundary,
            operations,
            failed,
            ..
        } = what;
        let result = if failed { 700 } else { 0 };
        let due = if operations == 1 {
            OperationsDue::One
        } else {
            OperationsDue::Many
        };
        let runtime_start = self.tick();
        let (first, second) = match self.ids {
            Ids::DriverOnly | Ids::Shared => {
                let id = self.id();
                (id, id)
            }
            Ids::OperationsByRuntime | Ids::OperationsByDriver => (self.id(), self.id()),
        };
        let (runtime, driver) = (first, second);
        let entered = self.tick();
        let exited = self.tick();
        let runtime_end = self.tick();
        let truth = self.truths.len();
        self.truths.push(Truth {
            epoch,
            boundary,
            tid,
            wire: driver,
            operations: if failed { 0 } else { operations },
            failed,
        });
        let call = Call {
            correlation: driver,
            exited: Some(at(exited)),
            result,
            due,
            in_boundary: boundary,
            task: task(tid, epoch),
            ..call_of(tid, 0, entered, Attribution::Epoch(epoch))
        };
        self.round().ring(tid).push(call.into());
        let api = |id, domain, start, end| ApiRecord {
            api: ApiId {
                domain,
                cbid: 307,
                name: None,
            },
            correlation: id,
            end: Some(at(end)),
            result,
            due,
            ..api_of(tid, 0, start)
        };
        let mut group = |record: ApiRecord| {
            let external = ExternalRecord {
                session: 1,
                kind: 5,
                own_kind: true,
                external_id: PackedEpoch::from(epoch).bits(),
                correlation: record.correlation,
                beside: record.start,
            };
            let group = boundary.then(|| Event::from(external));
            let group: Vec<Event> = group.into_iter().chain([record.into()]).collect();
            self.rounds.last_mut().expect("one").buffer(tid).push(group);
        };
        group(api(driver, ApiDomain::Driver, entered, exited));
        if self.ids != Ids::DriverOnly {
            group(api(runtime, ApiDomain::Runtime, runtime_start, runtime_end));
        }
        for number in 0..if failed { 0 } else { operations } {
            let start = exited + 1_000 + number as u64 * 10;
            let operation = Operation {
                kind: [ActivityKind::Kernel, ActivityKind::Copy, ActivityKind::Set][truth % 3],
                correlation: if self.ids == Ids::OperationsByRuntime {
                    runtime
                } else {
                    driver
                },
                name: Some(truth.to_string().into()),
                ..kernel_of(0, start, start + 500)
            };
            self.round().buffer(tid).push(vec![operation.into()]);
        }
    }

    fn flush(&mut self, holding: u8) {
        let ends = self.tick();
        let round = self.round();
        (round.holding, round.ends) = (holding, ends);
        self.rounds.push(Round::default());
    }
}

/// An epoch has one task on every thread, or none.
fn task(tid: u64, epoch: LaunchEpoch) -> Option<TaskId> {
    epoch
        .id
        .get()
        .is_multiple_of(2)
        .then_some(TaskId(epoch.id.get() * 100 + tid))
}

impl Plan {
    pub(crate) fn run(&self) -> History {
        let mut machine = Machine {
            now: 1_000_000,
            next_id: self.first_id,
            next_epoch: 0,
            next_handoff: 0,
            tokens: [0; THREADS as usize + 1],
            held: vec![Vec::new(); THREADS as usize + 1],
            rounds: vec![Round::default()],
            truths: Vec::new(),
            ids: self.ids,
        };
        for action in &self.actions {
            match *action {
                Action::Request { thread } => drop(machine.request(thread)),
                Action::Merge { thread, members } => machine.merge(thread, members),
                Action::Launch {
                    thread,
                    pick,
                    boundary,
                    outer,
                    calls,
                    operations,
                } => {
                    let epoch = machine.pick(thread, pick);
                    let failed = false;
                    machine.launch(
                        thread,
                        epoch,
                        &Launch {
                            boundary,
                            outer,
                            calls,
                            operations,
                            failed,
                        },
                    );
                }
                Action::Fail { thread, pick } => {
                    let epoch = machine.pick(thread, pick);
                    let failing = Launch {
                        boundary: true,
                        outer: false,
                        calls: 1,
                        operations: 1,
                        failed: true,
                    };
                    machine.launch(thread, epoch, &failing);
                }
                Action::Flush { holding } => machine.flush(holding),
            }
        }
        // All retire; those that nothing was launched for had been cancelled.
        for id in 1..=machine.next_epoch {
            let ns = machine.tick();
            let ring = machine.round().ring(HANDLER);
            ring.push(marked(HANDLER, id, Mark::Cancelled, ns));
            ring.push(retired(id, ns + 1));
        }
        machine.flush(0);
        machine.rounds.pop();
        History {
            rounds: machine.rounds,
            truths: machine.truths,
            handoffs: machine.next_handoff,
            order: self.order.clone(),
        }
    }
}

/// Choices, as many as are needed.
struct Choices<'a>(&'a [u32], u64);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.1 += 1;
        let word = u64::from(self.0[self.1 as usize % self.0.len()]);
        let mixed = (word ^ self.1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(31);
        (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize % count
    }
}

impl History {
    /// The observations in a legal order, up to the session's last flush.
    pub(crate) fn observations(&self) -> Vec<Event> {
        let mut choices = Choices(&self.order, 0);
        let mut out = vec![
            DeviceSession::Started {
                session: 1,
                version: 28,
                at: at(1),
                external_correlation: Some(true),
            }
            .into(),
        ];
        let mut withheld: Vec<(u64, Vec<Vec<Event>>)> = Vec::new();
        let last = self.rounds.len() - 1;
        for (number, round) in self.rounds.iter().enumerate() {
            for (tid, groups) in &round.buffers {
                entry(&mut withheld, *tid).extend(groups.iter().cloned());
            }
            let holds = |tid: u64| number != last && round.holding >> tid & 1 == 1;
            // Buffers of a few groups each, in any order.
            let mut buffers: Vec<Vec<Event>> = Vec::new();
            for (_, groups) in withheld.iter_mut().filter(|(tid, _)| !holds(*tid)) {
                let mut groups = std::mem::take(groups).into_iter().peekable();
                while groups.peek().is_some() {
                    let size = 1 + choices.below(4);
                    buffers.push(groups.by_ref().take(size).flatten().collect());
                }
            }
            let mut rings: Vec<std::collections::VecDeque<Event>> = round
                .rings
                .iter()
                .map(|(_, ring)| ring.iter().cloned().collect())
                .collect();
            loop {
                rings.retain(|ring| !ring.is_empty());
                match choices.below((buffers.len() + rings.len()).max(1)) {
                    _ if buffers.is_empty() && rings.is_empty() => break,
                    at if at < buffers.len() => out.extend(buffers.swap_remove(at)),
                    at => {
                        let ring = &mut rings[at - buffers.len()];
                        let count = 1 + choices.below(3);
                        out.extend(ring.drain(..count.min(ring.len())));
                    }
                }
            }
            let flush = if number == last {
                last_flush(round.ends)
            } else {
                flushed(round.ends)
            };
            out.push(flush);
        }
        out
    }

    pub(crate) fn each(&mut self, mut keep: impl FnMut(&mut Event) -> bool) {
        self.rounds
            .iter_mut()
            .for_each(|round| round.retain(&mut keep));
    }

    /// A launch that every other code's test can break: plain, in a boundary, neither among the
    /// first nor the last by id.
    pub(crate) fn victim(&self, pick: usize) -> usize {
        let plain = |truth: &Truth| truth.boundary && truth.operations == 1 && !truth.failed;
        let count = self.truths.len();
        let middle: Vec<usize> = (1..count - 1)
            .filter(|&at| plain(&self.truths[at]))
            .collect();
        middle[pick % middle.len()]
    }
}
