//! A span with the field `launch_epoch` declares an epoch; other spans take over the epoch that is
//! current where they are made, or that of the parent they name.
#![cfg(feature = "record")]

mod common;

use common::{current, recorded};
use lineage_core::Epoch;
use lineage_core::observation::LinkKind;
use lineage_tokio::{LineageExt as _, SpanExt as _};
use tracing::{Span, info_span};
use tracing_subscriber::prelude::*;

fn epoch_of(span: &Span) -> Option<lineage_core::id::LaunchEpoch> {
    span.launch_epoch().expect("the layer is there")
}

#[test]
fn only_the_field_declares_and_it_does_so_once_under_the_name_and_place_of_the_span() {
    let (declared, report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let plain = info_span!("plain", other = 1);
            assert_eq!(epoch_of(&plain), None);
            let line = line!() + 1;
            let request = info_span!("request", other = 1, launch_epoch = tracing::field::Empty);
            let epoch = epoch_of(&request).expect("it declares");
            for _ in 0..3 {
                request.in_scope(|| assert_eq!(current(), Some(epoch)));
                assert_eq!(current(), None);
            }
            (epoch, line)
        })
    });
    let (epoch, line) = declared;
    assert_eq!(report.declared().len(), 1);
    let declaration = report.declaration(epoch);
    assert_eq!(&*declaration.name, "request");
    let site = declaration
        .site
        .as_ref()
        .expect("the span's call site is known");
    assert!(
        site.file
            .ends_with("a_span_with_the_field_declares_and_its_children_inherit.rs"),
        "{site}"
    );
    assert_eq!(site.line, line);
    assert!(report.retired(epoch).is_some(), "the span is closed");
}

#[test]
fn two_spans_of_one_call_site_are_two_epochs() {
    let ((first, second), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let make = || info_span!("request", launch_epoch = tracing::field::Empty);
            let (first, second) = (make(), make());
            (epoch_of(&first), epoch_of(&second))
        })
    });
    assert_ne!(first.expect("declared").id, second.expect("declared").id);
    assert_eq!(report.declared().len(), 2);
    assert_eq!(report.links(), []);
}

#[test]
fn a_child_inherits_and_declares_nothing() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let epoch = epoch_of(&request);
            let child = request.in_scope(|| info_span!("child"));
            let grandchild = child.in_scope(|| info_span!("grandchild"));
            assert_eq!((epoch_of(&child), epoch_of(&grandchild)), (epoch, epoch));
            // On a thread where nothing else is current.
            let far = std::thread::spawn(move || grandchild.in_scope(current));
            assert_eq!(far.join().expect("no panic"), epoch);
        });
    });
    assert_eq!(report.declared().len(), 1);
}

#[test]
fn a_named_parent_counts_and_what_is_current_does_not() {
    let ((fork, one), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let one = info_span!("one", launch_epoch = tracing::field::Empty);
            let other = info_span!("other", launch_epoch = tracing::field::Empty);
            let (child, root, declares) = other.in_scope(|| {
                (
                    info_span!(parent: &one, "child"),
                    info_span!(parent: None, "root"),
                    info_span!(parent: &one, "declares", launch_epoch = tracing::field::Empty),
                )
            });
            assert_eq!(epoch_of(&child), epoch_of(&one));
            assert_eq!(epoch_of(&root), None);
            let fork = epoch_of(&declares).expect("it declares");
            // A span without an epoch leaves what is current.
            other.in_scope(|| root.in_scope(|| assert_eq!(current(), epoch_of(&other))));
            child.in_scope(|| assert_eq!(current(), epoch_of(&one)));
            (fork, epoch_of(&one).expect("it declares"))
        })
    });
    assert_eq!(report.declared().len(), 3);
    assert_eq!(report.links(), [(fork, one, LinkKind::Fork)]);
}

#[test]
fn a_declaration_inside_an_epoch_is_a_fork_of_it() {
    let ((outer, inner, explicit), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let outer = info_span!("outer", launch_epoch = tracing::field::Empty);
            let inner =
                outer.in_scope(|| info_span!("inner", launch_epoch = tracing::field::Empty));
            let explicit =
                info_span!(parent: &outer, "explicit", launch_epoch = tracing::field::Empty);
            [outer, inner, explicit]
                .map(|span| epoch_of(&span).expect("each declares"))
                .into()
        })
    });
    assert_eq!(
        report.links(),
        [
            (inner, outer, LinkKind::Fork),
            (explicit, outer, LinkKind::Fork)
        ]
    );
    assert_eq!(&*report.declaration(inner).name, "inner");
}

#[test]
fn a_child_made_inside_a_batch_works_for_the_batch_and_not_for_the_span_around_it() {
    let ((), _) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let _inside = request.enter();
            let batch = Epoch::merge([request.epoch().expect("the layer is there")]);
            let step = batch.run(|| {
                let step = info_span!("decode_step");
                step.in_scope(|| assert_eq!(current(), batch.id()));
                assert_eq!(current(), batch.id());
                step
            });
            assert_eq!(epoch_of(&step), batch.id());
            assert_eq!(current(), epoch_of(&request));
        });
    });
}
