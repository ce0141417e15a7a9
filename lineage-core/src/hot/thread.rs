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
    /// 0 outside tasks: runtimes number theirs from 1.
    task: u64,
    /// What lay on CUPTI's stack below, where this entry pushed.
    pushed_below: PackedEpoch,
    push: PushToken,
    state: EntryState,
}

impl Entry {
    fn plain(packed: PackedEpoch, place: Place, token: u64) -> Self {
        Self {
            packed,
            place,
            token,
            entered: 0,
            task: hook::task_number(),
            pushed_below: PackedEpoch::NONE,
            push: PushToken::NOT_PUSHED,
            state: EntryState::PLAIN,
        }
    }
}

/// What is particular about an open scope.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EntryState {
    boundary: bool,
    /// The hook was called for it.
    pushes: bool,
    /// It ended out of order, and waits to be popped.
    tombstone: bool,
}

impl EntryState {
    const PLAIN: Self = Self {
        boundary: false,
        pushes: false,
        tombstone: false,
    };
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
        let top = entries.iter().rev().find(|entry| !entry.state.tombstone)?;
        Some((top.packed, top.place))
    };
    STATE.try_with(top).ok().flatten()
}

/// Whether a launch boundary is open on this thread.
pub(crate) fn in_boundary() -> bool {
    STATE
        .try_with(|state| state.boundaries.get() > 0)
        .unwrap_or(false)
}

/// What is current on this thread, for work that is to go on with it elsewhere.
///
/// Where another task than the running one entered the scope, as when a guard was held across an
/// await, what is current is stale, and the work takes the wrong epoch along. That is W07.
pub(crate) fn inherited() -> Option<(PackedEpoch, Place)> {
    let top = |state: &ThreadState| {
        let entries = state.entries.borrow();
        entries
            .iter()
            .rev()
            .find(|entry| !entry.state.tombstone)
            .copied()
    };
    let top = STATE.try_with(top).ok().flatten()?;
    if top.task != 0 && top.task != hook::task_number() {
        misuse(MisuseKind::ScopeAcrossTasks, top.packed, top.token);
    }
    Some((top.packed, top.place))
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

    /// Number of the thread it was entered on, unique in the process; 0 if it was not entered.
    #[inline]
    pub(crate) fn thread(self) -> u32 {
        self.generation
    }
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

#[cold]
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
        if how == Entering::Boundary || self.launching.get() {
            return self.enter_on_launching_thread(packed, place, how);
        }
        self.open(|token| Entry::plain(packed, place, token))
    }

    #[inline(never)]
    fn enter_on_launching_thread(&self, packed: PackedEpoch, place: Place, how: Entering) -> Token {
        let entered = clock::now();
        self.begin_launching(entered);
        let boundary = how == Entering::Boundary;
        // Inside a boundary a scope pushes as well, else launches would be recorded under the
        // boundary's id. The same id twice in a row is pushed once.
        let pushes = (boundary || self.boundaries.get() > 0) && self.pushed.get() != packed;
        let (mut pushed_below, mut push) = (PackedEpoch::NONE, PushToken::NOT_PUSHED);
        if pushes {
            pushed_below = self.pushed.replace(packed);
            push = hook::push(packed);
        }
        self.boundaries
            .set(self.boundaries.get() + u32::from(boundary));
        let state = EntryState {
            boundary,
            pushes,
            tombstone: false,
        };
        self.open(|token| Entry {
            entered,
            pushed_below,
            push,
            state,
            ..Entry::plain(packed, place, token)
        })
    }

    fn open(&self, entry: impl FnOnce(u64) -> Entry) -> Token {
        let token = self.next_token.get();
        self.next_token.set(token + 1);
        let entry = entry(token);
        CURRENT.with(|current| current.set(entry.packed));
        self.entries.borrow_mut().push(entry);
        Token {
            generation: self.generation(),
            token,
        }
    }

    fn exit(&self, token: Token, across_tasks: bool) {
        if self.launching.get() || !self.end_plainly(token) {
            self.end(token, across_tasks);
        }
    }

    /// The common case: the last scope ends, on a thread that never launched.
    fn end_plainly(&self, token: Token) -> bool {
        let mut entries = self.entries.borrow_mut();
        let (below, top) = match &entries[..] {
            [.., below, _] if below.state.tombstone => return false,
            [.., below, top] => (below.packed, top),
            [top] => (PackedEpoch::NONE, top),
            [] => return false,
        };
        let own = top.token == token.token && self.generation.get() == token.generation;
        let plainly = own && top.state == EntryState::PLAIN;
        if plainly {
            let left = entries.len() - 1;
            entries.truncate(left);
            CURRENT.with(|current| current.set(below));
        }
        plainly
    }

    #[inline(never)]
    fn end(&self, token: Token, across_tasks: bool) {
        let Some(entry) = self.take(token) else {
            return misuse(MisuseKind::ScopeUnbalanced, PackedEpoch::NONE, token.token);
        };
        if self.launching.get() {
            if entry.state.boundary {
                self.boundaries.set(self.boundaries.get() - 1);
            }
            self.record_scope(&entry, across_tasks);
        }
    }

    /// Removes an entry, wherever it is, and sets what is current after that.
    fn take(&self, token: Token) -> Option<Entry> {
        if token.generation != self.generation() {
            return None;
        }
        let mut entries = self.entries.borrow_mut();
        let ended = |entry: &&mut Entry| entry.token == token.token && !entry.state.tombstone;
        let entry = entries.iter_mut().rfind(ended)?;
        entry.state.tombstone = true;
        let taken = *entry;
        drop(entries);
        // CUPTI is called with nothing borrowed.
        while let Some(entry) = self.pop_tombstone() {
            if entry.state.pushes {
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
        self.entries
            .borrow_mut()
            .pop_if(|entry| entry.state.tombstone)
    }

    fn record_scope(&self, entry: &Entry, across_tasks: bool) {
        let Some(session) = recording() else { return };
        let exited = clock::now();
        let scope = ScopeRecord {
            packed: entry.packed,
            token: entry.token,
            entered: entry.entered,
            exited,
            task: (entry.task != 0).then_some(TaskId(entry.task)),
            boundary: entry.state.boundary,
            pushed: entry.push.pushed,
        };
        self.push(session, &record::scope(&scope));
        if across_tasks && entry.task != hook::task_number() {
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
        let mut leaked = leaked
            .iter()
            .filter(|entry| !entry.state.tombstone)
            .peekable();
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
