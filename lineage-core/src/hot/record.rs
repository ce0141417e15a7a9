//! Records as they lie in a ring: eight words, the first of which holds kind, flags and number.

use super::intern::Resolver;
use super::ring::Words;
use crate::hook::{GraphLaunched, LaunchAttributesRead};
use crate::id::{
    CorrelationId, HandoffId, HostNanos, LaunchEpoch, PackedEpoch, ScopeToken, TaskId, ThreadKey,
    W3cParent,
};
use crate::observation::{
    Abandoned, ApiDomain, ApiId, Call, CarrierKind, Declared, Event, GraphLaunch, GraphSequence,
    Handoff, LaunchAttributes, LaunchOrder, LinkKind, Linked, Mark, Marked, Misuse, MisuseKind,
    OperationsDue, Parented, Received, Retired, RetiredAs, Scope, Sent, SpanLinked, Stepped,
};

const KIND_SHIFT: u32 = 56;
const FLAGS_SHIFT: u32 = 48;

const DECLARED: u8 = 1;
const LINKED: u8 = 2;
const STEPPED: u8 = 3;
const MARKED: u8 = 4;
const RETIRED: u8 = 5;
const SENT: u8 = 6;
const RECEIVED: u8 = 7;
const ABANDONED: u8 = 8;
const SCOPE: u8 = 9;
const CALL: u8 = 10;
const MISUSE: u8 = 11;
const PARENTED: u8 = 12;
const SPAN_LINKED: u8 = 13;
const GRAPH_LAUNCH: u8 = 14;
const LAUNCH_ATTRIBUTES: u8 = 15;

const BOUNDARY: u8 = 1;
const PUSHED: u8 = 2;

const PROGRAMMATIC: u8 = 1;
const RECORDS_EVENT: u8 = 2;

fn first(kind: u8, flags: u8) -> u64 {
    (u64::from(kind) << KIND_SHIFT) | (u64::from(flags) << FLAGS_SHIFT)
}

fn pair(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}

fn task_word(task: Option<TaskId>) -> u64 {
    // Runtimes number their tasks from 1.
    task.map_or(0, |task| task.0)
}

/// A small enum as a number and back, by its place in a list.
macro_rules! numbered {
    ($to:ident, $from:ident, $type:ty, [$($value:path),+ $(,)?]) => {
        fn $to(value: $type) -> u8 {
            const ALL: &[$type] = &[$($value),+];
            ALL.iter().position(|&known| known == value).map_or(u8::MAX, |at| at as u8)
        }
        fn $from(number: u8) -> Option<$type> {
            const ALL: &[$type] = &[$($value),+];
            ALL.get(usize::from(number)).copied()
        }
    };
}

numbered!(
    link_number,
    link,
    LinkKind,
    [
        LinkKind::Fork,
        LinkKind::Merge,
        LinkKind::Continues,
        LinkKind::Retry
    ]
);
numbered!(
    mark_number,
    mark,
    Mark,
    [
        Mark::Ready,
        Mark::Expected,
        Mark::BatchFormed,
        Mark::Cancelled
    ]
);
numbered!(
    carrier_number,
    carrier,
    CarrierKind,
    [
        CarrierKind::Future,
        CarrierKind::Task,
        CarrierKind::Blocking,
        CarrierKind::Envelope,
        CarrierKind::Thread,
        CarrierKind::Pool,
        CarrierKind::Custom,
        CarrierKind::Stream,
        CarrierKind::Callback,
    ]
);
numbered!(
    misuse_number,
    misuse,
    MisuseKind,
    [
        MisuseKind::ScopeUnbalanced,
        MisuseKind::ScopeLeaked,
        MisuseKind::ScopeAcrossTasks,
        MisuseKind::ForeignExternalId,
    ]
);
numbered!(
    due_number,
    due,
    OperationsDue,
    [
        OperationsDue::None,
        OperationsDue::One,
        OperationsDue::Many,
        OperationsDue::Any,
        OperationsDue::MaybeCaptured,
    ]
);
numbered!(
    domain_number,
    domain,
    ApiDomain,
    [ApiDomain::Driver, ApiDomain::Runtime]
);

#[inline]
pub(crate) fn declared(
    epoch: LaunchEpoch,
    at: u64,
    task: Option<TaskId>,
    name: u32,
    site: u32,
) -> Words {
    [
        first(DECLARED, 0),
        at,
        epoch.pack().bits(),
        task_word(task),
        pair(name, site),
        0,
        0,
        0,
    ]
}

#[inline]
pub(crate) fn linked(epoch: LaunchEpoch, from: LaunchEpoch, kind: LinkKind, at: u64) -> Words {
    [
        first(LINKED, link_number(kind)),
        at,
        epoch.pack().bits(),
        from.pack().bits(),
        0,
        0,
        0,
        0,
    ]
}

