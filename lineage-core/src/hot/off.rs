//! The hot path without the feature `record`: there is no handle, so nothing that needs one is
//! ever compiled, and the rest is empty.

use crate::hook::{CallLeft, CallSnapshot, GraphLaunched, LaunchAttributesRead};
use crate::id::{Attribution, HostNanos, LaunchEpoch, PackedEpoch, W3cParent};
use crate::observation::{LinkKind, Mark, MisuseKind};

/// Never made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {}

#[derive(Clone, Copy)]
pub(crate) struct RawSite;

impl RawSite {
    pub(crate) fn of(_: &'static std::panic::Location<'static>) -> Self {
        Self
    }

    pub(crate) fn new(_: &'static str, _: u32, _: u32) -> Self {
        Self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entering {
    Scope,
    Boundary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token;

impl Token {
    pub(crate) const NOT_ENTERED: Self = Self;
}

/// No value of this type exists.
#[derive(Clone)]
pub(crate) enum Handle {}

impl Handle {
    pub(crate) fn declare(_: &'static str, _: RawSite) -> Result<Option<Self>, Exhausted> {
        Ok(None)
    }

    pub(crate) fn current() -> Option<Self> {
        None
    }

    pub(crate) fn epoch(&self) -> LaunchEpoch {
        match *self {}
    }

    pub(crate) fn link(&self, _: LaunchEpoch, _: LinkKind) {}

    pub(crate) fn step(&self, _: bool) -> Option<Self> {
        None
    }

    pub(crate) fn mark(&self, _: Mark) {}

    pub(crate) fn set_parent(&self, _: W3cParent) -> bool {
        false
    }

    pub(crate) fn parent(&self) -> Option<W3cParent> {
        None
    }

    pub(crate) fn link_span(&self, _: W3cParent) {}

    pub(crate) fn enter(&self, _: Entering) -> Token {
        Token
    }
}

#[inline]
pub(crate) fn current() -> PackedEpoch {
    PackedEpoch::NONE
}

pub(crate) fn enter_detached(_: &'static str) -> Token {
    Token
}

#[inline]
pub(crate) fn enter_without_epoch(_: PackedEpoch) -> Token {
    Token
}

pub(crate) fn enter_boundary() -> Token {
    Token
}

pub(crate) fn exit(_: Token, _: bool) {}

pub(crate) fn misuse(_: MisuseKind, _: Attribution, _: u64) {}

pub(crate) fn call_entered() -> CallSnapshot {
    CallSnapshot {
        attribution: PackedEpoch::NONE,
        in_boundary: false,
        task: None,
        at: HostNanos(0),
    }
}

pub(crate) fn call_left(_: &CallSnapshot, _: &CallLeft) {}

pub(crate) fn graph_launched(_: &GraphLaunched) {}

pub(crate) fn launch_attributes(_: &LaunchAttributesRead) {}

pub(crate) fn now() -> u64 {
    0
}

pub(crate) fn mark_forked_child() {}
