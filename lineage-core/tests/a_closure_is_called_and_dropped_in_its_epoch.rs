//! A callback works for the epoch that was current where it was made, whoever calls it, and what it
//! holds is dropped in that epoch whether it was called or not.
#![cfg(feature = "record")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};

use lineage_core::carrier::{carried_fn, carried_fn_mut};
use lineage_core::observation::CarrierKind;
use lineage_core::{Attribution, Epoch, LaunchEpoch, current};

/// Notes what is current when it is dropped.
struct Notes(Sender<Option<LaunchEpoch>>);

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = self.0.send(current().epoch());
    }
}

#[test]
fn a_closure_is_called_and_dropped_in_its_epoch() {
    let lineage = common::session().start().expect("a session");
    let (request, other) = (Epoch::declare("request"), Epoch::declare("other"));
    let (id, other_id) = (request.id(), other.id());
    let (dropped, seen_at_drop) = mpsc::channel();
    let notes = || Notes(dropped.clone());

    // Called once, on a thread in the midst of another's work, as a host function may be.
    let held = notes();
    let (done, line) = request.run(|| {
        let done = carried_fn(move || {
            let _held = &held;
            current().epoch()
        });
        (done, line!() - 4)
    });
    let caller = std::thread::spawn(move || {
        other.run(|| {
            let seen = done();
            (seen, current().epoch())
        })
    });
    assert_eq!(caller.join().expect("no panic"), (id, other_id));
    assert_eq!(seen_at_drop.recv(), Ok(id));

    // Never called.
    let held = notes();
    drop(request.run(|| {
        carried_fn(move || {
            let _held = &held;
        })
    }));
    assert_eq!(seen_at_drop.recv(), Ok(id));

    // Panicking.
    let held = notes();
    let panics = request.run(|| {
        carried_fn(move || {
            let _held = &held;
            panic!("on purpose")
        })
    });
    let panicked: std::thread::Result<()> = catch_unwind(AssertUnwindSafe(panics));
    assert!(panicked.is_err());
    assert_eq!(current(), Attribution::None);
    assert_eq!(seen_at_drop.recv(), Ok(id));

    // Called again and again, twice here and twice elsewhere.
    let held = notes();
    let mut calls = 0;
    let mut progress = request.run(|| {
        carried_fn_mut(move || {
            let _held = &held;
            calls += 1;
            (calls, current().epoch())
        })
    });
    assert_eq!([progress(), progress()], [(1, id), (2, id)]);
    let elsewhere = std::thread::spawn(move || [progress(), progress()]);
    assert_eq!(elsewhere.join().expect("no panic"), [(3, id), (4, id)]);
    assert_eq!(seen_at_drop.recv(), Ok(id));

    // Made without an epoch it is a closure.
    assert_eq!(carried_fn(current)(), Attribution::None);
    assert_eq!(carried_fn_mut(current)(), Attribution::None);
    drop(request);
    let report = common::end(lineage);

    let sent = events!(report, Sent);
    let (received, abandoned) = (events!(report, Received), events!(report, Abandoned));
    assert!(
        sent.iter()
            .all(|it| it.handoff.carrier == CarrierKind::Callback && Some(it.handoff.epoch) == id)
    );
    let site = sent[0].site.as_ref().expect("it is known");
    assert!(site.file.ends_with("dropped_in_its_epoch.rs"), "{site}");
    assert_eq!(site.line, line);
    // Of the four closures one was never called. The last went to a second thread by itself: one
    // more.
    assert_eq!((sent.len(), received.len(), abandoned.len()), (5, 4, 1));
    let again: Vec<_> = received.iter().skip(2).map(|it| it.handoff.id).collect();
    assert_eq!(again.len(), 2);
    assert_eq!(events!(report, Misuse).len(), 0);
}
