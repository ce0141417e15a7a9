//! A capture makes current what was current where it was made: an epoch, detached work, or nothing,
//! whatever is current where it is entered.
#![cfg(feature = "record")]

use lineage_core::{Attribution, Captured, Epoch, Lineage, current, detached, launch};

#[test]
fn also_nothing_and_also_inside_a_launch_boundary() {
    let lineage = Lineage::builder().start().expect("no other session runs");
    let (request, other) = (Epoch::declare("request"), Epoch::declare("other"));
    let id = |epoch: &Epoch| Attribution::Epoch(epoch.id().expect("recording is on"));

    let nothing = Captured::current();
    let of_request = request.run(Captured::current);
    let in_boundary_of_request = request.launch(Captured::current);
    let in_boundary_of_nothing = launch(Captured::current);
    let (warm_up, reason) = detached("warm-up", || (Captured::current(), current()));
    assert!(matches!(reason, Attribution::Detached(_)));

    let cases = [
        (&nothing, Attribution::None),
        (&Captured::nothing(), Attribution::None),
        (&Captured::of(&Epoch::inert()), Attribution::None),
        (&Captured::of(&request), id(&request)),
        (&in_boundary_of_nothing, Attribution::None),
        (&of_request, id(&request)),
        (&in_boundary_of_request, id(&request)),
        (&warm_up, reason),
    ];
    for (captured, expected) in cases {
        assert_eq!(captured.run(current), expected);
        other.run(|| {
            assert_eq!(captured.run(current), expected);
            assert_eq!(current(), id(&other));
        });
        detached("weights", || assert_eq!(captured.run(current), expected));

        // What launches in a boundary has an id on CUPTI's stack, and "nothing" has one too.
        let in_boundary = match expected {
            Attribution::None => Attribution::BoundaryWithoutEpoch,
            expected => expected,
        };
        other.launch(|| {
            assert_eq!(captured.run(current), in_boundary);
            assert_eq!(current(), id(&other));
        });
        assert_eq!(current(), Attribution::None);
    }

    let late = request.run(Captured::current);
    assert_eq!(late.epoch().id(), request.id());
    drop(lineage);
}
