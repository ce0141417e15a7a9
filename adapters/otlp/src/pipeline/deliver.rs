//! Brings one batch to the collector, however often that takes.
//!
//! Between two attempts the collector's wish counts (`Retry-After`, or gRPC's retry information), for all of a signal's senders,
//! and where it has none, a back-off of ours. Two things end attempts, and both leave the last one a fair part of the time:
//!
//! * A batch is given up some time after its first attempt. The last begins when a request's time is left of it, or a quarter.
//! * A shutdown has a deadline. It ends waits of our own choice at once and makes later ones short, so that attempts go on as
//!   long as there is time. A wish of the collector's is kept until the last quarter. Then it is asked once more, and if it
//!   still wishes so, what is left is lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::backoff::Backoff;
use super::batch::{Batch, End, Piece};
use super::counts::{ExportCounters, LossReason};
use super::problem::{Problems, Trouble};
use super::{ProblemKind, Signal};
use crate::transport::{Client, Target, Verdict};

/// A collector may ask for no more than this.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// However long a shutdown may take, the part of it that is for last attempts is no longer than this.
const LONGEST_LAST_PART: Duration = Duration::from_secs(10);

/// Beyond all that matters, and within what a clock can hold.
pub(super) const FOREVER: Duration = Duration::from_secs(1 << 32);

/// However little time is left of a shutdown.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// A sender's connection, and what it knows about how its collector fares.
pub(crate) struct Sender {
    pub(crate) signal: Signal,
    pub(crate) target: Arc<Target>,
    pub(crate) client: Client,
    pub(crate) counters: ExportCounters,
    pub(crate) problems: Arc<Problems>,
    pub(crate) backoff: Backoff,
    pub(crate) give_up_after: Duration,
    /// When everything has to be done, once that is known.
    pub(crate) stop: watch::Receiver<Option<Stop>>,
    pub(crate) throttle: Arc<Throttle>,
    /// Whether its last request failed, and will be made again.
    pub(crate) is_failing: bool,
}

/// Before when the collector does not want to be asked, of which it told one of a signal's senders.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Option<Told>>);

#[derive(Clone, Copy, Debug)]
struct Told {
    at: Instant,
    until: Instant,
}

impl Throttle {
    /// `None` where there is nothing to wait for.
    fn told(&self) -> Option<Told> {
        let told = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.filter(|told| told.until > Instant::now())
    }

    fn extend(&self, until: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = known.map_or(until, |known| known.until.max(until));
        let at = Instant::now();
        *known = Some(Told { at, until });
    }
}

/// When a shutdown has to be over, and how its time is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) deadline: Instant,
    /// From here on the collector is asked once more though it wished to be left alone for longer: what is not sent now is lost.
    last_attempts: Instant,
}

impl Stop {
    /// The last quarter of the time is for last attempts.
    pub(crate) fn within(time: Duration) -> Self {
        let time = time.min(FOREVER);
        let deadline = Instant::now() + time;
        let last_attempts = deadline - (time / 4).min(LONGEST_LAST_PART);
        Self {
            deadline,
            last_attempts,
        }
    }

    /// Attempts come the closer together the less time is left, so that a collector that comes back in it is not missed.
    fn longest_pause(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        (left / 4).max(SHORTEST_PAUSE)
    }
}

impl Sender {
    /// Until each of the batch's items was answered for or lost.
    pub(crate) async fn deliver(&mut self, batch: &mut Batch) {
        while let Some(piece) = batch.next() {
            match self.deliver_piece(&piece).await {
                Delivered::End(end, trouble) => {
                    batch.end(end);
                    if let Some(trouble) = trouble {
                        self.problems.say(self.signal, &trouble);
                    }
                }
                Delivered::TooLarge(trouble) => {
                    // What is split is delivered after all, and is not worth a word.
                    if !batch.split() {
                        batch.end(End::Answered { refused: 1 });
                        self.problems.say(self.signal, &trouble);
                    }
                }
            }
        }
    }

