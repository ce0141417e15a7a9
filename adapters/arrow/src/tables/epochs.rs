//! Epochs, and the edges between them.

use std::sync::Arc;

use lineage_core::id::{LaunchEpoch, TaskId, ThreadKey, W3cParent};
use lineage_core::observation::{
    Declared, Event, LinkKind, Linked, Mark, Marked, Parented, Retired, RetiredAs, Site,
    SpanLinked, Stepped,
};

use super::of_kind;
use crate::column::Column;
use crate::port::{self, Bad, Port, need, variant_name, variant_of};

const EPOCH: Column = Column::delta("epoch");
const AT: Column = Column::delta("at_ns");

/// What all kinds of events of an epoch have between them.
#[derive(Default)]
struct Cells<'a> {
    kind: &'static str,
    epoch: Option<LaunchEpoch>,
    at: Option<lineage_core::id::HostNanos>,
    thread: Option<ThreadKey>,
    task: Option<TaskId>,
    name: Option<&'a Arc<str>>,
    site: Option<&'a Site>,
    /// The W3C parent, as text.
    span: Option<Arc<str>>,
    /// Which mark, or how it was retired.
    detail: Option<Arc<str>>,
}

fn cells(event: &Event) -> Option<Cells<'_>> {
    let (kind, epoch, at) = match event {
        Event::Declared(of) => ("declared", of.epoch, of.at),
        Event::Parented(of) => ("parented", of.epoch, of.at),
        Event::SpanLinked(of) => ("span_linked", of.epoch, of.at),
        Event::Stepped(of) => ("stepped", of.epoch, of.at),
        Event::Marked(of) => ("marked", of.epoch, of.at),
        Event::Retired(of) => ("retired", of.epoch, of.at),
        _ => return None,
    };
    let mut cells = Cells {
        kind,
        epoch: Some(epoch),
        at: Some(at),
        ..Cells::default()
    };
    match event {
        Event::Declared(Declared {
            epoch: _,
            thread,
            task,
            at: _,
            name,
            site,
        }) => {
            cells.thread = Some(*thread);
            cells.task = *task;
            cells.name = Some(name);
            cells.site = site.as_ref();
        }
        Event::Parented(Parented {
            epoch: _,
            parent,
            at: _,
        }) => cells.span = Some(parent.to_string().into()),
        Event::SpanLinked(SpanLinked {
            epoch: _,
            span,
            at: _,
        }) => cells.span = Some(span.to_string().into()),
        Event::Stepped(Stepped {
            epoch: _,
            thread,
            at: _,
        }) => cells.thread = Some(*thread),
        Event::Marked(Marked {
            epoch: _,
            mark,
            thread,
            at: _,
        }) => {
            cells.thread = Some(*thread);
            cells.detail = Some(variant_name(mark).into());
        }
        Event::Retired(Retired {
            epoch: _,
            how,
            at: _,
        }) => cells.detail = Some(variant_name(how).into()),
        _ => {}
    }
    Some(cells)
}

pub(super) fn event<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let given = given.and_then(cells);
    let given = given.as_ref();
    let kind = given.map(|of| Arc::from(of.kind));
    let kind = port.name(Column::name("kind"), kind.as_ref())?;
    let epoch = port::epoch(port, EPOCH, given.and_then(|of| of.epoch))?;
    let at = port::time(port, AT, given.and_then(|of| of.at))?;
    let thread = port::thread(port, given.and_then(|of| of.thread))?;
    let task = port::task(port, given.and_then(|of| of.task))?;
    let name = port.name(Column::name("name"), given.and_then(|of| of.name))?;
    let site = site(port, given.and_then(|of| of.site))?;
    // Spans are as many as requests: no names that come again.
    let span = port.text(
        Column::text("span"),
        given.and_then(|of| of.span.as_deref()),
    )?;
    let detail = port.name(
        Column::name("detail"),
        given.and_then(|of| of.detail.as_ref()),
    )?;

    let kind = need("kind", kind)?;
    let epoch = need("epoch", epoch)?;
    let at = need("at_ns", at)?;
    Ok(match &*kind {
        "declared" => Declared {
            epoch,
            thread: need("tid", thread)?,
            task,
            at,
            name: need("name", name)?,
            site,
        }
        .into(),
        "parented" => Parented {
            epoch,
            parent: w3c(span)?,
            at,
        }
        .into(),
        "span_linked" => SpanLinked {
            epoch,
            span: w3c(span)?,
            at,
        }
        .into(),
        "stepped" => Stepped {
            epoch,
            thread: need("tid", thread)?,
            at,
        }
        .into(),
        "marked" => Marked {
            epoch,
            mark: named::<Mark>(detail)?,
            thread: need("tid", thread)?,
            at,
        }
        .into(),
        "retired" => Retired {
            epoch,
            how: named::<RetiredAs>(detail)?,
            at,
        }
        .into(),
        other => return Err(Bad::Unknown("kind", other.to_owned())),
    })
}

fn w3c(text: Option<String>) -> Result<W3cParent, Bad> {
    W3cParent::parse(&need("span", text)?).ok_or(Bad::Range("span"))
}

fn named<T: serde::de::DeserializeOwned>(detail: Option<Arc<str>>) -> Result<T, Bad> {
    let text = need("detail", detail)?;
    variant_of(&text).ok_or_else(|| Bad::Unknown("detail", text.to_string()))
}

/// A place in the source, in three columns.
pub(super) fn site<P: Port>(port: &mut P, given: Option<&Site>) -> Result<Option<Site>, Bad> {
    let file = port.name(Column::name("site_file"), given.map(|of| &of.file))?;
    let line = port::u32(port, Column::u32("site_line"), given.map(|of| of.line))?;
    let column = port::u32(port, Column::u32("site_column"), given.map(|of| of.column))?;
    Ok(match (file, line, column) {
        (Some(file), Some(line), Some(column)) => Some(Site { file, line, column }),
        _ => None,
    })
}

pub(super) fn link<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let given = of_kind!(given, Linked);
    let kind = port.variant(Column::name("kind"), given.map(|of| of.kind))?;
    let epoch = port::epoch(port, EPOCH, given.map(|of| of.epoch))?;
    let from = Column::delta("from_epoch");
    let from = port::epoch(port, from, given.map(|of| of.from))?;
    let at = port::time(port, AT, given.map(|of| of.at))?;
    Ok(Linked {
        kind: need::<LinkKind>("kind", kind)?,
        epoch: need("epoch", epoch)?,
        from: need("from_epoch", from)?,
        at: need("at_ns", at)?,
    }
    .into())
}
