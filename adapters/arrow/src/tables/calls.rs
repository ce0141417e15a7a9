//! Scopes, and the CUDA calls made in them, as callback and as CUPTI's records.

use std::sync::Arc;

use lineage_core::id::{Attribution, CorrelationId, HostNanos, ScopeToken, TaskId};
use lineage_core::observation::{
    ApiId, ApiRecord, Call, Event, ExternalRecord, OperationsDue, Scope,
};

use super::of_kind;
use crate::column::Column;
use crate::port::{self, Bad, Port, need};

pub(super) fn scope<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let given = of_kind!(given, Scope);
    let thread = port::thread(port, given.map(|of| of.thread))?;
    let column = Column::delta("attribution");
    let attribution = port::attribution(port, column, given.map(|of| of.attribution))?;
    let token = port.number(Column::delta("token"), given.map(|of| of.token.0))?;
    let column = Column::delta("entered_ns");
    let entered = port::time(port, column, given.map(|of| of.entered))?;
    let column = Column::after("exited_ns", "entered_ns");
    let exited = port::time(port, column, given.map(|of| of.exited))?;
    let task = port::task(port, given.and_then(|of| of.task))?;
    let boundary = port::bool(port, "boundary", given.map(|of| of.boundary))?;
    let pushed = port::bool(port, "pushed", given.map(|of| of.pushed))?;
    Ok(Scope {
        thread: need("tid", thread)?,
        attribution: need("attribution", attribution)?,
        token: ScopeToken(need("token", token)?),
        entered: need("entered_ns", entered)?,
        exited: need("exited_ns", exited)?,
        task,
        boundary: need("boundary", boundary)?,
        pushed: need("pushed", pushed)?,
    }
    .into())
}

/// A function of CUDA, in three columns.
pub(super) fn api<P: Port>(port: &mut P, given: Option<&ApiId>) -> Result<Option<ApiId>, Bad> {
    let domain = port.variant(Column::name("api_domain"), given.map(|of| of.domain))?;
    let cbid = port::u32(port, Column::u32("api_cbid"), given.map(|of| of.cbid))?;
    let name = port.name(
        Column::name("api_name"),
        given.and_then(|of| of.name.as_ref()),
    )?;
    Ok(match (domain, cbid) {
        (Some(domain), Some(cbid)) => Some(ApiId { domain, cbid, name }),
        _ => None,
    })
}

/// What both kinds of calls have between them.
struct Cells<'a> {
    source: &'static str,
    session: Option<u32>,
    api: &'a ApiId,
    correlation: CorrelationId,
    tid: u64,
    generation: Option<u32>,
    start: Option<HostNanos>,
    end: Option<HostNanos>,
    result: u32,
    due: OperationsDue,
    attribution: Option<Attribution>,
    in_boundary: Option<bool>,
    task: Option<TaskId>,
}

fn cells(event: &Event) -> Option<Cells<'_>> {
    match event {
        Event::Call(Call {
            thread,
            api,
            correlation,
            entered,
            exited,
            result,
            attribution,
            in_boundary,
            task,
            due,
        }) => Some(Cells {
            source: "callback",
            session: None,
            api,
            correlation: *correlation,
            tid: thread.tid,
            generation: Some(thread.generation),
            start: Some(*entered),
            end: *exited,
            result: *result,
            due: *due,
            attribution: Some(*attribution),
            in_boundary: Some(*in_boundary),
            task: *task,
        }),
        Event::Api(ApiRecord {
            session,
            api,
            correlation,
            tid,
            start,
            end,
            result,
            due,
        }) => Some(Cells {
            source: "cupti",
            session: Some(*session),
            api,
            correlation: *correlation,
            tid: *tid,
            generation: None,
            start: *start,
            end: *end,
            result: *result,
            due: *due,
            attribution: None,
            in_boundary: None,
            task: None,
        }),
        _ => None,
    }
}

pub(super) fn event<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let given = given.and_then(cells);
    let given = given.as_ref();
    let source = given.map(|of| Arc::from(of.source));
    let source = port.name(Column::name("source"), source.as_ref())?;
    let column = Column::u32("session");
    let session = port::u32(port, column, given.and_then(|of| of.session))?;
    let api = api(port, given.map(|of| of.api))?;
    let correlation = correlation(port, given.map(|of| of.correlation))?;
    let tid = port.number(Column::u64("tid"), given.map(|of| of.tid))?;
    let column = Column::u32("thread_generation");
    let generation = port::u32(port, column, given.and_then(|of| of.generation))?;
    let column = Column::delta("entered_ns");
    let start = port::time(port, column, given.and_then(|of| of.start))?;
    let column = Column::after("exited_ns", "entered_ns");
    let end = port::time(port, column, given.and_then(|of| of.end))?;
    let result = port::u32(port, Column::u32("result"), given.map(|of| of.result))?;
    let due = port.variant(Column::name("due"), given.map(|of| of.due))?;
    let column = Column::delta("attribution");
    let attribution = port::attribution(port, column, given.and_then(|of| of.attribution))?;
    let in_boundary = port::bool(port, "in_boundary", given.and_then(|of| of.in_boundary))?;
    let task = port::task(port, given.and_then(|of| of.task))?;

    let api = need("api_domain", api)?;
    let correlation = need("correlation", correlation)?;
    let tid = need("tid", tid)?;
    let result = need("result", result)?;
    let due = need("due", due)?;
    Ok(match &*need("source", source)? {
        "callback" => Call {
            thread: lineage_core::id::ThreadKey {
                tid,
                generation: need("thread_generation", generation)?,
            },
            api,
            correlation,
            entered: need("entered_ns", start)?,
            exited: end,
            result,
            attribution: need("attribution", attribution)?,
            in_boundary: need("in_boundary", in_boundary)?,
            task,
            due,
        }
        .into(),
        "cupti" => ApiRecord {
            session: need("session", session)?,
            api,
            correlation,
            tid,
            start,
            end,
            result,
            due,
        }
        .into(),
        other => return Err(Bad::Unknown("source", other.to_owned())),
    })
}

/// A correlation id as it is on the wire.
pub(super) fn correlation<P: Port>(
    port: &mut P,
    given: Option<CorrelationId>,
) -> Result<Option<CorrelationId>, Bad> {
    let column = Column::delta("correlation");
    Ok(port::u32(port, column, given.map(|of| of.0))?.map(CorrelationId))
}

pub(super) fn external<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let given = of_kind!(given, External);
    let session = port::u32(port, Column::u32("session"), given.map(|of| of.session))?;
    let kind = port::u32(port, Column::u32("kind"), given.map(|of| of.kind))?;
    let own_kind = port::bool(port, "own_kind", given.map(|of| of.own_kind))?;
    let column = Column::delta("external_id");
    let external_id = port.number(column, given.map(|of| of.external_id))?;
    let correlation = correlation(port, given.map(|of| of.correlation))?;
    let column = Column::delta("beside_ns");
    let beside = port::time(port, column, given.and_then(|of| of.beside))?;
    Ok(ExternalRecord {
        session: need("session", session)?,
        kind: need("kind", kind)?,
        own_kind: need("own_kind", own_kind)?,
        external_id: need("external_id", external_id)?,
        correlation: need("correlation", correlation)?,
        beside,
    }
    .into())
}