#[inline]
pub(crate) fn stepped(epoch: LaunchEpoch, at: u64) -> Words {
    [first(STEPPED, 0), at, epoch.pack().bits(), 0, 0, 0, 0, 0]
}

pub(crate) fn marked(epoch: LaunchEpoch, mark: Mark, at: u64) -> Words {
    [
        first(MARKED, mark_number(mark)),
        at,
        epoch.pack().bits(),
        0,
        0,
        0,
        0,
        0,
    ]
}

pub(crate) fn parented(epoch: LaunchEpoch, parent: W3cParent, at: u64) -> Words {
    of_span(PARENTED, epoch, parent, at)
}

pub(crate) fn span_linked(epoch: LaunchEpoch, span: W3cParent, at: u64) -> Words {
    of_span(SPAN_LINKED, epoch, span, at)
}

fn of_span(kind: u8, epoch: LaunchEpoch, span: W3cParent, at: u64) -> Words {
    let (high, low) = ((span.trace_id >> 64) as u64, span.trace_id as u64);
    [
        first(kind, span.flags),
        at,
        epoch.pack().bits(),
        high,
        low,
        span.span_id,
        0,
        0,
    ]
}

#[inline]
pub(crate) fn retired(packed: PackedEpoch, cancelled: bool, at: u64) -> Words {
    [
        first(RETIRED, u8::from(cancelled)),
        at,
        packed.bits(),
        0,
        0,
        0,
        0,
        0,
    ]
}

#[inline]
pub(crate) fn sent(handoff: Handoff, at: u64, site: u32) -> Words {
    let flags = carrier_number(handoff.carrier);
    [
        first(SENT, flags),
        at,
        handoff.epoch.pack().bits(),
        handoff.id.0,
        pair(0, site),
        0,
        0,
        0,
    ]
}

#[inline]
pub(crate) fn received(handoff: Handoff, at: u64, task: Option<TaskId>) -> Words {
    let flags = carrier_number(handoff.carrier);
    [
        first(RECEIVED, flags),
        at,
        handoff.epoch.pack().bits(),
        handoff.id.0,
        task_word(task),
        0,
        0,
        0,
    ]
}

#[inline]
pub(crate) fn abandoned(handoff: Handoff, at: u64) -> Words {
    let flags = carrier_number(handoff.carrier);
    [
        first(ABANDONED, flags),
        at,
        handoff.epoch.pack().bits(),
        handoff.id.0,
        0,
        0,
        0,
        0,
    ]
}

/// What a scope record says, apart from its thread.
pub(crate) struct ScopeRecord {
    pub(crate) packed: PackedEpoch,
    pub(crate) token: u64,
    pub(crate) entered: u64,
    pub(crate) exited: u64,
    pub(crate) task: Option<TaskId>,
    pub(crate) boundary: bool,
    pub(crate) pushed: bool,
}

#[inline]
pub(crate) fn scope(scope: &ScopeRecord) -> Words {
    let flags = (u8::from(scope.boundary) * BOUNDARY) | (u8::from(scope.pushed) * PUSHED);
    let ScopeRecord {
        packed,
        token,
        entered,
        exited,
        task,
        ..
    } = *scope;
    [
        first(SCOPE, flags),
        exited,
        packed.bits(),
        token,
        entered,
        task_word(task),
        0,
        0,
    ]
}

/// What a call record says, apart from its thread.
pub(crate) struct CallRecord {
    pub(crate) packed: PackedEpoch,
    pub(crate) in_boundary: bool,
    pub(crate) task: Option<TaskId>,
    pub(crate) domain: ApiDomain,
    pub(crate) cbid: u32,
    pub(crate) correlation: CorrelationId,
    pub(crate) result: u32,
    pub(crate) due: OperationsDue,
    pub(crate) entered: u64,
    pub(crate) exited: Option<u64>,
}

#[inline]
pub(crate) fn call(call: &CallRecord) -> Words {
    let codes = (u32::from(domain_number(call.domain)) << 8) | u32::from(due_number(call.due));
    [
        first(CALL, u8::from(call.in_boundary) * BOUNDARY),
        call.entered,
        call.packed.bits(),
        // 0 is no exit: a clock that has read 0 is not one that anybody can use.
        call.exited.unwrap_or(0),
        task_word(call.task),
        pair(call.cbid, call.correlation.0),
        pair(call.result, codes),
        0,
    ]
}

pub(crate) fn graph_launched(launched: &GraphLaunched) -> Words {
    [
        first(GRAPH_LAUNCH, 0),
        launched.at.0,
        0,
        launched.sequence.0,
        pair(launched.exec, launched.correlation.0),
        u64::from(launched.session),
        0,
        0,
    ]
}

pub(crate) fn launch_attributes(read: &LaunchAttributesRead) -> Words {
    let flags = if read.programmatic { PROGRAMMATIC } else { 0 }
        | if read.records_event { RECORDS_EVENT } else { 0 };
    [
        first(LAUNCH_ATTRIBUTES, flags),
        read.at.0,
        0,
        0,
        u64::from(read.correlation.0),
        u64::from(read.session),
        0,
        0,
    ]
}

