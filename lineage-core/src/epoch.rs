//! The epoch handle: declaring work, and every way to say whose work something is.
//!
//! What only leads to the hot path is `#[inline]`: without the feature `record` it is then nothing at
//! all in the caller, which `checks/record-off` proves.

use std::fmt;
use std::panic::Location;

use crate::hot::{Entering, Exhausted, Handle, RawSite};
use crate::id::{LaunchEpoch, W3cParent};
use crate::observation::{LinkKind, Mark};
use crate::scope::{LaunchScope, Scope};

/// Declared GPU work: the owner's handle, and every carrier's.
///
/// A clone is one more carrier. The epoch is *retired* when all of them are gone; work that was
/// queued before still belongs to it. Where nothing records, an epoch is *inert*: everything can
/// be called on it and does nothing.
///
/// ```
/// use lineage_core::{Epoch, Lineage};
///
/// let lineage = Lineage::builder().start()?;
/// let request = Epoch::declare("generate");
/// let batch = Epoch::merge([&request]);
/// batch.launch(|| { /* launch kernels: they belong to the batch, and through it to the request */ });
/// # drop((request, batch));
/// # lineage.shutdown(std::time::Duration::from_secs(1));
/// # Ok::<(), lineage_core::StartError>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "an epoch is retired as soon as its last handle is dropped"]
pub struct Epoch(Option<Handle>);

/// What a session's ids or memory cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// All epoch ids of this process were given out.
    #[error("all 2^40 epoch ids of this process are used up")]
    IdsExhausted,
    /// Too many epochs are live at a time: handles are probably kept for too long.
    #[error("{0} epochs are live: are their handles ever dropped?")]
    TooManyLive(usize),
    /// No session records.
    #[error("nothing is recorded: no lineage session is started, or it is not enabled")]
    NotRecording,
}

impl From<Exhausted> for DeclareError {
    #[cfg(feature = "record")]
    fn from(exhausted: Exhausted) -> Self {
        match exhausted {
            Exhausted::Ids => Self::IdsExhausted,
            Exhausted::Slots => Self::TooManyLive(crate::hot::MAX_LIVE),
        }
    }

    #[cfg(not(feature = "record"))]
    fn from(exhausted: Exhausted) -> Self {
        match exhausted {}
    }
}

impl Epoch {
    /// Declares work under a name of its kind, for example `"generate"`.
    ///
    /// Inert where nothing records. If epochs cannot be made any more, it is inert as well and
    /// counted; [`try_declare`](Self::try_declare) says so.
    #[inline]
    #[track_caller]
    pub fn declare(name: &'static str) -> Self {
        Self::declare_at_site(name, RawSite::of(Location::caller()))
    }

    /// Declares work whose parent span is known, as from an inbound `traceparent`.
    #[track_caller]
    pub fn declare_child_of(name: &'static str, parent: Option<W3cParent>) -> Self {
        let epoch = Self::declare_at_site(name, RawSite::of(Location::caller()));
        if let Some(parent) = parent {
            epoch.set_parent(parent);
        }
        epoch
    }

    /// Declares work for a call site that is known by other means, as a tracing span's.
    pub fn declare_at(name: &'static str, file: &'static str, line: u32, column: u32) -> Self {
        Self::declare_at_site(name, RawSite::new(file, line, column))
    }

    /// Declares work, or says why that cannot be.
    ///
    /// # Errors
    /// See [`DeclareError`].
    #[track_caller]
    pub fn try_declare(name: &'static str) -> Result<Self, DeclareError> {
        let made = Handle::declare(name, RawSite::of(Location::caller()))?;
        made.map(|handle| Self(Some(handle)))
            .ok_or(DeclareError::NotRecording)
    }

    #[inline]
    fn declare_at_site(name: &'static str, site: RawSite) -> Self {
        // What went wrong is counted where it happened.
        Self(Handle::declare(name, site).unwrap_or_default())
    }

    /// Declares a batch that serves all these members: one `Merge` link to each.
    ///
    /// Members without an epoch are left out. A batch of no member at all is inert: its launches
    /// are launches without an epoch.
    #[track_caller]
    pub fn merge<I>(members: I) -> Self
    where
        I: IntoIterator,
        I::Item: HasEpoch,
    {
        let site = RawSite::of(Location::caller());
        let mut members = members
            .into_iter()
            .filter_map(|member| member.epoch())
            .peekable();
        if members.peek().is_none() {
            return Self::inert();
        }
        let batch = Self::declare_at_site("batch", site);
        if let Some(handle) = &batch.0 {
            members.for_each(|member| handle.link(member, LinkKind::Merge));
        }
        batch
    }

    /// Declares a part of this work: one `Fork` link to this epoch.
    #[track_caller]
    pub fn fork(&self, name: &'static str) -> Self {
        self.fork_at_site(name, RawSite::of(Location::caller()))
    }

    /// Declares a part of this work for a call site that is known by other means, as a tracing
    /// span's.
    pub fn fork_at(&self, name: &'static str, file: &'static str, line: u32, column: u32) -> Self {
        self.fork_at_site(name, RawSite::new(file, line, column))
    }

