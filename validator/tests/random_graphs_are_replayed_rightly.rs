//! Random histories of graphs: built, copied, instantiated, updated, disabled, destroyed, their ids
//! given again, launched by several threads, with events lost on the way. A model knows who built
//! every node that ran, and which replay it was. No row says anything else; a row says that it does
//! not know only where an event was lost or an update did not tell its pairs; and the validator, which
//! shares no code with the correlator, finds no row that differs, and the same faults.

mod recording;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_core::row::{Binding, LooseFault, Row, Template};
use proptest::prelude::*;
use recording::*;

/// One step: what to do, and three numbers that say to what.
type Step = (u8, u8, u8, u8);

/// A node as it was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Built {
    graph: u32,
    node: u64,
    order: u32,
    by: u64,
}

/// What is true of a node, and whether the observations can tell it.
#[derive(Debug, Clone, Copy)]
struct Node {
    built: Built,
    told: Result<(), Why>,
    enabled: bool,
}

#[derive(Debug, Clone, Default)]
struct Graph {
    nodes: Vec<(u64, Node)>,
    made: u32,
}

#[derive(Debug, Clone)]
struct Exec {
    generation: u32,
    told: bool,
    replays: u64,
    nodes: BTreeMap<u64, Node>,
    /// What each was copied from.
    from: BTreeMap<u64, u64>,
}

/// What is true of an operation.
#[derive(Debug, Clone, Copy)]
struct Truth {
    by: u64,
    exec: u32,
    generation: u32,
    replay: u64,
    /// Nothing was lost since the executable graph was made: it is still the one of its id.
    told: bool,
    node: Node,
}

/// The application, the driver and CUPTI.
#[derive(Debug, Default)]
struct World {
    now: u64,
    device: u64,
    sequence: u64,
    next_id: u32,
    free_ids: Vec<u32>,
    generations: BTreeMap<u32, u32>,
    graphs: BTreeMap<u32, Graph>,
    execs: BTreeMap<u32, Exec>,
    correlation: u32,
    /// Changes of graphs, host records by thread, and records of the device that are under way.
    changes: Vec<Event>,
    hosts: [Vec<Event>; 3],
    records: Vec<(u32, Event)>,
    flushes: u32,
    lost: bool,
    seen: Vec<Event>,
    truth: BTreeMap<(u32, u64), Truth>,
}

impl World {
    fn tick(&mut self) -> u64 {
        self.now += 10;
        self.now
    }

