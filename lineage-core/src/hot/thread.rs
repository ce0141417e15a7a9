//! What lineage keeps per thread: what is current, the open scopes, and the thread's ring.
//!
//! Everything here is touched by its own thread only; what leaves the thread goes through its ring.
//! It is in two parts: [`Hot`], which has no destructor, and [`ThreadState`], which has one and so is
//! reached by a check. The first use of `Hot` on a thread reaches for the other too, so that the
//! destructor of every thread runs that has anything to end.
//!
//! Scopes are a stack, but may end in any order: each removes its own entry. One that ends while
//! later scopes are open leaves a tombstone, since CUPTI's stack can only be popped from the top:
//! its id is popped when what lies above is gone.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::clock;
use super::open::{Deeper, Entry, EntryState, Hot, Mode};
use super::record::{self, CallRecord, ScopeRecord};
use super::ring::{self, Consumer, Producer, Pushed, Words};
use super::slab::{self, Place, Released, Slot};
use crate::hook::{self, CallSnapshot};
use crate::id::{HandoffId, HostNanos, PackedEpoch, TaskId, ThreadKey};
use crate::observation::MisuseKind;

/// Number of the session that records, or 0. Rises with every session, also across a fork.
pub(crate) static RECORDING: AtomicU32 = AtomicU32::new(0);

/// Calls of the interface that came when nothing was recorded any more.
pub(crate) static AFTER_SHUTDOWN: AtomicU64 = AtomicU64::new(0);

static NEXT_GENERATION: AtomicU32 = AtomicU32::new(1);

/// The session that records now, if one does.
#[inline]
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

impl Writer {
    #[inline]
    fn push(&self, words: &Words) {
        if self.producer.push(words) == Pushed::KeptAndHalfFull {
            self.call_drain();
        }
    }

    #[cold]
    fn call_drain(&self) {
        if let Some(drain) = &self.drain {
            drain.unpark();
        }
    }
}

/// The part of a thread that has to be ended.
struct ThreadState {
    deeper: Deeper,
    writer: RefCell<Option<Writer>>,
}

thread_local! {
    static HOT: Hot = const { Hot::new() };
    static STATE: ThreadState = const {
        ThreadState {
            deeper: RefCell::new(Vec::new()),
            writer: RefCell::new(None),
        }
    };
}

/// What is current on this thread.
#[inline]
pub(crate) fn current() -> PackedEpoch {
    HOT.with(|hot| hot.current.get())
}

/// The newest open scope.
#[inline]
fn top(hot: &Hot) -> Option<Entry> {
    match hot.inline_top() {
        Some(top) if !top.is_tombstone() => Some(top),
        None if hot.depth() == 0 => None,
        _ => top_elsewhere(hot),
    }
}

#[cold]
fn top_elsewhere(hot: &Hot) -> Option<Entry> {
    let top = |state: &ThreadState| {
        let newest_first = (0..hot.depth()).rev();
        let mut entries = newest_first.map(|at| hot.entry(&state.deeper, at));
        entries.find(|entry| !entry.is_tombstone())
    };
    STATE.try_with(top).ok().flatten()
}

/// What is current on this thread, and where it lives.
#[inline]
pub(crate) fn current_place() -> Option<(PackedEpoch, Option<Place>)> {
    HOT.with(top).map(|top| (top.packed, top.place))
}

/// Whether a launch boundary is open on this thread.
pub(crate) fn in_boundary() -> bool {
    HOT.with(|hot| hot.boundaries.get() > 0)
}

/// What is current on this thread, for work that is to go on with it elsewhere.
///
/// Where another task than the running one entered the scope, as when a guard was held across an
/// await, what is current is stale, and the work takes the wrong epoch along. That is W07.
#[inline]
pub(crate) fn inherited() -> Option<(PackedEpoch, Option<Place>)> {
    let top = HOT.with(top)?;
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
    pub(super) generation: u32,
    pub(super) token: u64,
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

/// Makes something current. The common case is a thread that never launched.
#[inline]
pub(crate) fn enter(packed: PackedEpoch, place: Option<Place>, how: Entering) -> Token {
    HOT.with(move |hot| enter_on(hot, packed, place, how))
}

#[inline]
fn enter_on(hot: &Hot, packed: PackedEpoch, place: Option<Place>, how: Entering) -> Token {
    if hot.mode.get() == Mode::Plain && how == Entering::Scope {
        let entry = Entry::plain(packed, place, hook::task_number());
        if let Some(token) = hot.open(entry) {
            return token;
        }
    }
    enter_slowly(hot, packed, place, how)
}

/// Ends a scope. `across_tasks` says whether to look for a scope that was held across an await.
#[inline]
pub(crate) fn exit(token: Token, across_tasks: bool) {
    HOT.with(|hot| {
        // There is nothing to say of a scope of a thread that never launched.
        if hot.mode.get() != Mode::Plain || hot.close_on_top(token).is_none() {
            exit_slowly(hot, token, across_tasks);
        }
    });
}

/// Writes a record, if that session records.
#[inline]
pub(crate) fn record(session: u32, words: &Words) {
    if recording() != Some(session) || STATE.try_with(|state| state.push(session, words)).is_err() {
        count_after_shutdown();
    }
}

#[cold]
pub(crate) fn count_after_shutdown() {
    AFTER_SHUTDOWN.fetch_add(1, Ordering::Relaxed);
}

/// The free slot that this thread keeps, if it has one.
#[inline]
pub(super) fn take_kept_slot() -> Option<&'static Slot> {
    HOT.with(|hot| hot.kept_slot.take())
}

