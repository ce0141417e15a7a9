//! The hot path: what runs on the application's threads. No lock, no allocation after warm-up.
//!
//! ```text
//!  Epoch ──► slab      who is live, how many handles, which version
//!    │
//!  enter ──► thread    the current epoch, open scopes, CUPTI's stack
//!    │
//!  record ─► ring ───► drain thread
//! ```

mod clock;
mod intern;
mod open;
mod record;
mod ring;
mod slab;
mod thread;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hook::{CallLeft, CallSnapshot, GraphLaunched, LaunchAttributesRead};
use crate::id::{Attribution, DetachedReason, LaunchEpoch, PackedEpoch, W3cParent};
use crate::observation::{CarrierKind, Handoff, LinkKind, Mark, MisuseKind};

pub(crate) use clock::{get as clock, now, set as set_clock};
pub(crate) use intern::{RawSite, Resolver};
pub(crate) use record::{decode, written_at};
pub(crate) use ring::Popped;
pub(crate) use slab::{Exhausted, MAX_LIVE};
pub(crate) use thread::{
    AFTER_SHUTDOWN, ARRIVALS, Entering, RECORDING, ThreadRing, Token, call_entered, current,
    recording,
};

use slab::Place;

/// Declarations that failed, for the session's count.
pub(crate) static NOT_DECLARED: AtomicU64 = AtomicU64::new(0);

/// One handle of a live epoch: an owner or a carrier.
pub(crate) struct Handle {
    epoch: LaunchEpoch,
    /// The session it was declared in.
    declared_in: u32,
    place: Place,
}

impl Handle {
    pub(crate) fn declare(name: &'static str, site: RawSite) -> Result<Option<Self>, Exhausted> {
        let Some(session) = recording() else {
            return Ok(None);
        };
        let made = slab::declare(session).inspect_err(|_| {
            NOT_DECLARED.fetch_add(1, Ordering::Relaxed);
        });
        let (place, epoch) = made?;
        let (name, site) = (intern::name(name), intern::site(site));
        let words = record::declared(epoch, now(), crate::hook::task(), name, site);
        thread::record(session, &words);
        let declared_in = session;
        Ok(Some(Self {
            epoch,
            declared_in,
            place,
        }))
    }

    /// A handle of what is current here, if that is an epoch and still live.
    pub(crate) fn current() -> Option<Self> {
        let (packed, place) = thread::inherited()?;
        let (epoch, place) = (packed.unpack().epoch()?, place?);
        if !slab::acquire(place) {
            return None;
        }
        let declared_in = place.slot().session();
        Some(Self {
            epoch,
            declared_in,
            place,
        })
    }

    pub(crate) fn epoch(&self) -> LaunchEpoch {
        self.epoch
    }

    /// The session it was declared in, if that one still records.
    #[inline]
    fn session(&self) -> Option<u32> {
        // No session has the number 0.
        if RECORDING.load(Ordering::Relaxed) == self.declared_in {
            return Some(self.declared_in);
        }
        thread::count_after_shutdown();
        None
    }

    #[inline]
    fn note(&self, words: impl FnOnce(u64) -> ring::Words) {
        if let Some(session) = self.session() {
            thread::record(session, &words(now()));
        }
    }

    pub(crate) fn link(&self, from: LaunchEpoch, kind: LinkKind) {
        self.note(|at| record::linked(self.epoch, from, kind, at));
    }