    async fn deliver_piece(&mut self, piece: &Piece) -> Delivered {
        let prepared = self.target.prepare(piece.body.clone());
        // The time of the first attempt, and until when another is made.
        let mut began: Option<(Instant, Instant)> = None;
        let mut attempts = 0;
        loop {
            if !self.may_ask(began.map(|(_, latest)| latest)).await {
                return Delivered::End(End::Lost(LossReason::Shutdown), None);
            }
            let (began, latest) = *began.get_or_insert_with(|| {
                let now = Instant::now();
                (now, now + self.time_for_attempts())
            });
            self.counters.request();
            if attempts > 0 {
                self.counters.of(self.signal).retried.add(piece.count);
            }
            attempts += 1;
            let verdict = self.client.send(&prepared).await;
            self.is_failing = matches!(verdict, Verdict::Again { .. });
            let (trouble, after) = match verdict {
                Verdict::Accepted { refused, warning } => {
                    let warning = warning.map(|it| self.with_doubts(it, refused, piece.count));
                    return Delivered::End(End::Answered { refused }, warning);
                }
                Verdict::TooLarge(trouble) => return Delivered::TooLarge(trouble),
                Verdict::Refused(trouble) => {
                    let refused = piece.count;
                    return Delivered::End(End::Answered { refused }, Some(trouble));
                }
                Verdict::Again { trouble, after } => (trouble, after),
            };
            self.problems.say(self.signal, &trouble);
            let now = Instant::now();
            // A collector that asks for no wait at all, again and again, gets one of ours.
            let asked = after.unwrap_or_default().min(LONGEST_WAIT);
            let wait = asked.max(self.backoff.wait(attempts));
            if after.is_some() {
                self.throttle.extend(now + wait);
            }
            if now >= latest {
                let what = format!(
                    "a batch of {} {} is given up after {} s and {attempts} attempts ({})",
                    piece.count,
                    self.signal.items(),
                    (now - began).as_secs(),
                    trouble.what
                );
                let given_up = Trouble::new(ProblemKind::GivenUp, what);
                return Delivered::End(End::Lost(LossReason::GivenUp), Some(given_up));
            }
            if after.is_none() {
                self.pause(wait.min(latest - now)).await;
            }
        }
    }

    /// For how long after a batch's first attempt another is made: so that the last, too, has time before the batch is given up.
    fn time_for_attempts(&self) -> Duration {
        let for_the_last = self.target.destination.timeout.min(self.give_up_after / 4);
        (self.give_up_after - for_the_last).min(FOREVER)
    }

    /// A collector may refuse more data points than a request has metrics, but not more spans than it has.
    fn with_doubts(&self, mut warning: Trouble, refused: u64, count: u64) -> Trouble {
        if refused > count && self.signal != Signal::Metrics {
            let items = self.signal.items();
            warning.what += &format!(
                " (the request has {count} {items}, which is less: all of them count as refused)"
            );
        }
        warning
    }

    /// Waits as long as the collector wishes to be left alone, but not beyond the time when this batch is tried for the last
    /// time, nor beyond a shutdown's last part. `false` if it said within that part that it still wishes so.
    async fn may_ask(&mut self, latest: Option<Instant>) -> bool {
        loop {
            let stop = *self.stop.borrow_and_update();
            let Some(told) = self.throttle.told() else {
                return true;
            };
            let mut until = latest.map_or(told.until, |latest| told.until.min(latest));
            if let Some(stop) = stop {
                if told.at < stop.last_attempts {
                    until = until.min(stop.last_attempts);
                } else if until >= stop.deadline {
                    return false;
                }
            }
            if until <= Instant::now() {
                return true;
            }
            // Once a shutdown has begun, or nobody is left who could begin one, there is no news to wait for.
            if stop.is_some() || matches!(timeout_at(until, self.stop.changed()).await, Ok(Err(_)))
            {
                sleep_until(until).await;
            }
        }
    }

    /// A wait of our own choice. It ends when a shutdown begins, for another attempt at once, and is short during one.
    async fn pause(&mut self, wait: Duration) {
        let stop = *self.stop.borrow_and_update();
        match stop {
            Some(stop) => sleep(wait.min(stop.longest_pause())).await,
            None => {
                let _ = timeout(wait, self.stop.changed()).await;
            }
        }
    }
}

/// A sender is dropped in the middle of a request when the time of a shutdown is over.
impl Drop for Sender {
    fn drop(&mut self) {
        // Where attempts failed before, why they did says more.
        if let Some(stage) = self.client.under_way()
            && !self.is_failing
            && !std::thread::panicking()
        {
            let what = format!("a request was not answered in the time that was left, {stage}");
            self.problems.note(self.signal, &what);
        }
    }
}

enum Delivered {
    /// What is said of it, is said after it was counted.
    End(End, Option<Trouble>),
    TooLarge(Trouble),
}