/// Keeps a free slot for this thread's next declaration; `false` if it has one, or would never give
/// it back.
#[inline]
pub(super) fn keep_slot(slot: &'static Slot) -> bool {
    HOT.with(|hot| {
        let ends = matches!(hot.mode.get(), Mode::Plain | Mode::Launching);
        let keeps = ends && hot.kept_slot.get().is_none();
        if keeps {
            hot.kept_slot.set(Some(slot));
        }
        keeps
    })
}

pub(crate) fn record_retired(released: &Released) {
    record(
        released.session,
        &record::retired(released.packed, released.cancelled, clock::now()),
    );
}

#[cold]
pub(crate) fn misuse(kind: MisuseKind, packed: PackedEpoch, value: u64) {
    if let Some(session) = recording() {
        record(session, &record::misused(kind, packed, value, clock::now()));
    }
}

/// A number for a handoff, unique in the process.
#[inline]
pub(crate) fn next_handoff() -> HandoffId {
    HOT.with(|hot| {
        let number = hot.next_handoff.get();
        hot.next_handoff.set(number + 1);
        HandoffId((u64::from(generation(hot)) << 40) | number)
    })
}

pub(crate) fn call_entered() -> CallSnapshot {
    let at = clock::now();
    HOT.with(|hot| {
        if hot.mode.get() != Mode::Launching {
            let _ = STATE.try_with(|state| state.begin_launching(hot, at));
        }
        CallSnapshot {
            attribution: hot.current.get(),
            in_boundary: hot.boundaries.get() > 0,
            task: hook::task(),
            at: HostNanos(at),
        }
    })
}

pub(crate) fn call_left(call: &CallRecord) {
    if let Some(session) = recording() {
        record(session, &record::call(call));
    }
}

/// Number of this thread.
#[inline]
fn generation(hot: &Hot) -> u32 {
    match hot.generation.get() {
        0 => begin(hot),
        generation => generation,
    }
}

/// The first use of lineage on this thread.
#[cold]
fn begin(hot: &Hot) -> u32 {
    let generation = NEXT_GENERATION.fetch_add(1, Ordering::Relaxed);
    hot.generation.set(generation);
    // From here on the thread has an end.
    let ends = STATE.try_with(|_| ()).is_ok();
    if hot.mode.get() == Mode::Fresh {
        hot.mode.set(if ends { Mode::Plain } else { Mode::Ended });
    }
    generation
}

#[inline(never)]
fn enter_slowly(hot: &Hot, packed: PackedEpoch, place: Option<Place>, how: Entering) -> Token {
    if hot.mode.get() == Mode::Fresh {
        begin(hot);
    }
    if hot.mode.get() == Mode::Ended {
        return Token::NOT_ENTERED;
    }
    let mut entry = Entry::plain(packed, place, hook::task_number());
    let boundary = how == Entering::Boundary;
    if boundary || hot.mode.get() == Mode::Launching {
        entry.entered = clock::now();
        if hot.mode.get() != Mode::Launching {
            let _ = STATE.try_with(|state| state.begin_launching(hot, entry.entered));
        }
        if boundary || hot.boundaries.get() > 0 {
            push_boundary(hot, &mut entry, boundary);
        }
    }
    match hot.open(entry) {
        Some(token) => token,
        None => STATE
            .try_with(|state| hot.open_deeper(&state.deeper, entry))
            .unwrap_or(Token::NOT_ENTERED),
    }
}

/// Inside a boundary a scope pushes as well, else launches would be recorded under the boundary's
/// id. The same id twice in a row is pushed once.
fn push_boundary(hot: &Hot, entry: &mut Entry, boundary: bool) {
    if hot.pushed.get() != entry.packed {
        entry.pushed_below = hot.pushed.replace(entry.packed);
        entry.push = hook::push(entry.packed);
        entry.state = entry.state.with(EntryState::PUSHES);
    }
    if boundary {
        hot.boundaries.set(hot.boundaries.get() + 1);
        entry.state = entry.state.with(EntryState::BOUNDARY);
    }
}

fn pop_pushed(hot: &Hot, entry: &Entry) {
    if entry.state.has(EntryState::PUSHES) {
        hot.pushed.set(entry.pushed_below);
        hook::pop(entry.push, entry.packed);
    }
}

