//! The launches, run on the model, and what is said of them.

use lineage_sim_model::{
    Cause, DependencyKind, Facts, GraphNode, Host, Model, Settings, StreamOptions, Submission, Work,
};
use serde::Serialize;

use crate::arguments::Lab;

/// Schema of the object.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    schema: u32,
    lineage: &'static str,
    pub(super) settings: Asked,
    pub(super) launches: Vec<Launched>,
    pub(super) host: HostSide,
    pub(super) device: DeviceSide,
}

/// What was asked for.
#[derive(Debug, Serialize)]
pub(super) struct Asked {
    pub(super) host_ns: u64,
    pub(super) gpu_ns: u64,
    pub(super) launches: u32,
    pub(super) streams: u32,
    /// 0: one for each stream.
    pub(super) channels: u32,
    pub(super) depth: u32,
    pub(super) depth_first: bool,
    pub(super) graph: bool,
}

/// One launch, or one node of the graph.
#[derive(Debug, Serialize)]
pub(super) struct Launched {
    pub(super) launch: u64,
    pub(super) stream: u32,
    pub(super) channel: u32,
    pub(super) called_ns: u64,
    pub(super) enqueued_ns: u64,
    pub(super) started_ns: u64,
    pub(super) ended_ns: u64,
    /// Between the call and the start, beside the host's own time.
    pub(super) held_up_by: Vec<HeldUp>,
}

#[derive(Debug, Serialize)]
pub(super) struct HeldUp {
    pub(super) cause: &'static str,
    pub(super) ns: u64,
    /// The launch that was waited for.
    pub(super) launch: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct HostSide {
    /// The last launch call returned.
    pub(super) returned_ns: u64,
    /// Of that: waiting for room in a full queue.
    pub(super) blocked_ns: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct DeviceSide {
    pub(super) ended_ns: u64,
    /// At least one kernel ran.
    pub(super) busy_ns: u64,
    pub(super) idle: Vec<Idle>,
}

/// Nothing ran.
#[derive(Debug, Serialize)]
pub(super) struct Idle {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// The launch that ended it.
    pub(super) launch: u64,
}

pub(super) fn run(lab: &Lab) -> Outcome {
    let settings = Settings::default()
        .channels(lab.channels)
        .ring_entries(lab.depth);
    let mut model = Model::new(settings, 0);
    let streams: Vec<_> = (0..lab.streams)
        .map(|_| model.add_stream(StreamOptions::default()))
        .collect();
    let mut host = Host::new(0);
    // Numbers are from 1. Launches go to the streams in turn, or to one after the other.
    let numbers = 1..=u64::from(lab.launches);
    let count = u64::from(lab.streams);
    let stream_of = |number: u64| {
        if lab.depth_first {
            ((number - 1) * count / u64::from(lab.launches)) as usize
        } else {
            ((number - 1) % count) as usize
        }
    };
    if lab.graph {
        // Nodes of one stream follow each other, as in a graph captured from these launches.
        let mut last: Vec<Option<usize>> = vec![None; streams.len()];
        let nodes = numbers.map(|number| {
            let before = last[stream_of(number)].replace(number as usize - 1);
            GraphNode::new(number, Work::kernel(lab.gpu_ns()), before.as_slice())
        });
        let nodes = nodes.collect();
        host.spend(lab.host_ns());
        host.submit_graph(&mut model, streams[0], None, nodes);
    } else {
        for number in numbers {
            host.spend(lab.host_ns());
            let work = Work::kernel(lab.gpu_ns());
            host.submit(
                &mut model,
                streams[stream_of(number)],
                Submission::new(number, work),
            );
        }
    }
    let returned_ns = host.now_ns();
    let mut facts = host.finish(&mut model);
    facts.sort_by_key(|facts| facts.number);
    let blocked_ns = facts
        .iter()
        .map(|facts| facts.waits.of(Cause::QueueFull))
        .sum();
    Outcome {
        schema: SCHEMA,
        lineage: env!("CARGO_PKG_VERSION"),
        settings: Asked {
            host_ns: lab.host_ns(),
            gpu_ns: lab.gpu_ns(),
            launches: lab.launches,
            streams: lab.streams,
            channels: lab.channels,
            depth: lab.depth,
            depth_first: lab.depth_first,
            graph: lab.graph,
        },
        device: device(&facts),
        launches: facts
            .iter()
            .map(|facts| launched(facts, stream_of(facts.number) as u32 + 1))
            .collect(),
        host: HostSide {
            returned_ns,
            blocked_ns,
        },
    }
}

fn launched(facts: &Facts, stream: u32) -> Launched {
    let causes = facts
        .waits
        .causes()
        .filter(|(cause, _)| *cause != Cause::Host);
    let held_up_by = causes.map(|(cause, ns)| HeldUp {
        cause: match (cause, facts.last_dependency) {
            (Cause::Dependency, DependencyKind::GraphEdge) => "graph edge",
            (Cause::Dependency, _) => "stream order",
            (cause, _) => cause.name(),
        },
        ns,
        launch: match cause {
            Cause::Dependency => Some(facts.dependency_number),
            Cause::Channel => Some(facts.channel_number),
            _ => None,
        }
        .filter(|number| *number > 0),
    });
    Launched {
        launch: facts.number,
        stream,
        channel: facts.channel + 1,
        called_ns: facts.called_ns,
        enqueued_ns: facts.queued_ns,
        started_ns: facts.start_ns,
        ended_ns: facts.end_ns,
        held_up_by: held_up_by.collect(),
    }
}

/// When the device was busy, and when not.
fn device(facts: &[Facts]) -> DeviceSide {
    let mut by_start: Vec<&Facts> = facts.iter().collect();
    by_start.sort_by_key(|facts| (facts.start_ns, facts.number));
    let (mut ended_ns, mut idle_ns, mut idle) = (0, 0, Vec::new());
    for facts in by_start {
        if facts.start_ns > ended_ns {
            idle_ns += facts.start_ns - ended_ns;
            idle.push(Idle {
                from_ns: ended_ns,
                to_ns: facts.start_ns,
                launch: facts.number,
            });
        }
        ended_ns = ended_ns.max(facts.end_ns);
    }
    DeviceSide {
        ended_ns,
        busy_ns: ended_ns - idle_ns,
        idle,
    }
}
