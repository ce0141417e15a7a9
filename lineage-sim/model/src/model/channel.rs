//! Channels: a ring of entries and a push buffer, the doorbell, and the order in which work leaves.
//!
//! A call puts an operation into the ring of its stream's channel: *queued*. The doorbell makes it *submitted*;
//! a little later the device sees it. The channel issues its operations in the order in which they were put in:
//! one whose dependencies are not satisfied holds up everything behind it, also of other streams.

use std::collections::VecDeque;

use crate::facts::{DependencyKind, Known};
use crate::settings::Settings;
use crate::work::Work;

use super::dependency::{Moment, NO_EDGE};
use super::events::Event;
use super::operations::{Operation, OperationKey, State};
use super::{Model, Order, StreamKey, Submission};

#[derive(Default)]
pub(super) struct Channel {
    ring: VecDeque<OperationKey>,
    push_bytes: u64,
    /// How many at the ring's end the doorbell was not rung for.
    unrung: u32,
    /// Whether `Model::touched` has it.
    pub(super) touched: bool,
    /// The operation that was issued last.
    issued_number: u64,
    /// Ends that were handed out and not answered: they count as being in the ring, so that a driver that is late does not let a host run ahead.
    unanswered: usize,
}

impl Channel {
    fn has_room(&self, settings: &Settings, bytes: u64) -> bool {
        let entries = settings.ring_entries.max(1) as usize;
        // What is larger than the whole buffer goes through an empty one.
        let fits = settings.push_buffer_bytes == 0
            || self.ring.is_empty()
            || self.push_bytes + bytes <= settings.push_buffer_bytes;
        self.ring.len() + self.unanswered < entries && fits
    }
}

impl<P> Model<P> {
    /// Whether an operation with so many bytes of parameters has room in the stream's channel. The doorbell
    /// should be rung before room is waited for.
    pub fn has_room(&self, stream: StreamKey, parameter_bytes: u32) -> bool {
        let bytes = self.push_bytes(parameter_bytes);
        self.channel(stream)
            .is_none_or(|channel| channel.has_room(&self.settings, bytes))
    }

    /// How many entries of the stream's ring are in use.
    pub fn queued_in_channel_of(&self, stream: StreamKey) -> usize {
        self.channel(stream).map_or(0, |channel| channel.ring.len())
    }

    /// Puts work into a stream at a time, which is not before that of any earlier call. It goes in even if there is no room.
    pub fn submit(
        &mut self,
        now_ns: u64,
        stream: StreamKey,
        submission: Submission<P>,
    ) -> OperationKey {
        let waits_for = submission.waits_for;
        let key = self.add_operation(now_ns, stream, submission);
        if let Some(operation) = waits_for {
            self.depend(key, operation, Moment::End, DependencyKind::Event);
        }
        self.order_in_stream(key, stream);
        self.enter_ring(now_ns, key, stream);
        key
    }

    /// Rings the doorbell of every channel.
    pub fn ring(&mut self, now_ns: u64) {
        if self.settings.operations_per_doorbell > 1 {
            for channel in 0..self.channels.len() {
                self.ring_channel(now_ns, channel);
            }
        }
    }

    /// An operation that is in no ring and has no dependencies yet.
    pub(super) fn add_operation(
        &mut self,
        now_ns: u64,
        stream: StreamKey,
        submission: Submission<P>,
    ) -> OperationKey {
        let of = self.stream(stream);
        let options = of.map(|of| of.options).unwrap_or_default();
        let facts = Known {
            number: submission.number,
            device: options.device,
            channel: of.map_or(0, |of| self.channel_number(of.channel)),
            called_ns: submission.host.called_ns,
            queued_ns: now_ns,
            dependencies_ns: of.map_or(0, |of| of.ended_ns),
            last_dependency: match of.map_or(0, |of| of.ended_number) {
                0 => DependencyKind::None,
                _ => DependencyKind::Stream,
            },
            dependency_number: of.map_or(0, |of| of.ended_number),
            ..Known::default()
        };
        let blocks_left = match submission.work {
            Work::Kernel { footprint, .. } => footprint.blocks.max(1),
            _ => 0,
        };
        self.sequence += 1;
        self.operations.insert(Operation {
            payload: Some(submission.payload),
            duration_ns: submission.work.duration_ns(),
            work: submission.work,
            stream,
            priority: submission.priority.unwrap_or(options.priority),
            state: State::Queued,
            sequence: self.sequence,
            facts,
            host: submission.host,
            push_bytes: self.push_bytes(submission.parameter_bytes),
            visible_ns: u64::MAX,
            dispatched_ns: 0,
            start_ns: 0,
            unsatisfied: 0,
            first_edge: NO_EDGE,
            triggered: false,
            graph: None,
            nodes_left: 0,
            node_number: 0,
            holds_graph: false,
            blocks_left,
            cohorts: 0,
            held: Vec::new(),
            primary_runs: false,
            collective_waits: false,
            blocked_before_ns: 0,
            neighbour_ns: 0,
            engine_start_ns: 0,
        })
    }