    fn fork_at_site(&self, name: &'static str, site: RawSite) -> Self {
        let Some(parent) = &self.0 else {
            return Self::inert();
        };
        let fork = Self::declare_at_site(name, site);
        if let Some(handle) = &fork.0 {
            handle.link(parent.epoch(), LinkKind::Fork);
        }
        fork
    }

    /// The next step of this work, as the next token of a request: the same id, version + 1.
    ///
    /// When the 24 bits of the version are used up, the step has a fresh id with a `Continues`
    /// link to the old one; of several steps at once exactly one makes the change.
    pub fn step(&self) -> Self {
        Self(self.0.as_ref().and_then(|handle| handle.step(false)))
    }

    /// Another attempt at this work: the same id, version + 1, with a `Retry` link.
    pub fn retry(&self) -> Self {
        Self(self.0.as_ref().and_then(|handle| handle.step(true)))
    }

    /// A carrier of what is current on this thread; inert if that is no live epoch.
    pub fn current() -> Self {
        Self(Handle::current())
    }

    /// An epoch of nothing.
    pub const fn inert() -> Self {
        Self(None)
    }

    /// Whether it is of nothing.
    pub const fn is_inert(&self) -> bool {
        self.0.is_none()
    }

    /// Identity of the work; `None` if inert.
    pub fn id(&self) -> Option<LaunchEpoch> {
        self.0.as_ref().map(Handle::epoch)
    }

    /// Marks this moment for this version of the work.
    pub fn mark(&self, mark: Mark) {
        if let Some(handle) = &self.0 {
            handle.mark(mark);
        }
    }

    /// Marks the work as cancelled: that it never launched is then no fault.
    pub fn cancel(&self) {
        self.mark(Mark::Cancelled);
    }

    /// Says which span the work belongs to. The first one said stays; `false` if there was one.
    pub fn set_parent(&self, parent: W3cParent) -> bool {
        self.0
            .as_ref()
            .is_some_and(|handle| handle.set_parent(parent))
    }

    /// Says that a span which is not trusted asked for the work, as the `traceparent` of a request
    /// from outside. It is recorded as a link and becomes nobody's parent: what
    /// [`parent`](Self::parent) answers, and what is sent on to others, stays as it is.
    pub fn link_span(&self, span: W3cParent) {
        if let Some(handle) = &self.0 {
            handle.link_span(span);
        }
    }

    /// The span the work belongs to, as far as it was said.
    pub fn parent(&self) -> Option<W3cParent> {
        self.0.as_ref().and_then(Handle::parent)
    }

    /// Makes this epoch the current one of this thread until the guard is dropped.
    ///
    /// The guard must not be held across an await: prefer [`run`](Self::run), or a future that was
    /// given the epoch.
    #[must_use = "the scope ends when its guard is dropped"]
    #[inline]
    pub fn enter(&self) -> Scope<'_> {
        Scope::enter(self)
    }

    /// Enters a launch boundary: the epoch is current, and its id is on CUPTI's stack, until the
    /// guard is dropped. The guard must not be held across an await: prefer
    /// [`launch`](Self::launch).
    ///
    /// On an inert epoch this is the boundary of whatever is current.
    #[must_use = "the boundary ends when its guard is dropped"]
    pub fn enter_for_launch(&self) -> LaunchScope<'_> {
        LaunchScope::enter(self)
    }

    /// Runs a closure with this epoch current.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let _scope = self.enter();
        work()
    }

    /// Runs a closure that launches work of this epoch: the launch boundary.
    pub fn launch<R>(&self, work: impl FnOnce() -> R) -> R {
        let _scope = self.enter_for_launch();
        work()
    }

    #[cfg(feature = "record")]
    pub(crate) fn from_handle(handle: Handle) -> Self {
        Self(Some(handle))
    }

    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.0.as_ref()
    }

    #[inline]
    pub(crate) fn enter_as(&self, how: Entering) -> crate::hot::Token {
        self.0
            .as_ref()
            .map_or(crate::hot::Token::NOT_ENTERED, |handle| handle.enter(how))
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id() {
            Some(epoch) => write!(f, "Epoch({epoch})"),
            None => f.write_str("Epoch(inert)"),
        }
    }
}

/// What can be the member of a batch.
pub trait HasEpoch {
    /// Its epoch, if it has one.
    fn epoch(&self) -> Option<LaunchEpoch>;
}

impl HasEpoch for Epoch {
    fn epoch(&self) -> Option<LaunchEpoch> {
        self.id()
    }
}

impl HasEpoch for LaunchEpoch {
    fn epoch(&self) -> Option<LaunchEpoch> {
        Some(*self)
    }
}

impl<T: HasEpoch + ?Sized> HasEpoch for &T {
    fn epoch(&self) -> Option<LaunchEpoch> {
        (**self).epoch()
    }
}

impl<T: HasEpoch> HasEpoch for Option<T> {
    fn epoch(&self) -> Option<LaunchEpoch> {
        self.as_ref().and_then(HasEpoch::epoch)
    }
}
