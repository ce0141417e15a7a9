//! Templates that follow from the order, put into rows.

use lineage_core::evidence::Rule;
use lineage_core::id::{Attribution, HostNanos, ProcessOrdinal, UnwrappedCorrelationId};
use lineage_core::observation::ActivityKind;
use lineage_core::row::{Binding, Row, RowGraph, Template, TemplateNode};
use rustc_hash::FxHashMap;

use crate::templates::{Capture, Replay, TemplateMatch, match_templates};

/// Says of the kernels of replayed graphs which captured launch each comes from, where capture order
/// tells: [`Template::Inferred`] by [`Rule::CaptureOrder`]. Answers with how many rows that are.
///
/// Rows that have a template are left alone, and so is a launch that several captures or none explain
/// ([`match_templates`]), and one of which not all kernels are among the rows. A recording without ids of
/// nodes leaves [`TemplateNode::graph`] and [`TemplateNode::node`] 0; the epoch of a captured launch is
/// known where its own row is among these.
pub fn infer_templates(rows: &mut [Row], captures: &[Capture], replays: &[Replay]) -> u64 {
    let mut captured_under: FxHashMap<(ProcessOrdinal, u32), Attribution> = FxHashMap::default();
    let mut kernels: FxHashMap<(ProcessOrdinal, u32), Vec<usize>> = FxHashMap::default();
    for (number, row) in rows.iter().enumerate() {
        let Some(call) = &row.call else { continue };
        let launch = (row.process, call.correlation.wire().0);
        match &row.operation {
            Some(operation) if operation.kind == ActivityKind::Kernel => {
                kernels.entry(launch).or_default().push(number);
            }
            Some(_) => {}
            None => {
                if let Binding::Bound(epoch) = row.binding {
                    captured_under.insert(launch, Attribution::Epoch(epoch));
                }
            }
        }
    }
    let mut inferred = 0;
    for (replay, template) in replays.iter().zip(match_templates(captures, replays)) {
        let TemplateMatch::ByCaptureOrder { capture } = template else {
            continue;
        };
        let capture = &captures[capture];
        let Some(of_launch) = kernels.get_mut(&(replay.process, replay.correlation)) else {
            continue;
        };
        if of_launch.len() != capture.launches.len() {
            continue;
        }
        let start = |number: &usize| rows[*number].operation.as_ref().and_then(|of| of.start);
        of_launch.sort_by_key(start);
        let pairs = (1..).zip(of_launch.iter().zip(&capture.launches));
        for (order, (&number, launch)) in pairs {
            let row = &mut rows[number];
            let known = |graph: &RowGraph| !matches!(graph.template, Template::Unknown { .. });
            if row.graph.as_ref().is_some_and(known) {
                continue;
            }
            let capture_key = (capture.process, launch.correlation);
            let node = TemplateNode {
                graph: 0,
                node: 0,
                order,
                capture: captured_under
                    .get(&capture_key)
                    .copied()
                    .unwrap_or_default(),
                captured_by: Some(UnwrappedCorrelationId(u64::from(launch.correlation))),
                at: launch.at.unwrap_or(HostNanos(0)),
            };
            let rule = Rule::CaptureOrder;
            let template = Template::Inferred { node, rule };
            row.graph = Some(match row.graph {
                Some(graph) => RowGraph { template, ..graph },
                None => RowGraph {
                    exec: None,
                    generation: 0,
                    replay: None,
                    iteration: 1,
                    template,
                },
            });
            inferred += 1;
        }
    }
    inferred
}