#[inline(never)]
fn exit_slowly(hot: &Hot, token: Token, across_tasks: bool) {
    if token == Token::NOT_ENTERED || hot.mode.get() == Mode::Ended {
        return;
    }
    let entry = match hot.close_on_top(token) {
        Some(entry) => {
            let entry = entry.get();
            pop_pushed(hot, &entry);
            entry
        }
        None => match STATE.try_with(|state| state.take(hot, token)) {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                return misuse(MisuseKind::ScopeUnbalanced, PackedEpoch::NONE, token.token);
            }
            Err(_) => return,
        },
    };
    if hot.mode.get() == Mode::Launching {
        record_end(hot, &entry, across_tasks);
    }
}

#[inline]
fn record_end(hot: &Hot, entry: &Entry, across_tasks: bool) {
    let boundary = entry.state.has(EntryState::BOUNDARY);
    if boundary {
        hot.boundaries.set(hot.boundaries.get() - 1);
    }
    let Some(session) = recording() else { return };
    let exited = clock::now();
    let scope = ScopeRecord {
        packed: entry.packed,
        token: entry.token,
        entered: entry.entered,
        exited,
        task: (entry.task != 0).then_some(TaskId(entry.task)),
        boundary,
        pushed: entry.push.pushed,
    };
    record(session, &record::scope(&scope));
    if across_tasks && entry.task != hook::task_number() {
        let kind = MisuseKind::ScopeAcrossTasks;
        record(
            session,
            &record::misused(kind, entry.packed, entry.token, exited),
        );
    }
}

impl ThreadState {
    /// Removes an entry, wherever it is, and sets what is current after that.
    #[cold]
    fn take(&self, hot: &Hot, token: Token) -> Option<Entry> {
        if token.generation != hot.generation.get() {
            return None;
        }
        let is_it = |entry: Entry| entry.token == token.token && !entry.is_tombstone();
        let mut newest_first = (0..hot.depth()).rev();
        let at = newest_first.find(|&at| is_it(hot.entry(&self.deeper, at)))?;
        let taken = hot.entry(&self.deeper, at);
        let state = taken.state.with(EntryState::TOMBSTONE);
        hot.set_entry(&self.deeper, at, Entry { state, ..taken });
        // CUPTI is called with nothing borrowed.
        while let Some(entry) = hot.pop_tombstone(&self.deeper) {
            pop_pushed(hot, &entry);
        }
        let top = hot.depth().checked_sub(1);
        let top = top.map(|at| hot.entry(&self.deeper, at).packed);
        hot.current.set(top.unwrap_or(PackedEpoch::NONE));
        Some(taken)
    }

    /// From here on scopes of this thread are stamped and recorded. Those that are open began at
    /// an unknown earlier time: what is known is that they were open now.
    #[cold]
    fn begin_launching(&self, hot: &Hot, at: u64) {
        if hot.mode.get() == Mode::Fresh {
            begin(hot);
        }
        hot.mode.set(Mode::Launching);
        for open in 0..hot.depth() {
            let entry = hot.entry(&self.deeper, open);
            if entry.entered == 0 {
                let entered = at;
                hot.set_entry(&self.deeper, open, Entry { entered, ..entry });
            }
        }
    }

    #[inline]
    fn push(&self, session: u32, words: &Words) {
        if let Ok(writer) = self.writer.try_borrow()
            && let Some(writer) = &*writer
            && writer.session == session
        {
            return writer.push(words);
        }
        self.push_first(session, words);
    }

    /// The first record of this thread in this session.
    #[cold]
    fn push_first(&self, session: u32, words: &Words) {
        let Ok(mut writer) = self.writer.try_borrow_mut() else {
            return count_after_shutdown();
        };
        let (attached, key) = self.attach(session);
        writer.insert(attached).push(words);
        drop(writer);
        hook::thread_began(key);
    }

    #[cold]
    fn attach(&self, session: u32) -> (Writer, ThreadKey) {
        let key = ThreadKey {
            tid: system_thread_id(),
            generation: HOT.with(generation),
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
        let writer = Writer {
            session,
            producer,
            drain: arrivals.drain.clone(),
        };
        (writer, key)
    }

    /// The thread ends: scopes that are still open were leaked, and the ring closes.
    fn end(&self, hot: &Hot) {
        hot.mode.set(Mode::Ended);
        if let Some(slot) = hot.kept_slot.take() {
            slab::give_back(slot);
        }
        let entries = (0..hot.depth()).map(|at| hot.entry(&self.deeper, at));
        let mut leaked = entries.filter(|entry| !entry.is_tombstone()).peekable();
        let current = recording();
        let mut writer = self.writer.take();
        if let (Some(session), true, true) = (current, leaked.peek().is_some(), writer.is_none()) {
            writer = Some(self.attach(session).0);
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

impl Drop for ThreadState {
    fn drop(&mut self) {
        HOT.with(|hot| self.end(hot));
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
