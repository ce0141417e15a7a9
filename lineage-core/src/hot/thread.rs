//! What lineage keeps per thread: what is current, the open scopes, and the thread's ring.
//!
//! `CURRENT` mirrors the top of the stack of open scopes, so that a read is one load without a
//! destructor's check. Everything here is touched by its own thread only; what leaves the thread
//! goes through its ring.
//!
//! Scopes are a stack, but may end in any order: each removes its own entry. A boundary that ends
//! while later scopes are open leaves a tombstone, since CUPTI's stack can only be popped from the
//! top: its id is popped when what lies above is gone.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::clock;
use super::record::{self, CallRecord, ScopeRecord};
use super::ring::{self, Consumer, Producer, Pushed, Words};
use super::slab::{Place, Released};
use crate::hook::{self, CallSnapshot, PushToken};
use crate::id::{HandoffId, HostNanos, PackedEpoch, TaskId, ThreadKey};
use crate::observation::MisuseKind;

/// Number of the session that records, or 0. Rises with every session, also across a fork.
pub(crate) static RECORDING: AtomicU32 = AtomicU32::new(0);

/// Calls of the interface that came when nothing was recorded any more.
pub(crate) static AFTER_SHUTDOWN: AtomicU64 = AtomicU64::new(0);

static NEXT_GENERATION: AtomicU32 = AtomicU32::new(1);

/// The session that records now, if one does.
pub(crate) fn recording() -> Option<u32> {
    match RECORDING.load(Ordering::Relaxed) {
        0 => None,
        session => Some(session),
    }
}

/// A thread's ring, for the drain thread.
pub(crate) struct ThreadRing {
    pub(crate) session: u32,
    pub(crate) key: ThreadKey,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) started: HostNanos,
    pub(crate) consumer: Consumer,
}

/// Rings that no drain thread has taken yet, and how large the next ones are to be.
pub(crate) struct Arrivals {
    pub(crate) rings: Vec<ThreadRing>,
    pub(crate) capacity: usize,
    pub(crate) drain: Option<std::thread::Thread>,
}

pub(crate) static ARRIVALS: Mutex<Arrivals> = Mutex::new(Arrivals {
    rings: Vec::new(),
    capacity: 2,
    drain: None,
});

struct Writer {
    session: u32,
    producer: Producer,
    drain: Option<std::thread::Thread>,
}

/// One open scope.
#[derive(Clone, Copy)]
struct Entry {
    packed: PackedEpoch,
    place: Place,
    token: u64,
    /// 0 until the thread launches.
    entered: u64,
    task: Option<TaskId>,
    /// What lay on CUPTI's stack below, where this entry pushed.
    pushed_below: PackedEpoch,
    push: PushToken,
    /// Whether the hook was called for this entry.
    pushes: bool,
    boundary: bool,
    /// It ended out of order, and waits to be popped.
    tombstone: bool,
}

struct ThreadState {
    entries: RefCell<Vec<Entry>>,
    next_token: Cell<u64>,
    launching: Cell<bool>,
    boundaries: Cell<u32>,
    pushed: Cell<PackedEpoch>,
    writer: RefCell<Option<Writer>>,
    generation: Cell<u32>,
    next_handoff: Cell<u64>,
}

thread_local! {
    static CURRENT: Cell<PackedEpoch> = const { Cell::new(PackedEpoch::NONE) };
    static STATE: ThreadState = const {
        ThreadState {
            entries: RefCell::new(Vec::new()),
            next_token: Cell::new(1),
            launching: Cell::new(false),
            boundaries: Cell::new(0),
            pushed: Cell::new(PackedEpoch::NONE),
            writer: RefCell::new(None),
            generation: Cell::new(0),
            next_handoff: Cell::new(1),
        }
    };
}

/// What is current on this thread.
#[inline]
pub(crate) fn current() -> PackedEpoch {
    CURRENT.with(Cell::get)
}

/// What is current on this thread, and where it lives.
pub(crate) fn current_place() -> Option<(PackedEpoch, Place)> {
    let top = |state: &ThreadState| {
        let entries = state.entries.borrow();
        let top = entries.iter().rev().find(|entry| !entry.tombstone)?;
        Some((top.packed, top.place))
    };
    STATE.try_with(top).ok().flatten()
}

/// How a scope is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entering {
    /// Work of this epoch may be launched further in.
    Scope,
    /// Work is launched now.
    Boundary,
}

/// An entered scope. 0 stands for one that was not entered, because its thread is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    generation: u32,
    token: u64,
}

impl Token {
    pub(crate) const NOT_ENTERED: Self = Self {
        generation: 0,
        token: 0,
    };
}

