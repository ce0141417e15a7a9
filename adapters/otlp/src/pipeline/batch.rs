//! A batch on its way, which keeps account of its items whatever happens to it.

use std::sync::Arc;

use bytes::Bytes;

use super::Signal;
use super::counts::LossReason;
use super::envelope::{Envelope, begin_of};
use super::queue::Queue;

/// A batch as it waits: items as `put_item` wrote them.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) sequence: u64,
    pub(crate) items: Vec<u8>,
    pub(crate) count: u64,
}

/// A whole request, or a part of one that was too large for the collector.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The message, after the [`FRAME`](super::envelope::FRAME) of gRPC.
    pub(crate) body: Bytes,
    pub(crate) count: u64,
    /// Where in the body its items begin, and how many bytes they are.
    begins: usize,
    bytes: usize,
}

impl Piece {
    fn new(envelope: &Envelope, items: &[u8], count: u64) -> Self {
        let (body, begins) = envelope.wrap(items);
        Self {
            body,
            count,
            begins,
            bytes: items.len(),
        }
    }

    /// Two halves by number of items; `None` for a single item.
    fn split(&self, envelope: &Envelope) -> Option<[Self; 2]> {
        let first = self.count / 2;
        if first == 0 {
            return None;
        }
        let items = &self.body[self.begins..self.begins + self.bytes];
        let middle = begin_of(first as usize, items);
        Some([
            Self::new(envelope, &items[..middle], first),
            Self::new(envelope, &items[middle..], self.count - first),
        ])
    }
}

/// How the items of a piece ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Answered for, and so many of them were not taken.
    Answered {
        refused: u64,
    },
    Lost(LossReason),
}

/// What a sender has in hand. Items whose end is not told when it is dropped are lost, for a reason that it knows: the sender
/// panicked, or it was stopped.
#[derive(Debug)]
pub(crate) struct Batch {
    queue: Arc<Queue>,
    envelope: Arc<Envelope>,
    pub(crate) signal: Signal,
    sequence: u64,
    /// The last is the next.
    pieces: Vec<Piece>,
}

impl Batch {
    pub(crate) fn new(
        queue: &Arc<Queue>,
        envelope: &Arc<Envelope>,
        signal: Signal,
        sealed: Sealed,
    ) -> Self {
        let piece = Piece::new(envelope, &sealed.items, sealed.count);
        queue.recycle(sealed.items);
        Self {
            queue: Arc::clone(queue),
            envelope: Arc::clone(envelope),
            signal,
            sequence: sealed.sequence,
            pieces: vec![piece],
        }
    }

    pub(crate) fn next(&self) -> Option<Piece> {
        self.pieces.last().cloned()
    }

    /// Cuts the next piece in two; `false` if it is a single item.
    pub(crate) fn split(&mut self) -> bool {
        let halves = self.pieces.last().and_then(|it| it.split(&self.envelope));
        let Some([first, second]) = halves else {
            return false;
        };
        self.pieces.pop();
        self.pieces.extend([second, first]);
        true
    }

    /// Tells how the next piece ended, which is then gone.
    pub(crate) fn end(&mut self, end: End) {
        let Some(piece) = self.pieces.pop() else {
            return;
        };
        let counters = self.queue.counters.of(self.signal);
        match end {
            End::Answered { refused } => {
                let refused = refused.min(piece.count);
                counters.sent.add(piece.count - refused);
                counters.refused.add(refused);
            }
            End::Lost(reason) => counters.lost(reason, piece.count),
        }
        self.queue.release(self.signal, piece.bytes, piece.count);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() {
            LossReason::Panicked
        } else {
            LossReason::Shutdown
        };
        while !self.pieces.is_empty() {
            self.end(End::Lost(reason));
        }
        self.queue.finished(self.signal, self.sequence);
    }
}
