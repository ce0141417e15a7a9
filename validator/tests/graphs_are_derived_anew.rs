//! What ran in a graph is held to what became of graphs: unknown templates, mismatches and graphs of
//! another generation, in recordings alone and in the rows of a session.

mod recording;

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode::{self, *};
use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_core::row::{Row, Template, TemplateNode};
use lineage_validator::{TruthReplay, Validation};
use recording::*;

/// Graph 5 with two nodes, instantiated as 6 and as 7 at 300; three launches follow.
fn built() -> (Recording, Graphs) {
    let mut recording = Recording::sound();
    let mut graphs = Graphs::default();
    graphs.build(&mut recording, 200, 5, 2);
    graphs.instantiate(&mut recording, 300, (5, 6), 2);
    graphs.instantiate(&mut recording, 300, (5, 7), 2);
    (recording, graphs)
}

fn launch(correlation: u32, called: u64) -> Launch {
    Launch::of(epoch(1), 10, correlation, called)
}

/// Two launches of graph 6 without a fault.
fn replayed() -> Recording {
    let (mut recording, graphs) = built();
    let nodes = [node(6, 1), node(6, 2)];
    graphs.launch(&mut recording, &launch(4, 5_000), 6, &nodes);
    graphs.launch(&mut recording, &launch(5, 7_000), 6, &nodes);
    recording.ended()
}

fn rows_of(recording: &Recording) -> Vec<Row> {
    let mut correlator = Correlator::new(Limits::default());
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for observation in &recording.observations {
        correlator.observe(observation);
    }
    correlator.end();
    correlator.drain(&mut rows, &mut faults);
    rows
}

#[test]
fn a_sound_replay_has_no_fault_and_its_rows_agree() {
    let recording = replayed();
    let validation = none(&recording);
    assert_eq!(validation.counts.graph_launches, 2);
    assert_eq!(validation.counts.templates_known, 4);
    assert!(validation.counts.templates_unknown.is_empty());
    let validation = recording.validated_with(&rows_of(&recording), &[]);
    assert!(validation.is_sound(), "{validation}");
    assert_eq!(validation.counts.rows.map(|rows| rows.agreeing), Some(7));
}

#[test]
fn l06_of_a_graph_that_is_older_than_the_session() {
    let (mut recording, graphs) = built();
    graphs.launch(&mut recording, &launch(4, 5_000), 9, &[node(9, 1)]);
    let validation = only(&recording.ended(), L06, 1);
    assert_eq!((validation.counts.lost, validation.counts.wrong), (1, 0));
    assert_eq!(
        validation.counts.templates_unknown.get("before_session"),
        Some(&1)
    );
}

#[test]
fn l06_of_an_update_that_tells_no_pairs() {
    let (mut recording, mut graphs) = built();
    let change = GraphChange::ExecUpdated { exec: 6, graph: 5 };
    graphs.change(&mut recording, 400, change);
    graphs.launch(&mut recording, &launch(4, 5_000), 6, &[node(6, 1)]);
    graphs.launch(&mut recording, &launch(5, 7_000), 7, &[node(7, 1)]);
    let validation = only(&recording.ended(), L06, 1);
    assert_eq!(
        validation.counts.templates_unknown.get("exec_updated"),
        Some(&1)
    );
    assert_eq!(validation.counts.templates_known, 1);
}

#[test]
fn l06_of_changes_that_were_lost() {
    let (mut recording, mut graphs) = built();
    graphs.change(&mut recording, 400, GraphChange::Lost { count: 1 });
    graphs.launch(&mut recording, &launch(4, 5_000), 6, &[node(6, 1)]);
    let validation = only(&recording.ended(), L06, 1);
    assert_eq!(validation.counts.templates_unknown.get("dropped"), Some(&1));
}

/// Exactly this many W06, beside what else is said.
#[track_caller]
fn mismatches(recording: Recording, others: &[(FaultCode, u64)]) -> Validation {
    let recording = recording.ended();
    let mut codes = others.to_vec();
    codes.push((W06, 1));
    assert_eq!(recording.codes(), codes, "{}", recording.validated());
    let rows = rows_of(&recording);
    let of_rows = rows.iter().filter(|row| row.faults.contains(&W06));
    assert_eq!(of_rows.count(), 1, "the correlator says so too");
    let validation = recording.validated_with(&rows, &[]);
    assert_eq!(
        validation.fault_counts, validation.session_faults,
        "{validation}"
    );
    validation
}

#[test]
fn w06_of_a_node_of_another_executable_graph() {
    let (mut recording, graphs) = built();
    graphs.launch(&mut recording, &launch(4, 5_000), 6, &[node(7, 1)]);
    mismatches(recording, &[(L06, 1)]);
}

