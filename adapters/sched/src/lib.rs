//! When the threads of a process were off their processors, and why: the operating system's
//! scheduler as evidence for [launch lineage](https://docs.rs/launch-lineage).
//!
//! A kernel started late because the thread that launches it was late. Was it preempted, and by how
//! much; was it asleep; or did it run all the time, and the delay is elsewhere? This crate lets a
//! session observe its own threads, without privileges and without a tracer:
//!
//! ```
//! use std::time::Duration;
//!
//! use lineage_core::observation::{Event, SwitchedOff};
//! use lineage_core::{Epoch, Lineage};
//! use lineage_sched::Scheduler;
//!
//! # fn main() -> Result<(), lineage_core::StartError> {
//! let lineage = Lineage::builder()
//!     .service("llm")
//!     .scheduler(Scheduler::new())
//!     .keep_in_memory(10_000)
//!     .start()?;
//!
//! let epoch = Epoch::declare("request"); // the thread's first record: from here on it is observed
//! std::thread::sleep(Duration::from_millis(20));
//! drop(epoch);
//!
//! let report = lineage.shutdown(Duration::from_secs(5));
//! println!("{}", report.scheduler); // scheduler evidence: every switch of 1 threads
//! for observation in &report.observations {
//!     if let Event::Scheduled(switch) = &observation.event {
//!         match switch.off {
//!             Some(SwitchedOff::Preempted) => println!("{} preempted", switch.at),
//!             Some(SwitchedOff::Blocked) => println!("{} blocked", switch.at),
//!             _ => println!("{} runs on cpu {:?}", switch.at, switch.cpu),
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Which threads
//!
//! Those that lineage records: each opens a ring of its own when it makes its first record, so that
//! none of its switches is missed from there on. [`Scheduler::all_threads`] adds the others, which are
//! looked for four times a second.
//!
//! # What is known of them
//!
//! | what | how | where it is not to be had |
//! | --- | --- | --- |
//! | every switch: when, on which processor, preempted or blocked | `perf_event_open(2)` on the thread itself, with a dummy event and `context_switch` | `kernel.perf_event_paranoid` above 2 without CAP_PERFMON; containers whose seccomp profile forbids the call; no file descriptor or no lockable memory left |
//! | how long it waited for a processor between two readings | `/proc/self/task/TID/schedstat`, every 50 ms | kernels without CONFIG_SCHED_INFO |
//! | nothing, and why | | |
//!
//! Each thread gets the best of these that is to be had, and the session says which, when and why:
//! [`SchedulerSession`](lineage_core::observation::SchedulerSession) in the stream, and
//! [`Report::scheduler`](lineage_core::Report::scheduler). So "no switch was seen" can be told from
//! "nobody looked".
//!
//! *Blocked* includes the time from waking up to running: a switch is only written down when the
//! thread gets its processor. *Preempted* includes `sched_yield`. The time that a hypervisor took from
//! the whole processor is neither: the guest's kernel does not see it, but in `/proc/stat` as "steal".
//!
//! # Times
//!
//! Switches are stamped with `CLOCK_MONOTONIC`, which is the session's clock unless it was given
//! another. A clock that keeps within 50 µs of it is as good, as `lineage_clock::now` does. Any other,
//! as a virtual one, cannot be compared, and there is no scheduler evidence: the session says so. It is
//! compared at the start and four times a second.
//!
//! # What it costs
//!
//! On the application's threads two system calls at their first record, and then what the kernel
//! takes to note a switch: on a virtual machine here 28 µs once, and 2.5 µs per switch off and on
//! again, with what the session's drain thread takes to read it. Each observed thread takes a file
//! descriptor and [36 KiB](Scheduler::ring_bytes) of locked memory.
//!
//! The first event on a machine makes the kernel switch its hooks on, which takes 7 to 15 ms here. The
//! session has that done by the thread that starts it, and holds that event, one more descriptor, so
//! that the hooks stay on until it ends.
//!
//! # Elsewhere than on Linux
//!
//! The crate compiles, and the session says that it is not supported.
#![cfg_attr(not(target_os = "linux"), forbid(unsafe_code))]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::time::Duration;

use lineage_core::observation::Observation;
use lineage_core::source::{EvidenceSource, NoEvidence, SourceContext};

#[cfg(target_os = "linux")]
use linux::Source;
#[cfg(not(target_os = "linux"))]
use unsupported::Source;

/// The operating system's scheduler as a source of evidence, for
/// [`LineageBuilder::scheduler`](lineage_core::LineageBuilder::scheduler).
#[derive(Debug)]
#[must_use = "a source does nothing until a session starts with it"]
pub struct Scheduler {
    switches: bool,
    ring_bytes: usize,
    all_threads: bool,
    run_queue_every: Duration,
    source: Option<Source>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            switches: true,
            ring_bytes: 32 << 10,
            all_threads: false,
            run_queue_every: Duration::from_millis(50),
            source: None,
        }
    }
}

impl Scheduler {
    /// Every switch of every thread that lineage records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether switches can be collected here and now: opens a ring for the calling thread, and closes
    /// it.
    ///
    /// # Errors
    /// [`NoEvidence`] says why not, and what would help. A session may start all the same, and has
    /// what `/proc` gives.
    pub fn check() -> Result<(), NoEvidence> {
        Source::check()
    }

    /// Whether every switch is collected, as by default. Without, each thread has no more than its
    /// run-queue delay, and needs neither a file descriptor nor memory.
    pub fn switches(mut self, switches: bool) -> Self {
        self.switches = switches;
        self
    }

    /// Room in each thread's ring, in bytes, of 32 for each switch: rounded up to a power of two of
    /// pages. One more page is taken for bookkeeping. The default, 32 KiB, is time for 1,024
    /// switches until the drain thread comes.
    ///
    /// The memory is locked. Where the system does not let that much be locked, the ring is made
    /// smaller; what finds no room in it is counted.
    pub fn ring_bytes(mut self, bytes: usize) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// Whether threads are observed that never use lineage, too. They are looked for four times a
    /// second, and observed from when they are found.
    pub fn all_threads(mut self, all_threads: bool) -> Self {
        self.all_threads = all_threads;
        self
    }

    /// How often the run-queue delay is read of the threads whose switches are not collected: the
    /// length of the intervals that it is known for. About 10 µs a thread and reading.
    pub fn run_queue_every(mut self, interval: Duration) -> Self {
        self.run_queue_every = interval;
        self
    }
}

impl EvidenceSource for Scheduler {
    fn start(&mut self, context: SourceContext) -> Result<(), NoEvidence> {
        self.source = Some(Source::start(self, context)?);
        Ok(())
    }

    fn drain(&mut self, out: &mut dyn FnMut(Observation)) {
        if let Some(source) = &mut self.source {
            source.drain(out);
        }
    }

    /// Nothing waits to be asked for: each `drain` takes all that is there.
    fn flush(&mut self) {}

    fn stop(&mut self, _within: Duration, out: &mut dyn FnMut(Observation)) {
        if let Some(source) = self.source.take() {
            source.stop(out);
        }
    }
}
