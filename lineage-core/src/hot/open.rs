//! The scopes that are open on a thread, and what else entering and leaving touch.
//!
//! All of it is cells without a destructor, so reaching it is one address and no check, and nearly
//! every scope is on top when it ends: entering and leaving are written for that case. What is rare
//! (the first scope of a thread, an end out of order, nesting deeper than [`INLINE`]) is in
//! functions of its own in [`thread`](super::thread).

use std::cell::{Cell, RefCell};

use super::slab::{Place, Slot};
use super::thread::Token;
use crate::hook::PushToken;
use crate::id::PackedEpoch;

/// Open scopes that have a place of their own: those that lie deeper go into a list.
const INLINE: usize = 16;

/// How far a thread's life with lineage has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing was done here yet, so nothing runs when the thread ends.
    Fresh,
    /// Scopes are neither stamped nor recorded.
    Plain,
    /// It launched: its scopes are stamped and recorded.
    Launching,
    /// It is ending.
    Ended,
}

/// One open scope.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) packed: PackedEpoch,
    /// `None` for what is no epoch.
    pub(super) place: Option<Place>,
    pub(super) token: u64,
    /// 0 until the thread launches.
    pub(super) entered: u64,
    /// 0 outside tasks: runtimes number theirs from 1.
    pub(super) task: u64,
    /// What lay on CUPTI's stack below, where this entry pushed.
    pub(super) pushed_below: PackedEpoch,
    pub(super) push: PushToken,
    pub(super) state: EntryState,
}

impl Entry {
    #[inline]
    pub(super) const fn plain(packed: PackedEpoch, place: Option<Place>, task: u64) -> Self {
        Self {
            packed,
            place,
            token: 0,
            entered: 0,
            task,
            pushed_below: PackedEpoch::NONE,
            push: PushToken::NOT_PUSHED,
            state: EntryState::PLAIN,
        }
    }

    #[inline]
    pub(super) fn is_tombstone(&self) -> bool {
        self.state.has(EntryState::TOMBSTONE)
    }
}

/// What is particular about an open scope: none or several of these.
#[derive(Clone, Copy)]
pub(super) struct EntryState(u8);

impl EntryState {
    pub(super) const PLAIN: Self = Self(0);
    pub(super) const BOUNDARY: Self = Self(1);
    /// The hook was called for it.
    pub(super) const PUSHES: Self = Self(2);
    /// It ended out of order, and waits to be popped.
    pub(super) const TOMBSTONE: Self = Self(4);

    #[inline]
    pub(super) fn has(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }

    #[inline]
    pub(super) fn with(self, one: Self) -> Self {
        Self(self.0 | one.0)
    }
}

/// The list of entries beyond the inline ones.
pub(super) type Deeper = RefCell<Vec<Entry>>;

pub(super) struct Hot {
    /// Mirrors the newest entry, so that a read is one load.
    pub(super) current: Cell<PackedEpoch>,
    pub(super) mode: Cell<Mode>,
    pub(super) generation: Cell<u32>,
    pub(super) next_token: Cell<u64>,
    depth: Cell<usize>,
    open: [Cell<Entry>; INLINE],
    /// Open boundaries.
    pub(super) boundaries: Cell<u32>,
    /// What lies on top of CUPTI's stack.
    pub(super) pushed: Cell<PackedEpoch>,
    pub(super) next_handoff: Cell<u64>,
    /// The slot that this thread gave back last, for its next declaration.
    pub(super) kept_slot: Cell<Option<&'static Slot>>,
}

impl Hot {
    pub(super) const fn new() -> Self {
        Self {
            current: Cell::new(PackedEpoch::NONE),
            mode: Cell::new(Mode::Fresh),
            generation: Cell::new(0),
            next_token: Cell::new(1),
            depth: Cell::new(0),
            open: [const { Cell::new(Entry::plain(PackedEpoch::NONE, None, 0)) }; INLINE],
            boundaries: Cell::new(0),
            pushed: Cell::new(PackedEpoch::NONE),
            next_handoff: Cell::new(1),
            kept_slot: Cell::new(None),
        }
    }

    /// Makes an entry current under the next token; `None` if it lies too deep.
    #[inline]
    pub(super) fn open(&self, entry: Entry) -> Option<Token> {
        let depth = self.depth.get();
        let place = self.open.get(depth)?;
        let token = self.next_token.get();
        place.set(Entry { token, ..entry });
        self.depth.set(depth + 1);
        Some(self.opened(token, entry.packed))
    }

    #[cold]
    pub(super) fn open_deeper(&self, deeper: &Deeper, entry: Entry) -> Token {
        let token = self.next_token.get();
        deeper.borrow_mut().push(Entry { token, ..entry });
        self.depth.set(self.depth.get() + 1);
        self.opened(token, entry.packed)
    }

    #[inline]
    fn opened(&self, token: u64, packed: PackedEpoch) -> Token {
        self.next_token.set(token + 1);
        self.current.set(packed);
        Token {
            generation: self.generation.get(),
            token,
        }
    }

    /// Removes an entry that lies on top, and inline, unless what is below has ended before it.
    #[inline]
    pub(super) fn close_on_top(&self, token: Token) -> Option<&Cell<Entry>> {
        let at = self.depth.get().wrapping_sub(1);
        let top = self.open.get(at)?;
        if top.get().token != token.token || self.generation.get() != token.generation {
            return None;
        }
        let mut current = PackedEpoch::NONE;
        if let Some(below) = self.open.get(at.wrapping_sub(1)) {
            let below = below.get();
            if below.is_tombstone() {
                return None;
            }
            current = below.packed;
        }
        self.depth.set(at);
        self.current.set(current);
        Some(top)
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.get()
    }

    /// The newest entry, if it lies inline.
    #[inline]
    pub(super) fn inline_top(&self) -> Option<Entry> {
        Some(self.open.get(self.depth.get().wrapping_sub(1))?.get())
    }

    /// The entry at a depth below `depth`.
    pub(super) fn entry(&self, deeper: &Deeper, at: usize) -> Entry {
        match self.open.get(at) {
            Some(inline) => inline.get(),
            None => deeper.borrow()[at - INLINE],
        }
    }

    pub(super) fn set_entry(&self, deeper: &Deeper, at: usize, entry: Entry) {
        match self.open.get(at) {
            Some(inline) => inline.set(entry),
            None => deeper.borrow_mut()[at - INLINE] = entry,
        }
    }

    /// Removes the newest entry if it has ended, and says which; what is current stays.
    pub(super) fn pop_tombstone(&self, deeper: &Deeper) -> Option<Entry> {
        let at = self.depth.get().checked_sub(1)?;
        let entry = self.entry(deeper, at);
        if !entry.is_tombstone() {
            return None;
        }
        self.depth.set(at);
        deeper.borrow_mut().truncate(at.saturating_sub(INLINE));
        Some(entry)
    }
}