#[test]
fn w06_of_launches_of_one_executable_graph_that_overlap() {
    let (mut recording, graphs) = built();
    let mut first = launch(4, 5_000);
    first.operations[0].start = Some(at(40_000));
    graphs.launch(&mut recording, &first, 6, &[node(6, 1)]);
    let mut second = launch(5, 7_000);
    second.operations[0].start = Some(at(20_000));
    graphs.launch(&mut recording, &second, 6, &[node(6, 1)]);
    mismatches(recording, &[]);
}

#[test]
fn w06_of_a_kernel_that_ran_twice_in_a_launch_without_loops() {
    let (mut recording, graphs) = built();
    let nodes = [node(6, 1), node(6, 1)];
    graphs.launch(&mut recording, &launch(4, 5_000), 6, &nodes);
    mismatches(recording, &[]);
}

#[test]
fn w06_of_an_operation_that_bears_the_id_of_the_captured_call() {
    let (mut recording, _) = built();
    let mut captured = launch(4, 5_000);
    captured.operations.clear();
    captured.due = OperationsDue::None;
    recording.launch(&captured);
    recording.saw(Operation {
        graph_node: Some(node(6, 1)),
        graph: Some(6),
        ..kernel(4, 6_000, 6_005)
    });
    mismatches(recording, &[]);
}

#[test]
fn w06_of_sources_one_of_which_names_the_capture() {
    let (mut recording, graphs) = built();
    recording.declare(2, 10, 110);
    recording.retire(2, 90_000);
    let mut disputed = Launch::of(epoch(2), 10, 4, 5_000);
    disputed.external = Some(PackedEpoch::from(epoch(1)).bits());
    disputed.callback = Some(Attribution::Epoch(epoch(2)));
    disputed.in_boundary = true;
    graphs.launch(&mut recording, &disputed, 6, &[node(6, 1)]);
    mismatches(recording, &[(W03, 1)]);
}

#[test]
fn w08_of_what_ran_before_its_executable_graph_was_there() {
    let (mut recording, mut graphs) = built();
    graphs.instantiate(&mut recording, 60_000, (5, 8), 2);
    graphs.launch(&mut recording, &launch(4, 5_000), 8, &[node(8, 1)]);
    let validation = only(&recording.ended(), W08, 1);
    assert_eq!(validation.counts.wrong, 1);
}

/// The rows of two sound replays, of which the first of the second launch is changed.
#[track_caller]
fn changed(change: impl Fn(&mut Row)) -> Vec<(FaultCode, u64)> {
    let recording = replayed();
    let mut rows = rows_of(&recording);
    let row = rows.iter_mut().find(|row| {
        let operation = row.operation.as_ref();
        operation.is_some_and(|operation| operation.correlation.0 == 5)
    });
    change(row.expect("a row of the second launch"));
    let validation = recording.validated_with(&rows, &[]);
    assert_eq!(validation.counts.rows.map(|rows| rows.differing), Some(1));
    validation.fault_counts.into_iter().collect()
}

#[test]
fn a_row_that_says_another_replay_template_or_generation_is_wrong() {
    let graph = |row: &mut Row| row.graph.expect("a graph");
    let with = |row: &mut Row, change: &dyn Fn(&mut lineage_core::row::RowGraph)| {
        let mut of = graph(row);
        change(&mut of);
        row.graph = Some(of);
    };
    let other_replay = changed(|row| with(row, &|graph| graph.replay = Some(1)));
    assert_eq!(other_replay, [(W06, 1)]);
    let other_exec = changed(|row| with(row, &|graph| graph.exec = Some(7)));
    assert_eq!(other_exec, [(W06, 1)]);
    let other_generation = changed(|row| with(row, &|graph| graph.generation = 2));
    assert_eq!(other_generation, [(W08, 1)]);
    let other_iteration = changed(|row| with(row, &|graph| graph.iteration = 2));
    assert_eq!(other_iteration, [(W06, 1)]);
    let other_epoch = changed(|row| {
        with(row, &|graph| {
            if let Template::Known(node) = graph.template {
                graph.template = Template::Known(TemplateNode {
                    capture: Attribution::Epoch(epoch(2)),
                    ..node
                });
            }
        });
    });
    assert_eq!(other_epoch, [(W06, 1)]);
    let unknown = Template::Unknown { why: Why::Dropped };
    let not_known = changed(|row| with(row, &|graph| graph.template = unknown));
    assert_eq!(not_known, [(L06, 1)]);
    assert_eq!(changed(|row| row.graph = None), [(L06, 1)]);
}

