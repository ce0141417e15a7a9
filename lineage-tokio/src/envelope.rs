//! A value and the epoch it is for, through any channel.

use lineage_core::carrier::Carrier;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::CarrierKind;
use lineage_core::{Epoch, HasEpoch};

use crate::{entered, task_id};

#[cfg(not(feature = "record"))]
#[path = "envelope/passed_through.rs"]
mod content;
#[cfg(feature = "record")]
#[path = "envelope/recorded.rs"]
mod content;

use self::content::Content;

/// Puts a value into an envelope, together with the current epoch.
///
/// The envelope is a plain value: any channel, queue or list carries it. Where the work goes on,
/// [`run`](Carried::run) or [`open`](Carried::open) it. Without a current epoch the envelope is
/// empty beside its value; work that is launched from it is then reported as lost (`L01`).
///
/// # Example
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
/// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
/// # runtime.block_on(async {
/// use lineage_core::Epoch;
/// use lineage_tokio::carried;
///
/// let (queue, mut jobs) = tokio::sync::mpsc::channel(8);
/// let request = Epoch::declare("request");
/// let job = request.run(|| carried("a prompt"));
/// queue.send(job).await.expect("the receiver lives");
///
/// let job = jobs.recv().await.expect("one was sent");
/// let (epoch, words) = job.run(|prompt| {
///     (lineage_core::current().epoch(), prompt.split(' ').count())
/// });
/// assert_eq!((epoch, words), (request.id(), 2));
/// # });
/// ```
#[track_caller]
pub fn carried<T>(value: T) -> Carried<T> {
    entered::sweep();
    carried_by(&Epoch::current(), value)
}

/// Puts a value into an envelope, together with this epoch.
#[track_caller]
pub fn carried_by<T>(epoch: &Epoch, value: T) -> Carried<T> {
    task_id::install_hook();
    Carried::new(value, Carrier::new(epoch, CarrierKind::Envelope))
}

/// A value on its way, with the epoch it is for. Made by [`carried`] and [`carried_by`].
///
/// The envelope keeps its epoch alive. It ends in one of four ways, each of which is recorded:
///
/// * opened by [`open`](Self::open) or [`run`](Self::run): *received*;
/// * dropped together with its value, as when a receiver goes away: *abandoned*, which is no fault.
///   The value is dropped with the epoch current, so what its destructor launches is the epoch's;
/// * taken back where it was made, since it could not be sent ([`take_back`](Self::take_back)):
///   *abandoned* as well;
/// * its value is taken out and goes on without the epoch ([`into_payload`](Self::into_payload)):
///   `L05`.
///
/// A clone is a handoff of its own, so an envelope may go through a broadcast or watch channel.
#[must_use = "an envelope that is dropped counts as abandoned work"]
#[derive(Clone)]
pub struct Carried<T> {
    content: Content<T>,
}

impl<T> Carried<T> {
    fn new(value: T, carrier: Carrier) -> Self {
        Self {
            content: Content::new(value, carrier),
        }
    }

    fn take_apart(self) -> (T, Carrier) {
        self.content.take_apart()
    }

    /// Opens the envelope: the value, and the epoch to work for. Records that the handoff was
    /// received on this thread.
    pub fn open(self) -> (T, Epoch) {
        entered::sweep();
        let (value, carrier) = self.take_apart();
        (value, carrier.open())
    }

    /// Opens the envelope and works on its value with the epoch current.
    ///
    /// To launch GPU work right here, [`open`](Self::open) it and use
    /// [`Epoch::launch`](lineage_core::Epoch::launch), which also tells CUPTI.
    pub fn run<R>(self, work: impl FnOnce(T) -> R) -> R {
        let (value, epoch) = self.open();
        epoch.run(|| work(value))
    }

    /// The value, without opening the envelope.
    pub fn payload(&self) -> &T {
        self.content.value()
    }

    /// The value, to be changed, without opening the envelope.
    pub fn payload_mut(&mut self) -> &mut T {
        self.content.value_mut()
    }

    /// Another value in the same envelope: still the same handoff.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Carried<U> {
        let (value, carrier) = self.take_apart();
        Carried::new(change(value), carrier)
    }

    /// Takes the value back where the envelope was made, as when a channel is closed or full: the
    /// handoff did not come about, and counts as abandoned.
    ///
    /// ```
    /// use lineage_tokio::carried;
    ///
    /// let (queue, jobs) = std::sync::mpsc::channel();
    /// drop(jobs);
    /// let unsent = queue.send(carried("a prompt")).map_err(|error| error.0.take_back());
    /// assert_eq!(unsent, Err("a prompt"));
    /// ```
    pub fn take_back(self) -> T {
        self.take_apart().0
    }

    /// Takes the value out and leaves the epoch behind, knowingly: the handoff is neither received
    /// nor abandoned, and is reported as `L05`.
    pub fn into_payload(self) -> T {
        let (value, carrier) = self.take_apart();
        carrier.forget();
        value
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Carried<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let epoch = HasEpoch::epoch(self);
        f.debug_struct("Carried")
            .field("payload", self.payload())
            .field("epoch", &epoch)
            .finish()
    }
}

impl<T> HasEpoch for Carried<T> {
    fn epoch(&self) -> Option<LaunchEpoch> {
        self.content.epoch()
    }
}
