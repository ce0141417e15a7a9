//! What a server can do without lineage, measured at the same launches.
//!
//! * **span**: every request has a tracing span, entered where the request begins and in every poll
//!   of its own future; the launch asks [`tracing::Span::current`].
//! * **thread-local**: every request writes its number into a thread-local where it begins, and
//!   takes it away where it ends; the launch reads it.
//!
//! Neither is handed on by the carriers, just as neither is in programs that have only them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Span, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

thread_local! {
    static REQUEST: Cell<u64> = const { Cell::new(0) };
}

/// The thread-local's way: from here until [`end`], work on this thread is this request's.
pub fn begin(number: u64) {
    REQUEST.set(number);
}

/// The request ends, on whichever thread.
pub fn end() {
    REQUEST.set(0);
}

/// A request goes on here for a while, as inside a pool: its span is entered and the thread-local is
/// its, until the work is done.
pub fn here<R>(number: u64, work: impl FnOnce() -> R) -> R {
    span(number).in_scope(|| {
        begin(number);
        let done = work();
        end();
        done
    })
}

/// A request's span.
pub fn span(number: u64) -> Span {
    tracing::info_span!("request", number)
}

/// Whose work a launch on this thread would be by the thread-local; 0 for nobody's.
fn by_thread_local() -> u64 {
    REQUEST.get()
}

/// Whose work it would be by the current span; 0 for nobody's.
fn by_span() -> u64 {
    let number = Span::current().with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        span.scope()
            .find_map(|span| span.extensions().get::<Number>().map(|number| number.0))
    });
    number.flatten().unwrap_or(0)
}

/// What each way said, compared with the truth.
#[derive(Default)]
pub struct Baselines {
    span: Tally,
    thread_local: Tally,
}

impl Baselines {
    /// A launch for these requests is about to be made on this thread.
    pub fn at_launch(&self, truly: &[u64]) {
        self.span.count(by_span(), truly);
        self.thread_local.count(by_thread_local(), truly);
    }

    /// What came of the spans.
    pub fn span(&self) -> Missed {
        self.span.missed()
    }

    /// What came of the thread-local.
    pub fn thread_local(&self) -> Missed {
        self.thread_local.missed()
    }
}

#[derive(Default)]
struct Tally {
    launches: AtomicU64,
    lost: AtomicU64,
    wrong: AtomicU64,
}

impl Tally {
    fn count(&self, said: u64, truly: &[u64]) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        if said == 0 {
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else if truly != [said] {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn missed(&self) -> Missed {
        Missed {
            launches: self.launches.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            wrong: self.wrong.load(Ordering::Relaxed),
        }
    }
}

/// How many launches were nobody's, and how many another's.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
pub struct Missed {
    /// Launches that were asked about.
    pub launches: u64,
    /// Said to be nobody's.
    pub lost: u64,
    /// Said to be another's; a batch's launch also if only one of its requests was named.
    pub wrong: u64,
}

impl Missed {
    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        Self {
            launches: self.launches + other.launches,
            lost: self.lost + other.lost,
            wrong: self.wrong + other.wrong,
        }
    }
}

/// Keeps a request's number with its span.
pub struct NumberLayer;

struct Number(u64);

impl<S> Layer<S> for NumberLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        struct Read(Option<u64>);
        impl Visit for Read {
            fn record_u64(&mut self, field: &Field, value: u64) {
                if field.name() == "number" {
                    self.0 = Some(value);
                }
            }
            fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
        }
        let mut read = Read(None);
        attributes.record(&mut read);
        if let (Some(number), Some(span)) = (read.0, context.span(id)) {
            span.extensions_mut().replace(Number(number));
        }
    }
}
