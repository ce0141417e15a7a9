//! Rows: what was concluded.

use std::sync::Arc;

use lineage_core::evidence::{Evidence, Rule, Why};
use lineage_core::fault::FaultCode;
use lineage_core::id::{Attribution, LaunchEpoch, ProcessOrdinal, UnwrappedCorrelationId};
use lineage_core::row::{
    Binding, JoinSources, Row, RowCall, RowGraph, Stages, Template, TemplateNode, Unattributed,
};

use super::calls::api;
use super::operations::{Columns, operation};
use crate::column::Column;
use crate::how::{self, How};
use crate::port::{self, Bad, Port, need, variant_name, variant_of};

/// The stages' columns, in order, each near to one before it.
const STAGES: [Column; 9] = [
    Column::delta("declared_ns"),
    Column::after("ready_ns", "declared_ns"),
    Column::delta("scope_enter_ns"),
    Column::after("api_enter_ns", "scope_enter_ns"),
    Column::after("api_exit_ns", "api_enter_ns"),
    Column::after("queued_ns", "api_exit_ns"),
    Column::after("submitted_ns", "api_exit_ns"),
    Column::delta("start_ns"),
    Column::after("end_ns", "start_ns"),
];

const OPERATION: Columns = Columns {
    session: Column::u32("operation_session"),
    correlation: Column::after("operation_correlation", "correlation"),
    queued: Column::after("operation_queued_ns", "queued_ns"),
    submitted: Column::after("operation_submitted_ns", "submitted_ns"),
    start: Column::after("operation_start_ns", "start_ns"),
    end: Column::after("operation_end_ns", "end_ns"),
};

pub(super) fn row<P: Port>(
    port: &mut P,
    process: Option<u32>,
    given: Option<&Row>,
) -> Result<Row, Bad> {
    let (binding, epoch) = binding(port, given.map(|of| of.binding))?;
    let stages = stages(port, given.map(|of| of.stages))?;
    let call = call(port, given.and_then(|of| of.call.as_ref()))?;
    let column_set = &OPERATION;
    let operation = operation(port, given.and_then(|of| of.operation.as_ref()), column_set)?;
    let graph = graph(port, given.and_then(|of| of.graph))?;
    let sources = sources(port, given.map(|of| of.sources))?;
    let faults = faults(port, given.map(|of| of.faults.as_slice()))?;
    let after_retirement = port::bool(
        port,
        "after_retirement",
        given.map(|of| of.after_retirement),
    )?;
    let supersedes = port::bool(port, "supersedes", given.map(|of| of.supersedes))?;
    Ok(Row {
        process: ProcessOrdinal(need("process", process)?),
        call,
        operation,
        graph,
        binding: read_binding(binding, epoch)?,
        sources,
        stages: need("how", stages)?,
        faults,
        after_retirement: need("after_retirement", after_retirement)?,
        supersedes: need("supersedes", supersedes)?,
    })
}

type Epochs = [Option<LaunchEpoch>; 2];

/// The binding's name, and the epochs that it names: the columns `binding`, `epoch`, `other_epoch`.
fn binding<P: Port>(
    port: &mut P,
    given: Option<Binding>,
) -> Result<(Option<Arc<str>>, Epochs), Bad> {
    let (name, epochs): (Option<Arc<str>>, Epochs) = match given {
        None => (None, [None, None]),
        Some(Binding::Bound(epoch)) => (Some("bound".into()), [Some(epoch), None]),
        Some(Binding::Disputed(one, other)) => (Some("disputed".into()), [Some(one), Some(other)]),
        Some(Binding::Lost) => (Some("lost".into()), [None, None]),
        Some(Binding::Unattributed(why)) => {
            let name = format!("unattributed:{}", variant_name(&why));
            (Some(name.into()), [None, None])
        }
        // A binding that core has and this crate does not know yet is kept as JSON.
        Some(_) => return Err(Bad::Range("binding")),
    };
    let name = port.name(Column::name("binding"), name.as_ref())?;
    let one = port::epoch(port, Column::delta("epoch"), epochs[0])?;
    let other = port::epoch(port, Column::after("other_epoch", "epoch"), epochs[1])?;
    Ok((name, [one, other]))
}