    /// Behind its predecessor in the stream, and behind what the default streams bring.
    pub(super) fn order_in_stream(&mut self, key: OperationKey, stream: StreamKey) {
        let Some(of) = self.stream(stream) else {
            return;
        };
        let (options, last) = (of.options, of.last);
        if let Some(last) = last {
            self.depend_on_predecessor(key, last);
        }
        let concerns = match options.order {
            Order::NonBlocking => None,
            Order::Legacy => Some(Order::Blocking),
            Order::Blocking => Some(Order::Legacy),
        };
        if let Some(concerns) = concerns {
            for at in 0..self.streams.len() {
                let other = self.streams[at].as_ref().filter(|other| {
                    other.options.order == concerns && other.options.context == options.context
                });
                if let Some(other) = other.and_then(|other| other.last) {
                    self.depend(key, other, Moment::End, DependencyKind::DefaultStream);
                }
            }
        }
        if let Some(of) = self.stream_mut(stream) {
            of.last = Some(key);
            of.open += 1;
        }
    }

    pub(super) fn enter_ring(&mut self, now_ns: u64, key: OperationKey, stream: StreamKey) {
        let Some(channel) = self.stream(stream).map(|stream| stream.channel) else {
            return;
        };
        let push_bytes = self
            .operations
            .get(key)
            .map_or(0, |operation| operation.push_bytes);
        let Some(Some(of)) = self.channels.get_mut(channel) else {
            return;
        };
        of.ring.push_back(key);
        of.push_bytes += push_bytes;
        of.unrung += 1;
        if of.unrung >= self.settings.operations_per_doorbell {
            self.ring_channel(now_ns, channel);
        }
    }

    fn ring_channel(&mut self, now_ns: u64, channel: usize) {
        let visible_ns = now_ns.saturating_add(self.settings.doorbell_ns);
        let Some(Some(of)) = self.channels.get_mut(channel) else {
            return;
        };
        let unrung = std::mem::take(&mut of.unrung) as usize;
        if unrung == 0 {
            return;
        }
        let is_head = unrung == of.ring.len();
        for key in of.ring.range(of.ring.len() - unrung..) {
            if let Some(operation) = self.operations.get_mut(*key) {
                operation.facts.submitted_ns = now_ns;
                operation.visible_ns = visible_ns;
            }
        }
        // What is behind something else arrives when that has left.
        if is_head {
            self.events.at(visible_ns, Event::Arrive(channel));
        }
    }

    /// Issues what can be issued, in order.
    pub(super) fn issue_from(&mut self, channel: usize) {
        if let Some(Some(of)) = self.channels.get_mut(channel) {
            of.touched = false;
        }
        loop {
            let Some(Some(of)) = self.channels.get_mut(channel) else {
                return;
            };
            let Some(key) = of.ring.front().copied() else {
                return;
            };
            let Some(operation) = self.operations.get_mut(key) else {
                of.ring.pop_front();
                continue;
            };
            if operation.unsatisfied > 0 {
                return;
            }
            if operation.visible_ns > self.now_ns {
                // Before the doorbell there is nothing to wait for: ringing it makes the arrival.
                if operation.visible_ns < u64::MAX {
                    self.events.at(operation.visible_ns, Event::Arrive(channel));
                }
                return;
            }
            if let Work::WaitValue { place, condition } = operation.work {
                if !self.memory.meets(place, condition) {
                    self.memory.watch(channel);
                    return;
                }
                if self.now_ns > operation.facts.dependencies_ns.max(operation.visible_ns) {
                    operation.facts.dependencies_ns = self.now_ns;
                    operation.facts.last_dependency = DependencyKind::Semaphore;
                    operation.facts.dependency_number = 0;
                }
            }
            operation.facts.channel_number = of.issued_number;
            of.ring.pop_front();
            of.push_bytes -= operation.push_bytes;
            if operation.facts.number != 0 {
                of.issued_number = operation.facts.number;
            }
            self.issue(key);
        }
    }

    /// An end is handed out, or answered.
    pub(super) fn count_unanswered(&mut self, stream: StreamKey, is_answered: bool) {
        let Some(channel) = self.stream(stream).map(|stream| stream.channel) else {
            return;
        };
        if let Some(Some(of)) = self.channels.get_mut(channel) {
            of.unanswered = if is_answered {
                of.unanswered.saturating_sub(1)
            } else {
                of.unanswered + 1
            };
        }
    }

    /// Whether the operation at a channel's head waits for a value that is there now.
    pub(super) fn head_is_met(&self, channel: usize) -> bool {
        let head = self.channels[channel]
            .as_ref()
            .and_then(|channel| channel.ring.front());
        head.is_some_and(|key| self.is_met(*key))
    }

    fn channel(&self, stream: StreamKey) -> Option<&Channel> {
        let channel = self.stream(stream)?.channel;
        self.channels.get(channel)?.as_ref()
    }

    fn push_bytes(&self, parameter_bytes: u32) -> u64 {
        u64::from(self.settings.push_bytes_per_operation) + u64::from(parameter_bytes)
    }
}
