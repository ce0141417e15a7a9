//! Every step of an epoch's life leaves the observation that the contract names.

mod common;

use lineage_core::carrier::Carrier;
use lineage_core::id::{EpochVersion, W3cParent};
use lineage_core::observation::{CarrierKind, LinkKind, Mark, RetiredAs};
use lineage_core::{Attribution, Epoch, HasEpoch, current, detached};

#[test]
fn what_is_carried_is_recorded() {
    let lineage = common::session().start().expect("a session");
    let request = Epoch::declare("generate");
    let parent = W3cParent {
        trace_id: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321,
        span_id: 77,
        flags: 1,
    };
    assert!(request.set_parent(parent));
    assert!(
        !request.set_parent(W3cParent {
            span_id: 78,
            ..parent
        }),
        "the first parent stays"
    );
    let untrusted = W3cParent {
        span_id: 79,
        ..parent
    };
    request.link_span(untrusted);
    assert_eq!(request.parent(), Some(parent), "a link is nobody's parent");
    let id = request.id().expect("live");

    // Over a thread, in a carrier.
    let carrier = Carrier::new(&request, CarrierKind::Thread);
    assert_eq!(carrier.epoch(), Some(id));
    let line = line!() - 2;
    let elsewhere = std::thread::Builder::new()
        .name("engine".into())
        .spawn(move || {
            assert_eq!(current(), Attribution::None);
            let epoch = carrier.open();
            let batch = Epoch::merge([&epoch]);
            let step = batch.step();
            step.mark(Mark::Ready);
            step.launch(|| assert_eq!(current(), Attribution::Epoch(step.id().expect("live"))));
            detached("warm-up", || {
                assert!(matches!(current(), Attribution::Detached(_)))
            });
            assert_eq!(current(), Attribution::None);
            batch.id().expect("live")
        })
        .expect("a thread");
    let batch = elsewhere.join().expect("no panic");
    drop(Carrier::new(&request, CarrierKind::Envelope));
    Carrier::new(&request, CarrierKind::Envelope).forget();
    request.cancel();
    drop(request);
    let report = common::end(lineage);

    let declared = events!(report, Declared);
    assert_eq!(
        declared
            .iter()
            .map(|it| (it.epoch, &*it.name))
            .collect::<Vec<_>>(),
        [(id, "generate"), (batch, "batch")]
    );
    let parents = events!(report, Parented);
    assert_eq!(
        parents
            .iter()
            .map(|it| (it.epoch, it.parent))
            .collect::<Vec<_>>(),
        [(id, parent)]
    );
    let span_links = events!(report, SpanLinked);
    assert_eq!(
        span_links
            .iter()
            .map(|it| (it.epoch, it.span))
            .collect::<Vec<_>>(),
        [(id, untrusted)]
    );
    let links = events!(report, Linked);
    assert_eq!(
        links
            .iter()
            .map(|it| (it.epoch, it.from, it.kind))
            .collect::<Vec<_>>(),
        [(batch, id, LinkKind::Merge)]
    );
    let stepped = events!(report, Stepped);
    assert_eq!(
        (stepped.len(), stepped[0].epoch.id, stepped[0].epoch.version),
        (1, batch.id, EpochVersion::new(2).expect("in range"))
    );

    let (sent, received, abandoned) = (
        events!(report, Sent),
        events!(report, Received),
        events!(report, Abandoned),
    );
    assert_eq!((sent.len(), received.len(), abandoned.len()), (3, 1, 1));
    assert_eq!(sent[0].site.as_ref().map(|site| site.line), Some(line));
    assert_eq!(received[0].handoff, sent[0].handoff);
    assert_ne!(received[0].thread, sent[0].thread);
    assert_eq!(abandoned[0].handoff, sent[1].handoff);
    let engine = events!(report, ThreadStarted)
        .into_iter()
        .find(|it| it.thread == received[0].thread);
    assert_eq!(engine.and_then(|it| it.name.as_deref()), Some("engine"));
    assert_eq!(
        events!(report, ThreadEnded)
            .iter()
            .filter(|it| it.thread == received[0].thread)
            .count(),
        1
    );

    // The engine's thread launched, so it has scope records; this thread never did.
    let scopes = events!(report, Scope);
    let seen: Vec<_> = scopes
        .iter()
        .map(|it| (it.attribution, it.boundary))
        .collect();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[0], (Attribution::Epoch(stepped[0].epoch), true));
    assert!(matches!(seen[1], (Attribution::Detached(_), false)));
    assert!(
        scopes
            .iter()
            .all(|it| it.thread == received[0].thread && it.entered <= it.exited)
    );
    assert_eq!(
        events!(report, Named)
            .iter()
            .filter(|it| &*it.name == "warm-up")
            .count(),
        1
    );
    let retired = events!(report, Retired);
    let mut ends: Vec<_> = retired.iter().map(|it| (it.epoch.id, it.how)).collect();
    // The rings of two threads are read in turns, so either may be first.
    ends.sort_by_key(|(id, _)| *id);
    assert_eq!(
        ends,
        [(id.id, RetiredAs::Cancelled), (batch.id, RetiredAs::Done)]
    );
}