fn read_binding(name: Option<Arc<str>>, epochs: Epochs) -> Result<Binding, Bad> {
    let name = need("binding", name)?;
    Ok(match &*name {
        "bound" => Binding::Bound(need("epoch", epochs[0])?),
        "disputed" => Binding::Disputed(need("epoch", epochs[0])?, need("other_epoch", epochs[1])?),
        "lost" => Binding::Lost,
        other => Binding::Unattributed(
            other
                .strip_prefix("unattributed:")
                .and_then(variant_of::<Unattributed>)
                .ok_or_else(|| Bad::Unknown("binding", other.to_owned()))?,
        ),
    })
}

fn listed(stages: Stages) -> [Evidence; 9] {
    let Stages {
        declared,
        ready,
        scope_enter,
        api_enter,
        api_exit,
        queued,
        submitted,
        start,
        end,
    } = stages;
    [
        declared,
        ready,
        scope_enter,
        api_enter,
        api_exit,
        queued,
        submitted,
        start,
        end,
    ]
}

/// The columns `how`, the nine times, and `not_after`.
fn stages<P: Port>(port: &mut P, given: Option<Stages>) -> Result<Option<Stages>, Bad> {
    let given = given.map(listed);
    let how = match given {
        None => None,
        Some(all) => Some(how::of(&all).ok_or(Bad::Range("how"))?),
    };
    let how = port.how(Column::name("how"), how)?;
    let mut times = [None; 9];
    for (at, column) in STAGES.into_iter().enumerate() {
        let time = given.and_then(|all| match all[at] {
            Evidence::Bounded { not_before, .. } => not_before,
            other => other.at(),
        });
        times[at] = port::time(port, column, time)?;
    }
    let upper = given.and_then(|all| how::upper_bounds(&all));
    let upper = port.text(Column::text("not_after"), upper.as_deref())?;
    let Some(how) = how else {
        return Ok(None);
    };
    let upper = how::read_upper_bounds(upper.as_deref()).ok_or(Bad::Range("not_after"))?;
    let mut all = [Evidence::Unknown { why: Why::Pending }; 9];
    for (at, evidence) in all.iter_mut().enumerate() {
        let name = STAGES[at].name;
        *evidence = match how[at] {
            How::Observed(source) => Evidence::Observed {
                at: need(name, times[at])?,
                source,
            },
            How::Inferred(rule) => Evidence::Inferred {
                at: need(name, times[at])?,
                rule,
            },
            How::Bounded(rule) => Evidence::Bounded {
                not_before: times[at],
                not_after: upper[at],
                rule,
            },
            How::Unknown(why) => Evidence::Unknown { why },
        };
    }
    let [
        declared,
        ready,
        scope_enter,
        api_enter,
        api_exit,
        queued,
        submitted,
        start,
        end,
    ] = all;
    Ok(Some(Stages {
        declared,
        ready,
        scope_enter,
        api_enter,
        api_exit,
        queued,
        submitted,
        start,
        end,
    }))
}

/// The call's columns; there is none where `call_session` is null.
fn call<P: Port>(port: &mut P, given: Option<&RowCall>) -> Result<Option<RowCall>, Bad> {
    let column = Column::u32("call_session");
    let session = port::u32(port, column, given.map(|of| of.session))?;
    let correlation = port.number(
        Column::delta("correlation"),
        given.map(|of| of.correlation.0),
    )?;
    let api = api(port, given.map(|of| &of.api))?;
    let tid = port.number(Column::u64("tid"), given.map(|of| of.tid))?;
    let task = port::task(port, given.and_then(|of| of.task))?;
    let result = port::u32(port, Column::u32("result"), given.map(|of| of.result))?;
    let in_boundary = port::bool(port, "in_boundary", given.and_then(|of| of.in_boundary))?;
    let Some(session) = session else {
        return Ok(None);
    };
    Ok(Some(RowCall {
        session,
        correlation: UnwrappedCorrelationId(need("correlation", correlation)?),
        api: need("api_domain", api)?,
        tid: need("tid", tid)?,
        task,
        result: need("result", result)?,
        in_boundary,
    }))
}

/// How a node's template is known, by name, and the node.
fn template_of(template: Template) -> Option<(Arc<str>, Option<TemplateNode>)> {
    Some(match template {
        Template::Known(node) => ("known".into(), Some(node)),
        Template::Inferred { node, rule } => (
            format!("inferred:{}", variant_name(&rule)).into(),
            Some(node),
        ),
        Template::Unknown { why } => (format!("unknown:{}", variant_name(&why)).into(), None),
        _ => return None,
    })
}

