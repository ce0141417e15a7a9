//! Sending with the current epoch, through the channels that servers use.
//!
//! A channel of envelopes needs nothing but [`carried`](crate::carried):
//! `queue.send(carried(job))`, and `open` or `run` at the other end. What is here is the short way
//! for it, and gives the value back, out of its envelope, where it could not be sent.

#[cfg(feature = "crossbeam-channel")]
mod crossbeam;
#[cfg(feature = "flume")]
mod flume;
mod std;
mod tokio;

/// Sends a value at once, in an envelope with the current epoch.
///
/// | channel | |
/// | --- | --- |
/// | [`tokio::sync::mpsc::UnboundedSender`](::tokio::sync::mpsc::UnboundedSender) | |
/// | [`tokio::sync::oneshot::Sender`](::tokio::sync::oneshot::Sender) | by value, as its `send` |
/// | [`tokio::sync::broadcast::Sender`](::tokio::sync::broadcast::Sender) | each receiver receives a handoff of its own; the channel's own copy is abandoned |
/// | [`tokio::sync::watch::Sender`](::tokio::sync::watch::Sender) | the latest stays, and is cloned by whoever takes it up; what is overwritten is abandoned |
/// | [`std::sync::mpsc::Sender`](::std::sync::mpsc::Sender), [`SyncSender`](::std::sync::mpsc::SyncSender) | a `SyncSender` waits for room |
/// | `crossbeam_channel::Sender` | feature `crossbeam-channel`; a bounded one waits for room |
/// | `flume::Sender` | feature `flume`; a bounded one waits for room |
///
/// The answer is that of the channel's own `send`, but the error holds the value and not its
/// envelope, and the handoff that did not come about counts as abandoned.
///
/// ```
/// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
/// use lineage_core::Epoch;
/// use lineage_tokio::{Carried, SendCarried as _};
///
/// let (queue, jobs) = std::sync::mpsc::channel::<Carried<&str>>();
/// let request = Epoch::declare("request");
/// request.run(|| queue.send_carried("a prompt")).expect("the receiver lives");
///
/// let (prompt, epoch) = jobs.recv().expect("one was sent").open();
/// assert_eq!((prompt, epoch.id()), ("a prompt", request.id()));
/// ```
pub trait SendCarried<T> {
    /// What the channel's own `send` answers, with the value alone in the error.
    type Answer;

    /// Sends the value with the epoch that is current here.
    #[track_caller]
    fn send_carried(self, value: T) -> Self::Answer;
}

/// Sends a value if there is room, in an envelope with the current epoch.
///
/// For `tokio::sync::mpsc::Sender`, `std::sync::mpsc::SyncSender`, and, with their features,
/// `crossbeam_channel::Sender` and `flume::Sender`.
pub trait TrySendCarried<T> {
    /// What the channel's own `try_send` says of a value that it did not take, with the value
    /// alone.
    type Error;

    /// Sends the value with the epoch that is current here, or gives it back.
    ///
    /// # Errors
    ///
    /// The channel's own: it is full, or nobody receives any more.
    #[track_caller]
    fn try_send_carried(&self, value: T) -> Result<(), Self::Error>;
}

/// Waits for room and sends a value, in an envelope with the current epoch.
///
/// For [`tokio::sync::mpsc::Sender`](::tokio::sync::mpsc::Sender). (Of flume's sender, which both
/// waits and blocks, `send_carried` blocks: await `queue.send_async(carried(job))`.)
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
/// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
/// # runtime.block_on(async {
/// use lineage_core::Epoch;
/// use lineage_tokio::{Carried, FutureExt as _, SendCarriedAsync as _};
///
/// let (queue, mut jobs) = tokio::sync::mpsc::channel::<Carried<&str>>(8);
/// let request = Epoch::declare("request");
/// let sending = async { queue.send_carried("a prompt").await };
/// sending.in_epoch(&request).await.expect("the receiver lives");
///
/// let job = jobs.recv().await.expect("one was sent");
/// job.run(|prompt| assert_eq!(lineage_core::current().epoch(), request.id(), "for {prompt}"));
/// # });
/// ```
pub trait SendCarriedAsync<T> {
    /// What the channel's own `send` says if nobody receives any more, with the value alone.
    type Error;

    /// Sends the value with the epoch that is current where this is *called*; the future may be
    /// awaited elsewhere. Dropped before there is room, the handoff is abandoned.
    ///
    /// # Errors
    ///
    /// The channel's own, if nobody receives any more.
    #[track_caller]
    fn send_carried(&self, value: T) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
