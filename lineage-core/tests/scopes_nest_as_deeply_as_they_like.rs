//! A thread has room for a few open scopes of its own, and a list for those that lie deeper: nothing
//! but the cost tells which is which, in whatever order they end.

mod common;

use lineage_core::observation::MisuseKind;
use lineage_core::{Epoch, current, raw};

/// More than a thread has room for without its list.
const DEEP: usize = 40;

#[test]
fn scopes_nest_as_deeply_as_they_like() {
    let lineage = common::session().start().expect("a session");
    let epochs: Vec<Epoch> = (0..DEEP).map(|_| Epoch::declare("nested")).collect();
    let id = |at: usize| epochs[at].id();
    let current = || current().epoch();

    for launches in [false, true] {
        if launches {
            epochs[0].launch(|| ());
        }
        // In order.
        let scopes: Vec<_> = epochs.iter().map(raw::enter).collect();
        for at in (0..DEEP).rev() {
            assert_eq!(current(), id(at), "launches: {launches}");
            assert_eq!(Epoch::current().id(), id(at));
            raw::exit(scopes[at]);
        }
        assert_eq!(current(), None);

        // From the outermost to the innermost: the innermost stays current.
        let scopes: Vec<_> = epochs.iter().map(raw::enter).collect();
        for scope in scopes {
            assert_eq!(current(), id(DEEP - 1));
            raw::exit(scope);
        }
        assert_eq!(current(), None);

        // Every second one, on both sides of the room's end, and then the rest from the inside.
        let scopes: Vec<_> = epochs.iter().map(raw::enter).collect();
        (0..DEEP).step_by(2).for_each(|at| raw::exit(scopes[at]));
        for at in (1..DEEP).step_by(2).rev() {
            assert_eq!(current(), id(at));
            raw::exit(scopes[at]);
        }
        assert_eq!(current(), None);
    }

    // What is still open, at whatever depth, when its thread ends was leaked.
    let of_the_thread = epochs.clone();
    let leaking = std::thread::spawn(move || {
        let scopes: Vec<_> = of_the_thread.iter().map(raw::enter).collect();
        raw::exit(scopes[1]);
        raw::exit(scopes[DEEP - 2]);
    });
    leaking.join().expect("no panic");

    drop(epochs);
    let report = common::end(lineage);
    let misuses = events!(report, Misuse);
    assert!(
        misuses
            .iter()
            .all(|it| it.kind == MisuseKind::ScopeLeaked && it.attribution.epoch().is_some()),
        "{misuses:?}"
    );
    assert_eq!(misuses.len(), DEEP - 2);
    // Each scope after the first launch, and the boundary itself.
    assert_eq!(events!(report, Scope).len(), 3 * DEEP + 1);
}
