//! Carriers, each with one row for each of its ends.

use std::sync::Arc;

use lineage_core::id::{HandoffId, TaskId, ThreadKey};
use lineage_core::observation::{Abandoned, Event, Handoff, Received, Sent, Site};

use super::epochs::site;
use crate::column::Column;
use crate::port::{self, Bad, Port, need};

pub(super) fn event<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    type Given<'a> = (
        &'static str,
        Handoff,
        Option<ThreadKey>,
        Option<TaskId>,
        lineage_core::id::HostNanos,
        Option<&'a Site>,
    );
    let given: Option<Given<'_>> = match given {
        Some(Event::Sent(Sent {
            handoff,
            thread,
            at,
            site,
        })) => Some(("sent", *handoff, Some(*thread), None, *at, site.as_ref())),
        Some(Event::Received(Received {
            handoff,
            thread,
            task,
            at,
        })) => Some(("received", *handoff, Some(*thread), *task, *at, None)),
        Some(Event::Abandoned(Abandoned { handoff, at })) => {
            Some(("abandoned", *handoff, None, None, *at, None))
        }
        _ => None,
    };
    let kind = given.map(|of| Arc::from(of.0));
    let kind = port.name(Column::name("kind"), kind.as_ref())?;
    let handoff = given.map(|of| of.1);
    let id = port.number(Column::delta("handoff"), handoff.map(|of| of.id.0))?;
    let epoch = port::epoch(port, Column::delta("epoch"), handoff.map(|of| of.epoch))?;
    let carrier = port.variant(Column::name("carrier"), handoff.map(|of| of.carrier))?;
    let at = port::time(port, Column::delta("at_ns"), given.map(|of| of.4))?;
    let thread = port::thread(port, given.and_then(|of| of.2))?;
    let task = port::task(port, given.and_then(|of| of.3))?;
    let site = site(port, given.and_then(|of| of.5))?;

    let handoff = Handoff {
        id: HandoffId(need("handoff", id)?),
        epoch: need("epoch", epoch)?,
        carrier: need("carrier", carrier)?,
    };
    let at = need("at_ns", at)?;
    Ok(match &*need("kind", kind)? {
        "sent" => Sent {
            handoff,
            thread: need("tid", thread)?,
            at,
            site,
        }
        .into(),
        "received" => Received {
            handoff,
            thread: need("tid", thread)?,
            task,
            at,
        }
        .into(),
        "abandoned" => Abandoned { handoff, at }.into(),
        other => return Err(Bad::Unknown("kind", other.to_owned())),
    })
}