    /// The next version, sharing this one's place; `None` if ids are used up.
    pub(crate) fn step(&self, retry: bool) -> Option<Self> {
        let Some(step) = self.place.slot().step() else {
            NOT_DECLARED.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        self.place.slot().clone_handle();
        let next = Self {
            epoch: step.epoch,
            declared_in: self.declared_in,
            place: self.place,
        };
        next.note(|at| record::stepped(step.epoch, at));
        if let Some(earlier) = step.continues {
            next.link(earlier, LinkKind::Continues);
        }
        if retry {
            next.link(self.epoch, LinkKind::Retry);
        }
        Some(next)
    }

    pub(crate) fn mark(&self, mark: Mark) {
        if mark == Mark::Cancelled {
            self.place.slot().cancel();
        }
        self.note(|at| record::marked(self.epoch, mark, at));
    }

    pub(crate) fn set_parent(&self, parent: W3cParent) -> bool {
        let set = self.place.slot().set_parent(parent);
        if set {
            self.note(|at| record::parented(self.epoch, parent, at));
        }
        set
    }

    pub(crate) fn parent(&self) -> Option<W3cParent> {
        self.place.slot().parent()
    }

    pub(crate) fn link_span(&self, span: W3cParent) {
        self.note(|at| record::span_linked(self.epoch, span, at));
    }

    #[inline]
    pub(crate) fn enter(&self, how: Entering) -> Token {
        match self.session() {
            Some(_) => thread::enter(self.epoch.pack(), Some(self.place), how),
            None => Token::NOT_ENTERED,
        }
    }

    pub(crate) fn send(&self, carrier: CarrierKind, site: RawSite) -> Handoff {
        let handoff = Handoff {
            id: thread::next_handoff(),
            epoch: self.epoch,
            carrier,
        };
        self.note(|at| record::sent(handoff, at, intern::site(site)));
        handoff
    }

    pub(crate) fn receive(&self, handoff: Handoff) {
        self.note(|at| record::received(handoff, at, crate::hook::task()));
    }

    pub(crate) fn abandon(&self, handoff: Handoff) {
        self.note(|at| record::abandoned(handoff, at));
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        self.place.slot().clone_handle();
        Self {
            epoch: self.epoch,
            declared_in: self.declared_in,
            place: self.place,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(released) = slab::release(self.place) {
            thread::record_retired(&released);
        }
    }
}

/// Enters a scope of no epoch, for a stated reason.
pub(crate) fn enter_detached(reason: &'static str) -> Token {
    if recording().is_none() {
        return Token::NOT_ENTERED;
    }
    let packed = PackedEpoch::detached(DetachedReason(intern::reason(reason)));
    thread::enter(packed, None, Entering::Scope)
}

/// Enters a scope of what is no epoch: detached work as it was elsewhere, or nothing at all.
pub(crate) fn enter_without_epoch(packed: PackedEpoch) -> Token {
    if recording().is_none() || (packed == PackedEpoch::NONE && current() == PackedEpoch::NONE) {
        return Token::NOT_ENTERED;
    }
    // On CUPTI's stack "nothing" has an id of its own: 0 cannot be pushed.
    let packed = match packed {
        PackedEpoch::NONE if thread::in_boundary() => PackedEpoch::BOUNDARY_WITHOUT_EPOCH,
        packed => packed,
    };
    thread::enter(packed, None, Entering::Scope)
}

/// Enters a launch boundary for whatever is current.
#[inline]
pub(crate) fn enter_boundary() -> Token {
    if recording().is_none() {
        return Token::NOT_ENTERED;
    }
    let (packed, place) = match thread::current_place() {
        None | Some((PackedEpoch::NONE, _)) => (PackedEpoch::BOUNDARY_WITHOUT_EPOCH, None),
        Some(current) => current,
    };
    thread::enter(packed, place, Entering::Boundary)
}

/// Ends a scope; `guard` if it was a guard's, which may have been held across an await.
#[inline]
pub(crate) fn exit(token: Token, guard: bool) {
    thread::exit(token, guard);
}

pub(crate) fn misuse(kind: MisuseKind, attribution: Attribution, value: u64) {
    thread::misuse(kind, PackedEpoch::from(attribution), value);
}

pub(crate) fn call_left(snapshot: &CallSnapshot, call: &CallLeft) {
    thread::call_left(&record::CallRecord {
        packed: snapshot.attribution,
        in_boundary: snapshot.in_boundary,
        task: snapshot.task,
        domain: call.domain,
        cbid: call.cbid,
        correlation: call.correlation,
        result: call.result,
        due: call.due,
        entered: snapshot.at.0,
        exited: call.exited.map(|at| at.0),
    });
}

pub(crate) fn graph_launched(launched: &GraphLaunched) {
    if let Some(session) = recording() {
        thread::record(session, &record::graph_launched(launched));
    }
}

pub(crate) fn launch_attributes(read: &LaunchAttributesRead) {
    if let Some(session) = recording() {
        thread::record(session, &record::launch_attributes(read));
    }
}

/// In the child of a fork: only stores a flag, since an atfork handler may do no more.
pub(crate) fn mark_forked_child() {
    RECORDING.store(0, Ordering::Relaxed);
}