    fn id(&mut self) -> u32 {
        self.free_ids.pop().unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id
        })
    }

    /// A change that is told, or lost.
    fn change(&mut self, by: u64, change: GraphChange, lost: bool) {
        let now = self.tick();
        self.sequence += 1;
        if lost {
            self.lose();
            return;
        }
        self.changes.push(
            GraphEvent {
                session: 1,
                sequence: GraphSequence(self.sequence),
                at: at(now),
                tid: 10,
                correlation: None,
                attribution: Attribution::Epoch(epoch(by)),
                change,
            }
            .into(),
        );
    }

    /// A change was lost: of what was told before, nothing can be known.
    fn lose(&mut self) {
        self.lost = true;
        let nodes = self.graphs.values_mut().flat_map(|graph| &mut graph.nodes);
        nodes.for_each(|(_, node)| node.told = Err(Why::Dropped));
        for exec in self.execs.values_mut() {
            exec.told = false;
            exec.nodes
                .values_mut()
                .for_each(|node| node.told = Err(Why::Dropped));
        }
    }

    fn pick<V>(map: &BTreeMap<u32, V>, at: u8) -> Option<u32> {
        let keys: Vec<u32> = map.keys().copied().collect();
        (!keys.is_empty()).then(|| keys[usize::from(at) % keys.len()])
    }

    fn step(&mut self, (what, a, b, c): Step) {
        match what % 16 {
            0 => self.build(1 + u32::from(a % 4), 1 + u64::from(b % 3)),
            1 => self.copy(a),
            2 | 3 => self.instantiate(a),
            4 => self.update(a, b, c),
            5 => self.set_parameters(a, b, 1 + u64::from(c % 3)),
            6 => self.switch(a, b, c % 2 == 0),
            7 => self.destroy(a, b % 2 == 0),
            8 => self.drain(a, b),
            9 => self.flush(),
            10 if c.is_multiple_of(8) => {
                // One that would change nothing: an edge that was read.
                let change = GraphChange::Edges {
                    graph: 1,
                    edges: Vec::new(),
                    last: true,
                };
                self.change(1, change, true);
            }
            _ => self.launch(a, 1 + u64::from(b % 3), c % 3, c > 240),
        }
    }

    fn add_node(&mut self, graph: u32, by: u64) {
        let known = self.graphs.get_mut(&graph).expect("a graph");
        known.made += 1;
        let order = known.made;
        let node = u64::from(graph) << 32 | u64::from(order);
        let built = Built {
            graph,
            node,
            order,
            by,
        };
        let told = Ok(());
        let enabled = true;
        known.nodes.push((
            node,
            Node {
                built,
                told,
                enabled,
            },
        ));
        let kind = GraphNodeKind::Kernel;
        self.change(by, GraphChange::NodeCreated { graph, node, kind }, false);
    }

    fn build(&mut self, nodes: u32, by: u64) {
        let graph = self.id();
        self.graphs.insert(graph, Graph::default());
        self.change(by, GraphChange::GraphCreated { graph }, false);
        (0..nodes).for_each(|_| self.add_node(graph, by));
    }

    fn copied(&mut self, from: u32, to: u32) -> Vec<(u64, Node, u64)> {
        let nodes = self.graphs[&from].nodes.clone();
        let mut copies = Vec::new();
        for (number, (original, node)) in (1..).zip(nodes) {
            let copy = u64::from(to) << 32 | number;
            let change = GraphChange::NodeCloned {
                graph: to,
                node: copy,
                original_graph: from,
                original,
                kind: GraphNodeKind::Kernel,
            };
            self.change(1, change, false);
            let enabled = true;
            copies.push((copy, Node { enabled, ..node }, original));
        }
        copies
    }

    fn copy(&mut self, a: u8) {
        let Some(original) = Self::pick(&self.graphs, a) else {
            return;
        };
        let graph = self.id();
        // A copy is told of before its nodes, or behind them.
        let first = a.is_multiple_of(2);
        let change = GraphChange::GraphCloned { graph, original };
        if first {
            self.change(1, change.clone(), false);
        }
        let copies = self.copied(original, graph);
        if !first {
            self.change(1, change, false);
        }
        let made = copies.len() as u32;
        let nodes = copies.into_iter().map(|(id, node, _)| (id, node)).collect();
        self.graphs.insert(graph, Graph { nodes, made });
    }

    fn instantiate(&mut self, a: u8) {
        let Some(graph) = Self::pick(&self.graphs, a) else {
            return;
        };
        let exec = self.id();
        let copies = self.copied(graph, exec);
        self.change(1, GraphChange::ExecCreated { exec, graph }, false);
        let generation = self.generations.entry(exec).or_default();
        *generation += 1;
        let made = Exec {
            generation: *generation,
            told: true,
            replays: 0,
            from: copies.iter().map(|&(id, _, from)| (id, from)).collect(),
            nodes: copies.into_iter().map(|(id, node, _)| (id, node)).collect(),
        };
        self.execs.insert(exec, made);
    }

    /// The whole is updated from a graph of as many nodes; pairs are told as CUPTI 13 does, or not.
    fn update(&mut self, a: u8, b: u8, c: u8) {
        let Some(exec) = Self::pick(&self.execs, a) else {
            return;
        };
        let nodes = self.execs[&exec].nodes.len();
        let alike = self.graphs.iter().filter(|(_, of)| of.nodes.len() == nodes);
        let alike: BTreeMap<u32, ()> = alike.map(|(id, _)| (*id, ())).collect();
        let Some(graph) = Self::pick(&alike, b) else {
            return;
        };
        let from = self.graphs[&graph].nodes.clone();
        let ids: Vec<u64> = self.execs[&exec].nodes.keys().copied().collect();
        let mut updated = Vec::new();
        for (number, (node, (original, now))) in ids.into_iter().zip(from).enumerate() {
            let is_told = c.is_multiple_of(3) || (c % 3 == 1 && number.is_multiple_of(2));
            if is_told {
                let original = Some(original);
                let change = GraphChange::NodeUpdated {
                    exec,
                    node,
                    original,
                };
                self.change(1, change, false);
            }
            let told = if is_told {
                now.told
            } else {
                Err(Why::ExecUpdated)
            };
            updated.push((node, now.built, told));
        }
        self.change(1, GraphChange::ExecUpdated { exec, graph }, false);
        let known = self.execs.get_mut(&exec).expect("it is there");
        for (node, built, told) in updated {
            let node = known.nodes.get_mut(&node).expect("it is there");
            (node.built, node.told) = (built, told);
        }
    }

    fn of_exec(&self, a: u8, b: u8) -> Option<(u32, u64)> {
        let exec = Self::pick(&self.execs, a)?;
        let nodes: Vec<u64> = self.execs[&exec].nodes.keys().copied().collect();
        (!nodes.is_empty()).then(|| (exec, nodes[usize::from(b) % nodes.len()]))
    }

    fn set_parameters(&mut self, a: u8, b: u8, by: u64) {
        let Some((exec, node)) = self.of_exec(a, b) else {
            return;
        };
        let named = Some(if b.is_multiple_of(2) {
            self.execs[&exec].from[&node]
        } else {
            node
        });
        self.change(by, GraphChange::ParametersSet { exec, node: named }, false);
        let known = self.execs.get_mut(&exec).expect("it is there");
        known.nodes.get_mut(&node).expect("it is there").built.by = by;
    }

    fn switch(&mut self, a: u8, b: u8, enabled: bool) {
        let Some((exec, node)) = self.of_exec(a, b) else {
            return;
        };
        let named = Some(node);
        let change = GraphChange::NodeEnabled {
            exec,
            node: named,
            enabled,
        };
        self.change(1, change, false);
        let known = self.execs.get_mut(&exec).expect("it is there");
        known.nodes.get_mut(&node).expect("it is there").enabled = enabled;
    }

    fn destroy(&mut self, a: u8, is_exec: bool) {
        if is_exec {
            let Some(exec) = Self::pick(&self.execs, a) else {
                return;
            };
            self.execs.remove(&exec);
            self.change(1, GraphChange::ExecDestroyed { exec }, false);
            self.free_ids.push(exec);
        } else if let Some(graph) = Self::pick(&self.graphs, a) {
            self.graphs.remove(&graph);
            self.change(1, GraphChange::GraphDestroyed { graph }, false);
            self.free_ids.push(graph);
        }
    }

    fn launch(&mut self, a: u8, by: u64, thread_of: u8, fails: bool) {
        let Some(id) = Self::pick(&self.execs, a) else {
            return;
        };
        self.correlation += 1;
        let correlation = self.correlation;
        let called = self.tick();
        let tid = 10 + u64::from(thread_of);
        let mut launch = Launch::of(epoch(by), tid, correlation, called);
        launch.operations.clear();
        let api = ApiId {
            domain: ApiDomain::Driver,
            cbid: 514,
            name: Some(Arc::from("cuGraphLaunch")),
        };
        let due = OperationsDue::Many;
        let result = if fails { 719 } else { 0 };
        let told = GraphLaunch {
            session: 1,
            thread: thread(tid),
            correlation: CorrelationId(correlation),
            at: at(called),
            exec: id,
            sequence: GraphSequence(self.sequence),
        };
        let call = Call {
            api: api.clone(),
            due,
            result,
            ..launch.call().expect("it has one")
        };
        let host = &mut self.hosts[usize::from(thread_of)];
        host.push(told.into());
        host.push(call.into());
        host.extend(launch.scope().map(Event::from));
        let external = launch.external().map(Event::from);
        let written = self.flushes;
        self.records.extend(external.map(|event| (written, event)));
        let record = ApiRecord {
            api,
            due,
            result,
            ..launch.record()
        };
        self.records.push((written, record.into()));
        if fails {
            return;
        }
        let exec = self.execs.get_mut(&id).expect("it is there");
        exec.replays += 1;
        let (replay, generation, told) = (exec.replays, exec.generation, exec.told);
        let ran: Vec<(u64, Node)> = exec
            .nodes
            .iter()
            .filter(|(_, node)| node.enabled)
            .map(|(id, node)| (*id, *node))
            .collect();
        self.device = self.device.max(called + 50);
        for (node_id, node) in ran {
            let start = self.device;
            self.device += 20;
            let operation = Operation {
                graph_node: Some(node_id),
                graph: Some(id),
                ..kernel(correlation, start, start + 15)
            };
            self.records.push((written, operation.into()));
            let truth = Truth {
                by,
                exec: id,
                generation,
                replay,
                told,
                node,
            };
            self.truth.insert((correlation, node_id), truth);
        }
        self.now = self.now.max(called + 100);
    }

    /// Parts of what is under way come.
    fn drain(&mut self, a: u8, b: u8) {
        let part = |of: usize| of * usize::from(b % 4) / 3;
        match a % 5 {
            0 => {
                let part = part(self.changes.len()).min(self.changes.len());
                self.seen.extend(self.changes.drain(..part));
            }
            1 => {
                let mut number = 0_u8;
                let taken = self.records.extract_if(.., |_| {
                    number = number.wrapping_add(b | 1);
                    number.is_multiple_of(3)
                });
                self.seen.extend(taken.map(|(_, event)| event));
            }
            host => {
                let host = &mut self.hosts[usize::from(host - 2)];
                let part = part(host.len()).min(host.len());
                self.seen.extend(host.drain(..part));
            }
        }
    }

    /// Rings and changes are read, and a flush returned.
    fn flush(&mut self) {
        let asked = self.tick();
        for host in &mut self.hosts {
            self.seen.append(host);
        }
        self.seen.append(&mut self.changes);
        // What was written before the flush before this one has come by now.
        let flushes = self.flushes;
        let old = self
            .records
            .extract_if(.., |(written, _)| *written < flushes);
        self.seen.extend(old.map(|(_, event)| event));
        self.flushes += 1;
        self.seen.push(
            Flushed {
                session: 1,
                asked: at(asked),
                returned: at(asked + 5),
                last: false,
            }
            .into(),
        );
        self.now += 10;
    }

    fn run(steps: &[Step]) -> Self {
        let mut world = Self {
            now: 1_000,
            ..Self::default()
        };
        world.build(2, 1);
        world.instantiate(0);
        steps.iter().for_each(|&step| world.step(step));
        world.flush();
        let records = std::mem::take(&mut world.records);
        world
            .seen
            .extend(records.into_iter().map(|(_, event)| event));
        world
    }

    fn recording(&self) -> Recording {
        let mut recording = Recording::new();
        for tid in 10..13 {
            recording.thread(tid, 50 + tid);
        }
        for id in 1..=3 {
            recording.declare(id, 10, 100 + id);
        }
        for event in &self.seen {
            recording.saw(event.clone());
        }
        recording.end(1, self.now.max(self.device) + 1_000);
        recording
    }
}