pub(crate) fn misused(kind: MisuseKind, packed: PackedEpoch, value: u64, at: u64) -> Words {
    [
        first(MISUSE, misuse_number(kind)),
        at,
        packed.bits(),
        value,
        0,
        0,
        0,
        0,
    ]
}

/// The time at which a record was written: for gaps.
pub(crate) fn written_at(words: &Words) -> HostNanos {
    let exited = (words[0] >> KIND_SHIFT) as u8 == CALL && words[3] != 0;
    HostNanos(if exited { words[3] } else { words[1] })
}

/// A record of a thread as an observation; `None` if the words are none of ours.
pub(crate) fn decode(words: &Words, thread: ThreadKey, resolver: &mut Resolver) -> Option<Event> {
    let [zeroth, at, packed, third, fourth, fifth, sixth, _] = *words;
    let (kind, flags) = ((zeroth >> KIND_SHIFT) as u8, (zeroth >> FLAGS_SHIFT) as u8);
    let (at, packed) = (HostNanos(at), PackedEpoch::from_bits(packed));
    let epoch = || packed.unpack().epoch();
    let task = |word: u64| (word != 0).then_some(TaskId(word));
    let span = || W3cParent {
        trace_id: (u128::from(third) << 64) | u128::from(fourth),
        span_id: fifth,
        flags,
    };
    let handoff = || {
        Some(Handoff {
            id: HandoffId(third),
            epoch: epoch()?,
            carrier: carrier(flags)?,
        })
    };
    Some(match kind {
        DECLARED => Event::Declared(Declared {
            epoch: epoch()?,
            thread,
            task: task(third),
            at,
            name: resolver.name((fourth >> 32) as u32),
            site: resolver.site(fourth as u32),
        }),
        LINKED => Event::Linked(Linked {
            epoch: epoch()?,
            from: PackedEpoch::from_bits(third).unpack().epoch()?,
            kind: link(flags)?,
            at,
        }),
        STEPPED => Event::Stepped(Stepped {
            epoch: epoch()?,
            thread,
            at,
        }),
        MARKED => Event::Marked(Marked {
            epoch: epoch()?,
            mark: mark(flags)?,
            thread,
            at,
        }),
        PARENTED => Event::Parented(Parented {
            epoch: epoch()?,
            parent: span(),
            at,
        }),
        SPAN_LINKED => Event::SpanLinked(SpanLinked {
            epoch: epoch()?,
            span: span(),
            at,
        }),
        RETIRED => Event::Retired(Retired {
            epoch: epoch()?,
            how: if flags == 0 {
                RetiredAs::Done
            } else {
                RetiredAs::Cancelled
            },
            at,
        }),
        SENT => Event::Sent(Sent {
            handoff: handoff()?,
            thread,
            at,
            site: resolver.site(fourth as u32),
        }),
        RECEIVED => Event::Received(Received {
            handoff: handoff()?,
            thread,
            task: task(fourth),
            at,
        }),
        ABANDONED => Event::Abandoned(Abandoned {
            handoff: handoff()?,
            at,
        }),
        SCOPE => Event::Scope(Scope {
            thread,
            attribution: packed.unpack(),
            token: ScopeToken(third),
            entered: HostNanos(fourth),
            exited: at,
            task: task(fifth),
            boundary: flags & BOUNDARY != 0,
            pushed: flags & PUSHED != 0,
        }),
        CALL => Event::Call(Call {
            thread,
            api: ApiId {
                domain: domain((sixth >> 8) as u8)?,
                cbid: (fifth >> 32) as u32,
                name: None,
            },
            correlation: CorrelationId(fifth as u32),
            entered: at,
            exited: (third != 0).then_some(HostNanos(third)),
            result: (sixth >> 32) as u32,
            attribution: packed.unpack(),
            in_boundary: flags & BOUNDARY != 0,
            task: task(fourth),
            due: due(sixth as u8)?,
        }),
        GRAPH_LAUNCH => Event::GraphLaunch(GraphLaunch {
            session: fifth as u32,
            thread,
            correlation: CorrelationId(fourth as u32),
            at,
            exec: (fourth >> 32) as u32,
            sequence: GraphSequence(third),
        }),
        LAUNCH_ATTRIBUTES => Event::LaunchAttributes(LaunchAttributes {
            session: fifth as u32,
            correlation: CorrelationId(fourth as u32),
            order: if flags & PROGRAMMATIC == 0 {
                LaunchOrder::Strict
            } else {
                LaunchOrder::Programmatic
            },
            records_event: flags & RECORDS_EVENT != 0,
        }),
        MISUSE => Event::Misuse(Misuse {
            kind: misuse(flags)?,
            thread,
            attribution: packed.unpack(),
            value: third,
            at,
        }),
        _ => return None,
    })
}