#[test]
fn a_launch_of_disabled_nodes_has_no_operation_due() {
    let (mut recording, mut graphs) = built();
    for number in [1, 2] {
        let node = Some(node(6, number));
        let change = GraphChange::NodeEnabled {
            exec: 6,
            node,
            enabled: false,
        };
        graphs.change(&mut recording, 400, change);
    }
    graphs.launch(&mut recording, &launch(4, 5_000), 6, &[]);
    recording.launch(&launch(5, 7_000));
    let validation = none(&recording.clone().ended());
    assert_eq!(validation.counts.maybe_without_operation, 1);
    // Of 7, whose nodes are enabled, something is lost.
    graphs.launch(&mut recording, &launch(6, 9_000), 7, &[]);
    recording.launch(&launch(7, 11_000));
    only(&recording.ended(), L03, 1);
}

/// A captured call of which CUPTI's record is all that came, and a launch after it. Whether a change
/// tells of the node that was made inside of it.
fn captured_call(node_made: bool) -> Recording {
    let (mut recording, mut graphs) = built();
    let mut captured = launch(4, 5_000);
    captured.operations.clear();
    captured.callback = None;
    graphs.change(
        &mut recording,
        4_000,
        GraphChange::GraphCreated { graph: 8 },
    );
    if node_made {
        let (graph, node, kind) = (8, node(8, 1), GraphNodeKind::Kernel);
        let made = GraphChange::NodeCreated { graph, node, kind };
        graphs.change_in_call(&mut recording, 5_050, 4, made);
    }
    recording.launch(&captured);
    recording.launch(&launch(5, 7_000));
    recording.ended()
}

#[test]
fn a_captured_call_is_known_by_the_node_that_was_made_in_it_where_our_own_record_was_lost() {
    only(&captured_call(false), L03, 1);
    let recording = captured_call(true);
    let validation = none(&recording);
    assert_eq!(validation.counts.without_operation_due, 1);
    let validation = recording.validated_with(&rows_of(&recording), &[]);
    assert!(validation.is_sound(), "{validation}");
}

#[test]
fn a_call_may_be_captured_where_its_own_record_and_the_changes_of_its_time_are_lost() {
    // Called at 5,000, and left 105 later.
    for (lost_from, lost_to, may_be) in [(5_050, 6_000, true), (4_000, 4_500, false)] {
        let (mut recording, mut graphs) = built();
        let mut captured = launch(4, 5_000);
        captured.operations.clear();
        captured.callback = None;
        recording.launch(&captured);
        let made = |graph| GraphChange::GraphCreated { graph };
        graphs.change(&mut recording, lost_from, GraphChange::Lost { count: 1 });
        graphs.change(&mut recording, lost_to, made(8));
        recording.launch(&launch(5, 7_000));
        let recording = recording.ended();
        let validation = if may_be {
            none(&recording)
        } else {
            only(&recording, L03, 1)
        };
        assert_eq!(validation.counts.maybe_captured, u64::from(may_be));
        let validation = recording.validated_with(&rows_of(&recording), &[]);
        assert_eq!(validation.fault_counts, validation.session_faults);
    }
}

#[test]
fn replays_are_scored_against_truth() {
    let recording = replayed();
    let rows = rows_of(&recording);
    let truth = |correlation, number, replay, capture: &'static str| TruthReplay {
        process: ProcessOrdinal(0),
        correlation: CorrelationId(correlation),
        node: node(6, number),
        iteration: 1,
        replay,
        capture,
    };
    let right = [
        truth(4, 1, 1, "a"),
        truth(4, 2, 1, "a"),
        truth(5, 1, 2, "a"),
    ];
    let labels = |of: LaunchEpoch| (of == epoch(1)).then_some("a");
    for validation in [recording.validated(), recording.validated_with(&rows, &[])] {
        let score = validation.replays_against_truth(&right, labels);
        assert!(score.is_right(), "{score}");
        assert_eq!((score.right, score.without_number), (3, 0));
        // Another capture, another launch, and one that never ran.
        let others = [
            truth(4, 1, 1, "b"),
            truth(5, 1, 1, "a"),
            truth(9, 1, 1, "a"),
        ];
        let score = validation.replays_against_truth(&others, labels);
        assert_eq!((score.right, score.wrong, score.lost), (0, 2, 1), "{score}");
        assert_eq!(score.misses, others);
    }
    let (mut recording, graphs) = built();
    graphs.launch(&mut recording, &launch(4, 5_000), 9, &[node(9, 1)]);
    let older = TruthReplay {
        node: node(9, 1),
        ..truth(4, 1, 1, "a")
    };
    let score = recording
        .ended()
        .validated()
        .replays_against_truth(&[older], labels);
    assert_eq!(score.unknown.get("before_session"), Some(&1));
    assert_eq!((score.without_number, score.wrong), (1, 0));
    assert!(!score.is_right(), "nothing is known");
}
