//! What happens at a later time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::operations::OperationKey;
use super::{Model, StreamKey};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A copy, or other work of a known end, ends.
    End(OperationKey),
    /// The device sees what was rung for in this channel.
    Arrive(usize),
    /// An operation reaches its engine.
    Dispatch(OperationKey),
}

/// What happens to the slices of a device. Apart from the rest: it goes on when there is no work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slice {
    /// This process's slice is over.
    Over,
    /// Its kernels have reached points at which they can be preempted.
    Preempt,
    /// It has the device again.
    Again,
}

/// Ordered by time, then by when they were made.
#[derive(Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
}

impl Events {
    pub(super) fn at(&mut self, at_ns: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((at_ns, self.sequence, event)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }
}

impl<P> Model<P> {
    /// When the next event is due.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        let of_engines = self.compute.iter().filter_map(|compute| compute.next_ns());
        of_engines.chain(self.events.next_ns()).min()
    }

    /// Lets the next event happen: of those of one moment, the engines' first, so that ends come before arrivals.
    pub(super) fn next_event(&mut self) {
        let next = self.next_event_ns();
        if let Some(device) = self
            .compute
            .iter()
            .position(|compute| next.is_some() && compute.next_ns() == next)
        {
            self.compute_event(device);
            return;
        }
        let Some(Reverse((_, _, event))) = self.events.heap.pop() else {
            return;
        };
        match event {
            Event::End(key) => self.end(key, self.now_ns),
            Event::Arrive(channel) => self.touch(channel),
            Event::Dispatch(key) => self.dispatch(key),
        }
    }

    /// A channel may be able to issue something.
    pub(super) fn touch(&mut self, channel: usize) {
        if let Some(Some(of)) = self.channels.get_mut(channel)
            && !std::mem::replace(&mut of.touched, true)
        {
            self.touched.push(channel);
        }
    }

    /// The channel of an operation's stream may be able to issue something.
    pub(super) fn touch_stream(&mut self, stream: StreamKey) {
        if let Some(channel) = self.stream(stream).map(|stream| stream.channel) {
            self.touch(channel);
        }
    }
}
