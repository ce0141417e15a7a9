//! Streams and sinks that carry an epoch, for as long as they live.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;
use lineage_core::Epoch;
use lineage_core::observation::CarrierKind;

use crate::future::{GiveEpoch, InEpoch};

/// Gives epochs to streams.
///
/// A stream that a handler returns, as a response that is streamed token by token, is polled when
/// the handler has long ended and its epoch is no longer current. So the epoch has to go with the
/// stream.
pub trait StreamExt: Stream + Sized {
    /// Makes `epoch` current whenever the next item is polled for, on whichever thread, and while
    /// the stream is dropped.
    ///
    /// The wrapping is a handoff: sent here, received when the stream is first polled. Given by
    /// value, the epoch is the stream's own: dropped before its end, it is
    /// [cancelled](lineage_core::observation::Mark::Cancelled). Given by reference, it is shared.
    ///
    /// # Example
    ///
    /// ```
    /// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
    /// use futures_util::{StreamExt as _, stream};
    /// use lineage_core::Epoch;
    ///
    /// let request = Epoch::declare("request");
    /// let expected = request.id();
    /// let tokens = stream::iter(["a", "token"]).map(move |token| {
    ///     // The kernels of the token are launched here.
    ///     assert_eq!(lineage_core::current().epoch(), expected);
    ///     token
    /// });
    /// let tokens = lineage_tokio::StreamExt::in_epoch(tokens, request);
    /// let answer: String = futures_executor::block_on(tokens.collect());
    /// assert_eq!(answer, "atoken");
    /// ```
    #[track_caller]
    fn in_epoch(self, epoch: impl GiveEpoch) -> InEpoch<Self> {
        InEpoch::new(self, epoch, CarrierKind::Stream)
    }

    /// Takes the epoch along that is current here, shared. Without one the stream is as it was.
    #[track_caller]
    fn in_current_epoch(self) -> InEpoch<Self> {
        InEpoch::sharing(self, Epoch::current(), CarrierKind::Stream)
    }
}

impl<S: Stream> StreamExt for S {}

/// Gives epochs to sinks.
///
/// For what is a stream as well take [`StreamExt`]: the wrapper is then both.
pub trait SinkExt<Item>: Sink<Item> + Sized {
    /// Makes `epoch` current in each of the sink's four polls, and while it is dropped.
    ///
    /// The wrapping is a handoff: sent here, received when the sink is first polled. Given by
    /// value, the epoch is the sink's own: dropped before it is closed, it is
    /// [cancelled](lineage_core::observation::Mark::Cancelled). Given by reference, it is shared.
    #[track_caller]
    fn in_epoch(self, epoch: impl GiveEpoch) -> InEpoch<Self> {
        InEpoch::new(self, epoch, CarrierKind::Stream)
    }

    /// Takes the epoch along that is current here, shared. Without one the sink is as it was.
    #[track_caller]
    fn in_current_epoch(self) -> InEpoch<Self> {
        InEpoch::sharing(self, Epoch::current(), CarrierKind::Stream)
    }
}

impl<Item, S: Sink<Item>> SinkExt<Item> for S {}

impl<S: Stream> Stream for InEpoch<S> {
    type Item = S::Item;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.as_mut().resume(|stream| stream.poll_next(context));
        if let Poll::Ready(None) = poll {
            self.finish();
        }
        poll
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.value().map_or((0, None), Stream::size_hint)
    }
}

impl<S: FusedStream> FusedStream for InEpoch<S> {
    fn is_terminated(&self) -> bool {
        self.value().is_none_or(FusedStream::is_terminated)
    }
}

impl<Item, S: Sink<Item>> Sink<Item> for InEpoch<S> {
    type Error = S::Error;

    fn poll_ready(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.resume(|sink| sink.poll_ready(context))
    }

    fn start_send(self: Pin<&mut Self>, item: Item) -> Result<(), Self::Error> {
        match self.resume(|sink| Poll::Ready(sink.start_send(item))) {
            Poll::Ready(started) => started,
            // Only within the destructor is there no sink, and nothing is sent from there.
            Poll::Pending => Ok(()),
        }
    }

    fn poll_flush(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.resume(|sink| sink.poll_flush(context))
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        let poll = self.as_mut().resume(|sink| sink.poll_close(context));
        if let Poll::Ready(Ok(())) = poll {
            self.finish();
        }
        poll
    }
}
