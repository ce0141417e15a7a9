//! Stands where CUPTI stands: sees what is pushed at a boundary, and what a launch sees in it.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use candle_core::{Module, Result, Tensor};
use lineage_core::hook::{BoundaryHook, PushToken, call_entered, set_boundary_hook};
use lineage_core::id::{Attribution, LaunchEpoch, PackedEpoch};
use lineage_core::{Lineage, Report};

/// CUPTI's stack of external ids, on the one thread that a test launches from.
static STACK: Mutex<Vec<PackedEpoch>> = Mutex::new(Vec::new());

struct Stack;

impl BoundaryHook for Stack {
    fn push(&self, id: PackedEpoch) -> PushToken {
        stack().push(id);
        PushToken {
            session: 1,
            pushed: true,
        }
    }

    fn pop(&self, _: PushToken, id: PackedEpoch) {
        assert_eq!(stack().pop(), Some(id), "pushes and pops are in balance");
    }
}

fn stack() -> std::sync::MutexGuard<'static, Vec<PackedEpoch>> {
    STACK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` in a session of its own, one test at a time.
pub(crate) fn recorded<R>(body: impl FnOnce() -> R) -> (R, Report) {
    static TURN: Mutex<()> = Mutex::new(());
    static HOOK: Once = Once::new();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    HOOK.call_once(|| set_boundary_hook(&Stack).expect("the only hook"));
    let lineage = Lineage::builder()
        .keep_in_memory(100_000)
        .start()
        .expect("no other session is running");
    let result = body();
    assert_eq!(lineage_core::current(), Attribution::None);
    assert!(stack().is_empty(), "a boundary was left open");
    (result, lineage.shutdown(Duration::from_secs(10)))
}

/// What a launch saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launch {
    /// What lineage's callback reads.
    pub(crate) attribution: Attribution,
    pub(crate) in_boundary: bool,
    /// What CUPTI would record.
    pub(crate) pushed: Option<Attribution>,
}

impl Launch {
    /// A launch that is joined to this epoch by every source.
    pub(crate) fn of(epoch: LaunchEpoch) -> Self {
        let epoch = Attribution::Epoch(epoch);
        Self {
            attribution: epoch,
            in_boundary: true,
            pushed: Some(epoch),
        }
    }
}

/// A module that launches before and after the one in it.
pub(crate) struct Launches<M> {
    pub(crate) inner: M,
    seen: Mutex<Vec<Launch>>,
}

impl<M> Launches<M> {
    pub(crate) fn around(inner: M) -> Self {
        Self {
            inner,
            seen: Mutex::default(),
        }
    }

    pub(crate) fn take(&self) -> Vec<Launch> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn launch(&self) {
        let call = call_entered();
        let launch = Launch {
            attribution: call.attribution.unpack(),
            in_boundary: call.in_boundary,
            pushed: stack().last().map(|id| id.unpack()),
        };
        self.seen.lock().expect("no panic").push(launch);
    }
}

impl<M: Module> Module for Launches<M> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.launch();
        let output = self.inner.forward(input)?;
        self.launch();
        Ok(output)
    }
}