pub(crate) fn enter(packed: PackedEpoch, place: Place, how: Entering) -> Token {
    STATE
        .try_with(|state| state.enter(packed, place, how))
        .unwrap_or(Token::NOT_ENTERED)
}

/// Ends a scope. `across_tasks` says whether to look for a scope that was held across an await.
pub(crate) fn exit(token: Token, across_tasks: bool) {
    if token != Token::NOT_ENTERED {
        let _ = STATE.try_with(|state| state.exit(token, across_tasks));
    }
}

/// Writes a record, if a session records.
pub(crate) fn record(session: u32, words: &Words) {
    if recording() != Some(session) || STATE.try_with(|state| state.push(session, words)).is_err() {
        AFTER_SHUTDOWN.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn record_retired(released: &Released) {
    record(
        released.session,
        &record::retired(released.epoch, released.cancelled, clock::now()),
    );
}

pub(crate) fn misuse(kind: MisuseKind, packed: PackedEpoch, value: u64) {
    if let Some(session) = recording() {
        record(session, &record::misused(kind, packed, value, clock::now()));
    }
}

/// A number for a handoff, unique in the process.
pub(crate) fn next_handoff() -> HandoffId {
    static OF_ENDING_THREADS: AtomicU64 = AtomicU64::new(1);
    let next = |state: &ThreadState| {
        let number = state.next_handoff.get();
        state.next_handoff.set(number + 1);
        (u64::from(state.generation()) << 40) | number
    };
    let of_ending = |_| OF_ENDING_THREADS.fetch_add(1, Ordering::Relaxed);
    HandoffId(STATE.try_with(next).unwrap_or_else(of_ending))
}

pub(crate) fn call_entered() -> CallSnapshot {
    let at = clock::now();
    let in_boundary = STATE.try_with(|state| {
        state.begin_launching(at);
        state.boundaries.get() > 0
    });
    CallSnapshot {
        attribution: current(),
        in_boundary: in_boundary.unwrap_or(false),
        task: hook::task(),
        at: HostNanos(at),
    }
}

pub(crate) fn call_left(call: &CallRecord) {
    if let Some(session) = recording() {
        record(session, &record::call(call));
    }
}

impl ThreadState {
    fn generation(&self) -> u32 {
        if self.generation.get() == 0 {
            self.generation
                .set(NEXT_GENERATION.fetch_add(1, Ordering::Relaxed));
        }
        self.generation.get()
    }

    fn enter(&self, packed: PackedEpoch, place: Place, how: Entering) -> Token {
        let token = self.next_token.get();
        self.next_token.set(token + 1);
        let mut entry = Entry {
            packed,
            place,
            token,
            entered: 0,
            task: hook::task(),
            pushed_below: PackedEpoch::NONE,
            push: PushToken::NOT_PUSHED,
            pushes: false,
            boundary: how == Entering::Boundary,
            tombstone: false,
        };
        if entry.boundary || self.launching.get() {
            self.enter_on_launching_thread(&mut entry);
        }
        CURRENT.with(|current| current.set(packed));
        self.entries.borrow_mut().push(entry);
        Token {
            generation: self.generation(),
            token,
        }
    }

    fn enter_on_launching_thread(&self, entry: &mut Entry) {
        entry.entered = clock::now();
        self.begin_launching(entry.entered);
        // Inside a boundary a scope pushes as well, else launches would be recorded under the
        // boundary's id. The same id twice in a row is pushed once.
        let inside = entry.boundary || self.boundaries.get() > 0;
        if inside && self.pushed.get() != entry.packed {
            entry.pushed_below = self.pushed.replace(entry.packed);
            entry.push = hook::push(entry.packed);
            entry.pushes = true;
        }
        self.boundaries
            .set(self.boundaries.get() + u32::from(entry.boundary));
    }

    fn exit(&self, token: Token, across_tasks: bool) {
        let Some(entry) = self.take(token) else {
            return misuse(MisuseKind::ScopeUnbalanced, PackedEpoch::NONE, token.token);
        };
        if self.launching.get() {
            if entry.boundary {
                self.boundaries.set(self.boundaries.get() - 1);
            }
            self.record_scope(&entry, across_tasks);
        }
    }

    /// Removes an entry, and sets what is current after that.
    fn take(&self, token: Token) -> Option<Entry> {
        if token.generation != self.generation() {
            return None;
        }
        let mut entries = self.entries.borrow_mut();
        // Nearly always the last one, with nothing pushed and no tombstone below it.
        if let Some(entry) = entries.pop_if(|entry| entry.token == token.token && !entry.pushes) {
            if entries.last().is_none_or(|below| !below.tombstone) {
                let top = entries
                    .last()
                    .map_or(PackedEpoch::NONE, |below| below.packed);
                CURRENT.with(|current| current.set(top));
                return Some(entry);
            }
            entries.push(entry);
        }
        drop(entries);
        self.take_in_any_order(token)
    }

    fn take_in_any_order(&self, token: Token) -> Option<Entry> {
        let mut entries = self.entries.borrow_mut();
        let ended = |entry: &&mut Entry| entry.token == token.token && !entry.tombstone;
        let entry = entries.iter_mut().rfind(|entry| ended(entry))?;
        entry.tombstone = true;
        let taken = *entry;
        drop(entries);
        // CUPTI is called with nothing borrowed.
        while let Some(entry) = self.pop_tombstone() {
            if entry.pushes {
                self.pushed.set(entry.pushed_below);
                hook::pop(entry.push, entry.packed);
            }
        }
        let top = self
            .entries
            .borrow()
            .last()
            .map_or(PackedEpoch::NONE, |entry| entry.packed);
        CURRENT.with(|current| current.set(top));
        Some(taken)
    }

    fn pop_tombstone(&self) -> Option<Entry> {
        self.entries.borrow_mut().pop_if(|entry| entry.tombstone)
    }

    fn record_scope(&self, entry: &Entry, across_tasks: bool) {
        let Some(session) = recording() else { return };
        let exited = clock::now();
        let scope = ScopeRecord {
            packed: entry.packed,
            token: entry.token,
            entered: entry.entered,
            exited,
            task: entry.task,
            boundary: entry.boundary,
            pushed: entry.push.pushed,
        };
        self.push(session, &record::scope(&scope));
        if across_tasks && entry.task != hook::task() {
            let kind = MisuseKind::ScopeAcrossTasks;
            self.push(
                session,
                &record::misused(kind, entry.packed, entry.token, exited),
            );
        }
    }

    /// From here on scopes of this thread are stamped and recorded. Those that are open began at
    /// an unknown earlier time: what is known is that they were open now.
    fn begin_launching(&self, at: u64) {
        if self.launching.replace(true) {
            return;
        }
        for entry in self
            .entries
            .borrow_mut()
            .iter_mut()
            .filter(|entry| entry.entered == 0)
        {
            entry.entered = at;
        }
    }

    fn push(&self, session: u32, words: &Words) {
        let Ok(mut writer) = self.writer.try_borrow_mut() else {
            AFTER_SHUTDOWN.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if writer
            .as_ref()
            .is_none_or(|writer| writer.session != session)
        {
            *writer = Some(self.attach(session));
        }
        if let Some(writer) = &*writer {
            let pushed = writer.producer.push(words);
            if let (Pushed::KeptAndHalfFull, Some(drain)) = (pushed, &writer.drain) {
                drain.unpark();
            }
        }
    }

    #[cold]
    fn attach(&self, session: u32) -> Writer {
        let key = ThreadKey {
            tid: system_thread_id(),
            generation: self.generation(),
        };
        let name = std::thread::current().name().map(Arc::from);
        let started = HostNanos(clock::now());
        let mut arrivals = ARRIVALS.lock().unwrap_or_else(PoisonError::into_inner);
        let (producer, consumer) = ring::ring(arrivals.capacity);
        arrivals.rings.push(ThreadRing {
            session,
            key,
            name,
            started,
            consumer,
        });
        Writer {
            session,
            producer,
            drain: arrivals.drain.clone(),
        }
    }
}

/// The thread ends: scopes that are still open were leaked, and the ring closes.
impl Drop for ThreadState {
    fn drop(&mut self) {
        let leaked = std::mem::take(self.entries.get_mut());
        let mut leaked = leaked.iter().filter(|entry| !entry.tombstone).peekable();
        let current = recording();
        let mut writer = self.writer.get_mut().take();
        if let (Some(session), true, true) = (current, leaked.peek().is_some(), writer.is_none()) {
            writer = Some(self.attach(session));
        }
        let Some(writer) = writer else { return };
        if current == Some(writer.session) {
            for entry in leaked {
                let kind = MisuseKind::ScopeLeaked;
                let words = record::misused(kind, entry.packed, entry.token, clock::now());
                writer.producer.push(&words);
            }
        }
        writer.producer.close(clock::now());
    }
}

/// The thread's id as the system, the scheduler's records and CUPTI give it.
#[cfg(target_os = "linux")]
fn system_thread_id() -> u64 {
    rustix::thread::gettid().as_raw_nonzero().get() as u64
}

/// A number of our own, where CUPTI does not exist and nothing is joined by it.
#[cfg(not(target_os = "linux"))]
fn system_thread_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
