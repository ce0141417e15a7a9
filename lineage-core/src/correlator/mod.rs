//! The correlator: observations in, rows out.
//!
//! A pure state machine: it has no clock, no thread, no input or output, and the same observations
//! in the same order give the same rows. What it holds is bounded by [`Limits`].
//!
//! # The protocol
//!
//! [`observe`](Correlator::observe) takes the observations of any number of processes, in whatever
//! order they come. Three orders are relied on, and no others:
//!
//! * the host records of one thread come in the order in which they were written;
//! * at most one flush is reported between two readings of the rings, so two flushes after a host
//!   record, every host record from before it is here;
//! * an external correlation record comes with the start of the API record it precedes
//!   ([`beside`](crate::observation::ExternalRecord::beside)).
//!
//! Device records come in any order, and may come hours late: buffers sit on idle threads.
//! [`drain`](Correlator::drain) moves out what is ready; [`end`](Correlator::end) decides the rest.
//! Every row given stands for one operation, or for a call that has none. If what a row missed
//! comes after all, a row that
//! [`supersedes`](crate::row::Row::supersedes) it is given, and [`Totals`] take the first one back.
//!
//! # The rules
//!
//! 1. **Ids.** Correlation ids wrap at 32 bits. A record's own start time places it between
//!    checkpoints of unwrapped ids; one without a time joins only if exactly one call is retained
//!    that can be meant. Calls are keyed by process, session and unwrapped id. (`unwrap`)
//! 2. **One call.** A runtime call and the driver call nested in it are one call, whether CUPTI gives
//!    both the same id or not, and whichever of the two ids the operation carries: a driver call
//!    belongs to the runtime call of its thread that surrounds it in time. Several calls of one id
//!    that no runtime call surrounds are W04. (`nesting`)
//! 3. **Whose.** CUPTI's external record and our own callback are observed; containment in a scope of
//!    the thread is inferred and binds only alone. Observed sources that disagree are both kept, and
//!    that is W03; an epoch that nobody declared is W05, unless records are lost. No epoch at all is
//!    L01 where one was due. What the driver launched for itself is nobody's. (`join`, `threads`)
//! 4. **When.** A row waits for what is due, and for nothing longer than until its thread's fence.
//!    (`settle`; `lanes` says what a fence is)
//! 5. **Alone.** After the fence, a call without an operation is L03 unless it failed or none is due;
//!    an operation without a call is L02 unless its id is 0 or lies outside of the ids recorded. None
//!    is due of a call that was captured: our own callback says so, and so does a node that was made
//!    inside of it, whichever of the two is lost, and however late CUPTI's record comes; where both are, it
//!    may be captured. At
//!    the end, a call above the last operation is the edge of the recording: counted, and no fault.
//!    (`alone`)
//! 6. **Times** are never repaired: L08, T01, T02 and T04 say what is wrong with them. (`rows`)
//! 7. **Graphs.** A launch means the executable graph that its id named at that moment, and each of its
//!    operations the node that was captured or made by hand. A node of which that is not known is L06;
//!    one that another launch must have run is W06; one that ran before its graph was there W08.
//!    (`graphs`)
//! 8. **Epochs** whose work was handed on and that retire without a launch are L04, handoffs that
//!    were forgotten L05. (`epochs`)

mod alone;
mod calls;
mod captured;
mod declared;
mod emit;
mod epochs;
mod graphs;
mod join;
mod lanes;
mod limits;
mod nesting;
mod process;
mod room;
mod rows;
mod session;
mod settle;
mod threads;
mod unwrap;

pub use limits::Limits;

use self::emit::Outbox;
use self::process::Process;
use crate::id::HostNanos;
use crate::observation::Observation;
use crate::row::{LooseFault, Row};
use crate::totals::Totals;

/// Joins observations to rows. See the [module's documentation](self) for the protocol.
///
/// ```
/// use lineage_core::correlator::{Correlator, Limits};
///
/// let mut correlator = Correlator::new(Limits::default());
/// # let observations: Vec<lineage_core::observation::Observation> = Vec::new();
/// for observation in &observations {
///     correlator.observe(observation);
/// }
/// correlator.end();
/// let (mut rows, mut faults) = (Vec::new(), Vec::new());
/// correlator.drain(&mut rows, &mut faults);
/// assert_eq!(correlator.totals().lost, 0);
/// ```
#[derive(Debug)]
pub struct Correlator {
    limits: Limits,
    processes: Vec<Process>,
    out: Outbox,
}

impl Correlator {
    /// A correlator that holds no more than this.
    pub fn new(limits: Limits) -> Self {
        let out = Outbox::new(limits.undrained);
        Self {
            limits,
            processes: Vec::new(),
            out,
        }
    }

    /// Takes one observation.
    pub fn observe(&mut self, observation: &Observation) {
        self.out.totals.observations += 1;
        let known = self
            .processes
            .iter()
            .position(|process| process.ordinal == observation.process);
        let at = known.unwrap_or_else(|| {
            self.processes.push(Process::new(observation.process));
            self.processes.len() - 1
        });
        self.processes[at].observe(&observation.event, &self.limits, &mut self.out);
    }

    /// Nothing comes any more: everything that is held back is decided.
    pub fn end(&mut self) {
        for process in &mut self.processes {
            process.end(&self.limits, &mut self.out);
        }
    }

    /// Appends the rows and faults since the last time.
    pub fn drain(&mut self, rows: &mut Vec<Row>, faults: &mut Vec<LooseFault>) {
        self.out.drain(rows, faults);
    }

    /// What it came to so far.
    pub fn totals(&self) -> &Totals {
        &self.out.totals
    }

    /// When the earliest call was entered of which a row may still come; `None` if there is none.
    ///
    /// A call of a graph launch has many rows, so it counts until the fence of its thread. Looks at
    /// every open call: meant to be asked a few times a second.
    pub fn oldest_open_call(&self) -> Option<HostNanos> {
        self.processes
            .iter()
            .filter_map(Process::oldest_open_call)
            .min()
    }

    /// Calls and operations whose row is not given yet.
    pub fn pending(&self) -> usize {
        usize::try_from(self.out.totals.pending).unwrap_or(usize::MAX)
    }
}