fn concluded(recording: &Recording) -> (Vec<Row>, Vec<LooseFault>, u64) {
    let mut correlator = Correlator::new(Limits::default());
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for observation in &recording.observations {
        correlator.observe(observation);
    }
    correlator.end();
    correlator.drain(&mut rows, &mut faults);
    (rows, faults, correlator.totals().wrong)
}

fn check(steps: &[Step]) -> Result<(), TestCaseError> {
    let world = World::run(steps);
    let recording = world.recording();
    let (rows, faults, wrong) = concluded(&recording);
    let mut seen = BTreeSet::new();
    for row in &rows {
        let Some(operation) = &row.operation else {
            prop_assert_eq!(&row.faults, &[], "{:?}", row);
            continue;
        };
        let key = (
            operation.correlation.0,
            operation.graph_node.expect("a node"),
        );
        prop_assert!(seen.insert(key), "two rows of {:?}", key);
        let truth = world.truth[&key];
        prop_assert_eq!(row.binding, Binding::Bound(epoch(truth.by)));
        let graph = row.graph.as_ref().expect("a graph");
        prop_assert_eq!(graph.exec, Some(truth.exec));
        prop_assert_eq!(graph.iteration, 1);
        let (generation, replay) = match truth.told {
            true => (truth.generation, Some(truth.replay)),
            false => (0, None),
        };
        prop_assert_eq!(graph.generation, generation);
        prop_assert_eq!(graph.replay, replay, "{:?}", row);
        let told = match truth.told {
            true => truth.node.told,
            false => Err(Why::Dropped),
        };
        match (graph.template, told) {
            (Template::Known(node), Ok(())) => {
                let built = truth.node.built;
                let said = (node.graph, node.node, node.capture.epoch());
                let right = (built.graph, built.node, Some(epoch(built.by)));
                prop_assert_eq!(said, right, "{:?}", row);
                prop_assert!(node.order == built.order || (world.lost && node.order == 0));
                prop_assert_eq!(&row.faults, &[], "{:?}", row);
            }
            (Template::Unknown { why }, Err(right)) => {
                prop_assert_eq!(why, right, "{:?}", row);
                prop_assert_eq!(&row.faults, &[FaultCode::L06], "{:?}", row);
            }
            (said, right) => {
                prop_assert!(false, "{:?}, and it is {:?}: {:?}", said, right, row);
            }
        }
    }
    prop_assert_eq!(seen.len(), world.truth.len(), "a row for each operation");
    prop_assert_eq!(wrong, 0);

    let validation = recording.validated_with(&rows, &faults);
    let compared = validation.counts.rows.expect("rows were given");
    prop_assert_eq!(compared.differing, 0, "{}", validation);
    prop_assert_eq!(compared.extra + compared.missing, 0, "{}", validation);
    prop_assert_eq!(&validation.fault_counts, &validation.session_faults);
    Ok(())
}

/// So many cases, unless the environment asks for another number.
fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if asked { default.cases } else { cases },
        failure_persistence: None,
        ..default
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn of_any_history(steps in prop::collection::vec(any::<Step>(), 1..120)) {
        check(&steps)?;
    }
}
