//! Brings one batch to the collector, however often that takes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::backoff::Backoff;
use super::batch::{Batch, End, Piece};
use super::counts::{ExportCounters, LossReason};
use super::problem::{Problems, Trouble};
use super::{ProblemKind, Signal};
use crate::transport::{Client, Target, Verdict};

/// A collector may ask for no more than this.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

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
    pub(crate) stop: watch::Receiver<Option<Instant>>,
    pub(crate) throttle: Arc<Throttle>,
}

/// Before when the collector does not want to be asked, of which it told one of a signal's senders.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Option<Instant>>);

impl Throttle {
    /// `None` where there is nothing to wait for.
    fn until(&self) -> Option<Instant> {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.filter(|until| *until > Instant::now())
    }

    fn extend(&self, until: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (*known).max(Some(until));
    }
}

/// Whether a wait was worth it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    Over,
    /// The shutdown's deadline comes first.
    TooLong,
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
        let mut began = None;
        let mut attempts = 0;
        loop {
            while let Some(until) = self.throttle.until() {
                if self.wait_until(until, false).await == Waited::TooLong {
                    return Delivered::End(End::Lost(LossReason::Shutdown), None);
                }
            }
            let began = *began.get_or_insert_with(Instant::now);
            self.counters.request();
            if attempts > 0 {
                self.counters.of(self.signal).retried.add(piece.count);
            }
            attempts += 1;
            let (trouble, after) = match self.client.send(&prepared).await {
                Verdict::Accepted { refused, warning } => {
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
            let next = now + wait;
            if after.is_some() {
                self.throttle.extend(next);
            }
            if next > began + self.give_up_after {
                let what = format!(
                    "a batch of {} {} is given up after {} s, and would be tried again in {} s at the earliest ({})",
                    piece.count,
                    self.signal.items(),
                    (now - began).as_secs(),
                    wait.as_secs(),
                    trouble.what
                );
                let given_up = Trouble::new(ProblemKind::GivenUp, what);
                return Delivered::End(End::Lost(LossReason::GivenUp), Some(given_up));
            }
            if after.is_none() && self.wait_until(next, true).await == Waited::TooLong {
                return Delivered::End(End::Lost(LossReason::Shutdown), None);
            }
        }
    }

    /// A wait of our own choice ends when a shutdown begins, for another attempt at once.
    async fn wait_until(&mut self, time: Instant, own_choice: bool) -> Waited {
        loop {
            let deadline = *self.stop.borrow_and_update();
            if deadline.is_some_and(|deadline| deadline < time) {
                return Waited::TooLong;
            }
            let left = time.saturating_duration_since(Instant::now());
            if deadline.is_some() {
                sleep_until(time).await;
                return Waited::Over;
            }
            match timeout(left, self.stop.changed()).await {
                Err(_) => return Waited::Over,
                Ok(_) if own_choice => return Waited::Over,
                Ok(Ok(())) => {}
                // Nobody is left who could tell of a shutdown.
                Ok(Err(_)) => {
                    sleep_until(time).await;
                    return Waited::Over;
                }
            }
        }
    }
}

enum Delivered {
    /// What is said of it, is said after it was counted.
    End(End, Option<Trouble>),
    TooLarge(Trouble),
}