/// The replay's columns; there is none where `template` is null.
fn graph<P: Port>(port: &mut P, given: Option<RowGraph>) -> Result<Option<RowGraph>, Bad> {
    let (how, node) = match given {
        None => (None, None),
        Some(graph) => {
            let (how, node) = template_of(graph.template).ok_or(Bad::Range("template"))?;
            (Some(how), node)
        }
    };
    let how = port.name(Column::name("template"), how.as_ref())?;
    let exec = port::u32(port, Column::u32("exec"), given.and_then(|of| of.exec))?;
    let column = Column::u32("exec_generation");
    let generation = port::u32(port, column, given.map(|of| of.generation))?;
    let replay = port.number(Column::delta("replay"), given.and_then(|of| of.replay))?;
    let column = Column::u32("iteration");
    let iteration = port::u32(port, column, given.map(|of| of.iteration))?;
    let node = template_node(port, node)?;
    let Some(how) = how else {
        return Ok(None);
    };
    let template = match how.split_once(':') {
        None if &*how == "known" => Template::Known(need("template_node", node)?),
        Some(("inferred", rule)) => Template::Inferred {
            node: need("template_node", node)?,
            rule: variant_of::<Rule>(rule)
                .ok_or_else(|| Bad::Unknown("template", rule.to_owned()))?,
        },
        Some(("unknown", why)) => Template::Unknown {
            why: variant_of(why).ok_or_else(|| Bad::Unknown("template", why.to_owned()))?,
        },
        _ => return Err(Bad::Unknown("template", how.to_string())),
    };
    Ok(Some(RowGraph {
        exec,
        generation: need("exec_generation", generation)?,
        replay,
        iteration: need("iteration", iteration)?,
        template,
    }))
}

fn template_node<P: Port>(
    port: &mut P,
    given: Option<TemplateNode>,
) -> Result<Option<TemplateNode>, Bad> {
    let column = Column::u32("template_graph");
    let graph = port::u32(port, column, given.map(|of| of.graph))?;
    let node = port.number(Column::u64("template_node"), given.map(|of| of.node))?;
    let column = Column::u32("template_order");
    let order = port::u32(port, column, given.map(|of| of.order))?;
    let column = Column::u64("capture");
    let capture = port::attribution(port, column, given.map(|of| of.capture))?;
    let captured_by = port.number(
        Column::u64("captured_by"),
        given.and_then(|of| of.captured_by).map(|of| of.0),
    )?;
    let column = Column::delta("captured_ns");
    let at = port::time(port, column, given.map(|of| of.at))?;
    let Some(graph) = graph else {
        return Ok(None);
    };
    Ok(Some(TemplateNode {
        graph,
        node: need("template_node", node)?,
        order: need("template_order", order)?,
        capture: need("capture", capture)?,
        captured_by: captured_by.map(UnwrappedCorrelationId),
        at: need("captured_ns", at)?,
    }))
}

fn sources<P: Port>(port: &mut P, given: Option<JoinSources>) -> Result<JoinSources, Bad> {
    let mut source = |name, value: Option<Attribution>| {
        port::attribution(port, Column::after(name, "epoch"), value)
    };
    let external = source("external", given.and_then(|of| of.external))?;
    let callback = source("callback", given.and_then(|of| of.callback))?;
    let containment = source("containment", given.and_then(|of| of.containment))?;
    let reachable = port::bool(port, "reachable", given.and_then(|of| of.reachable))?;
    Ok(JoinSources {
        external,
        callback,
        containment,
        reachable,
    })
}

/// Fault codes, with a comma between them; null for none.
fn faults<P: Port>(port: &mut P, given: Option<&[FaultCode]>) -> Result<Vec<FaultCode>, Bad> {
    let text: Option<Arc<str>> = given.filter(|codes| !codes.is_empty()).map(|codes| {
        let codes: Vec<&str> = codes.iter().map(|code| code.code()).collect();
        codes.join(",").into()
    });
    let Some(text) = port.name(Column::name("faults"), text.as_ref())? else {
        return Ok(Vec::new());
    };
    text.split(',')
        .map(|code| {
            FaultCode::from_code(code).ok_or_else(|| Bad::Unknown("faults", code.to_owned()))
        })
        .collect()
}
