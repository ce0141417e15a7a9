//! Each scope removes its own entry, CUPTI's stack stays a stack, and misuse is told.

mod common;

use std::sync::Mutex;

use lineage_core::hook::{BoundaryHook, PushToken, set_boundary_hook};
use lineage_core::id::PackedEpoch;
use lineage_core::observation::MisuseKind;
use lineage_core::{Attribution, Epoch, current, detached, raw};

/// A stack as CUPTI keeps one per thread; the test runs on one.
struct Stack(Mutex<Vec<PackedEpoch>>);

impl BoundaryHook for Stack {
    fn push(&self, id: PackedEpoch) -> PushToken {
        self.0.lock().expect("one thread").push(id);
        PushToken {
            session: 1,
            pushed: true,
        }
    }

    fn pop(&self, token: PushToken, id: PackedEpoch) {
        assert_eq!(
            token,
            PushToken {
                session: 1,
                pushed: true
            }
        );
        assert_eq!(
            self.0.lock().expect("one thread").pop(),
            Some(id),
            "popped from the top"
        );
    }
}

static STACK: Stack = Stack(Mutex::new(Vec::new()));

fn top() -> Attribution {
    STACK
        .0
        .lock()
        .expect("one thread")
        .last()
        .map_or(Attribution::None, |id| id.unpack())
}

fn depth() -> usize {
    STACK.0.lock().expect("one thread").len()
}

#[test]
fn scopes_may_end_in_any_order() {
    set_boundary_hook(&STACK).expect("the first hook");
    assert!(set_boundary_hook(&STACK).is_err());
    let lineage = common::session().start().expect("a session");
    let (a, b) = (Epoch::declare("a"), Epoch::declare("b"));
    let (of_a, of_b) = [&a, &b]
        .map(|epoch| Attribution::Epoch(epoch.id().expect("live")))
        .into();

    // A scope outside a boundary pushes nothing.
    a.run(|| assert_eq!((current(), depth()), (of_a, 0)));

    // Boundaries that end out of order: the later one stays current and on top.
    let (first, second) = (a.enter_for_launch(), b.enter_for_launch());
    assert_eq!((current(), top(), depth()), (of_b, of_b, 2));
    drop(first);
    assert_eq!((current(), top(), depth()), (of_b, of_b, 2));
    drop(second);
    assert_eq!(
        (current(), top(), depth()),
        (Attribution::None, Attribution::None, 0)
    );

    // A > B > A: the inner A is current, and each end brings back what was before.
    a.run(|| {
        b.run(|| {
            a.run(|| assert_eq!(current(), of_a));
            assert_eq!(current(), of_b);
        });
        assert_eq!(current(), of_a);
    });

    // Inside a boundary everything else is pushed as well; the same id twice in a row is not.
    a.launch(|| {
        a.launch(|| assert_eq!((top(), depth()), (of_a, 1)));
        b.run(|| assert_eq!((current(), top(), depth()), (of_b, of_b, 2)));
        detached("weights", || {
            assert!(matches!((current(), top()), (Attribution::Detached(x), Attribution::Detached(y)) if x == y));
        });
        assert_eq!((current(), top(), depth()), (of_a, of_a, 1));
    });
    Epoch::inert().launch(|| {
        assert_eq!(current(), Attribution::BoundaryWithoutEpoch);
        assert_eq!(top(), Attribution::BoundaryWithoutEpoch);
    });
    a.run(|| lineage_core::launch(|| assert_eq!((current(), top()), (of_a, of_a))));

    // A panic inside unwinds through the scope.
    let panicked = std::panic::catch_unwind(|| a.launch(|| std::panic::panic_any("on purpose")));
    assert!(panicked.is_err());
    assert_eq!((current(), depth()), (Attribution::None, 0));

    // Ended twice, or on a thread where it is not open: told, and nothing else happens.
    let entered = raw::enter(&a);
    raw::exit(entered);
    raw::exit(entered);
    let entered = raw::enter(&b);
    std::thread::scope(|scope| {
        scope.spawn(|| raw::exit(entered));
    });
    assert_eq!(current(), of_b);
    raw::exit(entered);
    assert_eq!((current(), depth()), (Attribution::None, 0));

    // Leaked on a thread that ends. (Joined, since a scope does not wait for thread-locals.)
    let of_the_thread = a.clone();
    let leaking = std::thread::spawn(move || std::mem::forget(of_the_thread.enter_for_launch()));
    leaking.join().expect("no panic");
    drop((a, b));
    let report = common::end(lineage);
    let misuses = events!(report, Misuse);
    let times = |kind| misuses.iter().filter(|it| it.kind == kind).count();
    assert_eq!(misuses.len(), 3);
    assert_eq!(
        (
            times(MisuseKind::ScopeUnbalanced),
            times(MisuseKind::ScopeLeaked)
        ),
        (2, 1)
    );
    let scopes = events!(report, Scope);
    let tokens: Vec<u64> = scopes.iter().map(|it| it.token.0).collect();
    let mut sorted = tokens.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), tokens.len(), "no token is used twice");
    assert!(
        scopes
            .iter()
            .filter(|it| it.boundary && it.token.0 != 0)
            .count()
            >= 6
    );
}
