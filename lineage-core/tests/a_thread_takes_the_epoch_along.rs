//! `lineage_core::thread` starts threads as `std` does, and what was current goes along.
#![cfg(feature = "record")]

mod common;

use std::thread::Builder;

use lineage_core::observation::{CarrierKind, Received, Sent};
use lineage_core::thread::{BuilderExt as _, ScopeExt as _};
use lineage_core::{Attribution, Epoch, LaunchEpoch, Report, current};

fn handoffs(report: &Report) -> (Vec<&Sent>, Vec<&Received>) {
    (events!(report, Sent), events!(report, Received))
}

/// Notes what is current when it is dropped.
struct Notes(std::sync::mpsc::Sender<Option<LaunchEpoch>>);

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = self.0.send(current().epoch());
    }
}

#[test]
fn each_way_to_start_one_is_a_handoff_of_the_current_epoch() {
    let lineage = common::session().start().expect("a session");
    let request = Epoch::declare("request");
    let id = request.id();
    assert!(id.is_some());

    let mut lines = Vec::new();
    request.run(|| {
        let (thread, line) = (lineage_core::thread::spawn(current), line!());
        assert_eq!(thread.join().expect("no panic").epoch(), id);
        lines.push(line);

        let named = Builder::new().name("decode".into());
        let (thread, line) = (
            named.spawn_carried(|| (std::thread::current().name().map(String::from), current())),
            line!() - 1,
        );
        let (name, seen) = thread.expect("a thread").join().expect("no panic");
        assert_eq!((name.as_deref(), seen.epoch()), (Some("decode"), id));
        lines.push(line);

        let data = [1, 2, 3];
        std::thread::scope(|scope| {
            let (thread, line) = (
                scope.spawn_carried(|| (data.iter().sum::<i32>(), current())),
                line!() - 1,
            );
            let (sum, seen) = thread.join().expect("no panic");
            assert_eq!((sum, seen.epoch()), (6, id));
            lines.push(line);

            let (thread, line) = (
                Builder::new().spawn_scoped_carried(scope, || (data.len(), current())),
                line!() - 1,
            );
            let (length, seen) = thread.expect("a thread").join().expect("no panic");
            assert_eq!((length, seen.epoch()), (3, id));
            lines.push(line);
        });
    });
    assert_eq!(current(), Attribution::None);

    // A panic leaves nothing, and what the closure held is dropped in its epoch.
    let (dropped, seen) = std::sync::mpsc::channel();
    let notes = Notes(dropped);
    let panics = request.run(|| {
        lineage_core::thread::spawn(move || {
            let _held = notes;
            panic!("on purpose")
        })
    });
    let panics: std::thread::JoinHandle<()> = panics;
    assert!(panics.join().is_err());
    assert_eq!(seen.recv(), Ok(id));

    // Without an epoch they are std's, and nothing is recorded of it.
    let plain = lineage_core::thread::spawn(current);
    assert_eq!(plain.join().expect("no panic"), Attribution::None);
    drop(request);
    let report = common::end(lineage);

    let (sent, received) = handoffs(&report);
    assert_eq!((sent.len(), received.len()), (5, 5));
    assert_eq!(events!(report, Abandoned).len(), 0);
    assert_eq!(events!(report, Misuse).len(), 0);
    for sent in &sent {
        assert_eq!(Some(sent.handoff.epoch), id);
        assert_eq!(sent.handoff.carrier, CarrierKind::Thread);
        let arrived = received.iter().find(|it| it.handoff == sent.handoff);
        assert_ne!(arrived.expect("it arrived").thread, sent.thread);
    }
    // The place is the user's line and not one of this crate's.
    let sites: Vec<_> = sent.iter().filter_map(|it| it.site.as_ref()).collect();
    assert_eq!(sites.len(), 5);
    for (site, line) in sites.iter().zip(&lines) {
        let here = "a_thread_takes_the_epoch_along.rs";
        assert!(site.file.ends_with(here), "{site}");
        assert_eq!(site.line, *line, "{site}");
    }
}
