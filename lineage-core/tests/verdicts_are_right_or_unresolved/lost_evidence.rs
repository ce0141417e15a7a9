//! What is lost, or contradicts itself, makes the set partial for what it concerns, and for no more.

use lineage_core::observation::{Event, GraphChange, Operation, OperationsDue, StreamKind};
use lineage_core::readiness::Partial;

use crate::single_rules::{
    PLAIN, api, collected, graph, graph_launch, judged, launch, node, stream, synchronised,
};

fn streams() -> impl Iterator<Item = Event> {
    [
        collected(),
        stream(7, StreamKind::NonBlocking),
        stream(8, StreamKind::NonBlocking),
    ]
    .into_iter()
}

/// Which stream a lost operation was in nobody knows: any of them may have waited for it, until
/// something is seen that had itself waited for all before it.
#[test]
fn a_call_without_its_operation_makes_what_follows_partial() {
    let of = judged(
        streams()
            .chain(launch(PLAIN, 1, 100, 7, 120, 200))
            .chain([api(PLAIN, 2, 210, OperationsDue::One)])
            .chain(launch(PLAIN, 3, 230, 8, 250, 300))
            .chain(launch(PLAIN, 4, 310, 8, 330, 400)),
    );
    assert_eq!(of.partial(1), []);
    assert_eq!(of.partial(3), [Partial::RecordsLost]);
    assert_eq!(of.partial(4), []);
}

/// The next launch of a graph waits for all of the one before it, so it is not known for what if a node
/// of that has no end, or no record.
#[test]
fn a_launch_behind_an_incomplete_launch_of_the_same_graph_is_partial() {
    let without_end = |event: Event| match event {
        Event::Operation(of) => Operation { end: None, ..of }.into(),
        other => other,
    };
    let complete = [
        node(2, 21, 120, 200),
        node(2, 24, 120, 900),
        node(2, 23, 210, 300),
    ];
    let mut no_end = complete.clone();
    no_end[1] = without_end(no_end[1].clone());
    let second = |first: Vec<Event>, told: fn(&Event) -> bool| {
        let of = judged(
            streams()
                .chain(graph(true).into_iter().filter(told))
                .chain(graph_launch(2, 100))
                .chain(first)
                .chain(graph_launch(3, 1_000))
                .chain([
                    node(3, 21, 1_100, 1_200),
                    node(3, 24, 1_100, 1_900),
                    node(3, 23, 1_210, 1_300),
                ]),
        );
        of.partial(3)
    };
    assert_eq!(second(complete.to_vec(), |_| true), []);
    assert!(second(no_end.to_vec(), |_| true).contains(&Partial::TimeMissing));
    // Node 24 is lost.
    let lost = vec![complete[0].clone(), complete[2].clone()];
    assert!(second(lost.clone(), |_| true).contains(&Partial::TimeMissing));
    // And that it was cloned into the executable graph was not told either: its original is known.
    let not_24 = |event: &Event| match event {
        Event::Graph(of) => !matches!(of.change, GraphChange::NodeCloned { node: 24, .. }),
        _ => true,
    };
    assert!(second(lost, not_24).contains(&Partial::TimeMissing));
}

/// A thread had waited for a kernel that ended later by the device's clock: the clocks disagree by more
/// than is allowed for, here 0, and no time of that device is held against the host's.
#[test]
fn a_kernel_that_ends_after_it_was_waited_for_puts_the_devices_clock_in_doubt() {
    for (end, expected) in [(229, vec![]), (231, vec![Partial::ClockOff])] {
        let of = judged(
            streams()
                .chain(launch(PLAIN, 1, 100, 7, 120, end))
                // Returns at 230.
                .chain(synchronised(2, 220, Some(7)))
                .chain(launch(PLAIN, 3, 240, 7, 260, 300)),
        );
        assert_eq!(of.partial(3), expected, "{end}");
    }
}

/// The call of the launch before is lost: who waited for its nodes, by the graph, in whichever stream,
/// nobody says. What had ended before something that is known to have held it back is no matter.
#[test]
fn an_operation_without_its_call_puts_in_doubt_what_began_before_it_had_ended() {
    let of = judged(
        streams()
            .chain(graph(true))
            .chain([
                node(2, 21, 120, 200),
                node(2, 24, 120, 900),
                node(2, 23, 210, 300),
            ])
            .chain(graph_launch(3, 150))
            .chain([
                node(3, 21, 910, 1_000),
                node(3, 24, 910, 1_200),
                node(3, 23, 1_010, 1_100),
            ])
            .chain(launch(PLAIN, 4, 160, 7, 1_210, 1_300))
            .chain(launch(PLAIN, 5, 170, 7, 1_310, 1_400)),
    );
    assert!(of.partial(3).contains(&Partial::CallUnknown));
    assert!(!of.partial(5).contains(&Partial::CallUnknown));
}
