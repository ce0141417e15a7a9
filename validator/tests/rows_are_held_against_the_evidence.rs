//! A session's own rows: those that agree, and every way in which one may not.

mod recording;

use lineage_core::evidence::{Evidence, TimeSource, Why};
use lineage_core::fault::FaultCode::{self, *};
use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_core::row::*;
use lineage_validator::Validation;
use recording::*;

fn row(launch: &Launch, binding: Binding) -> Row {
    let unknown = Evidence::Unknown {
        why: Why::NotCollected,
    };
    let observed = |ns| Evidence::Observed {
        at: at(ns),
        source: TimeSource::CuptiApi,
    };
    Row {
        process: ProcessOrdinal(0),
        call: Some(RowCall {
            session: 1,
            correlation: UnwrappedCorrelationId(u64::from(launch.correlation)),
            api: api(ApiDomain::Driver, launch.function),
            tid: launch.tid,
            task: None,
            result: launch.result,
            in_boundary: Some(launch.in_boundary),
        }),
        operation: launch.operations.first().cloned(),
        graph: None,
        binding,
        sources: JoinSources::default(),
        stages: Stages {
            declared: unknown,
            ready: unknown,
            scope_enter: unknown,
            api_enter: observed(launch.called - 5),
            api_exit: unknown,
            queued: unknown,
            submitted: unknown,
            start: unknown,
            end: unknown,
        },
        faults: Vec::new(),
        after_retirement: false,
        supersedes: false,
    }
}

fn launches() -> Vec<Launch> {
    (1..=3)
        .map(|number| Launch::of(epoch(1), 10, number, u64::from(number) * 1_000))
        .collect()
}

fn rows() -> Vec<Row> {
    launches()
        .iter()
        .map(|launch| row(launch, Binding::Bound(epoch(1))))
        .collect()
}

fn validated(rows: &[Row]) -> Validation {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 200);
    recording.ended().validated_with(rows, &[])
}

#[track_caller]
fn only_of_rows(rows: &[Row], code: FaultCode, count: u64) -> Validation {
    let validation = validated(rows);
    let codes: Vec<_> = validation.fault_counts.clone().into_iter().collect();
    assert_eq!(codes, [(code, count)], "{validation}");
    validation
}

#[test]
fn rows_that_say_the_same_agree() {
    let validation = validated(&rows());
    assert!(validation.is_sound(), "{validation}");
    let counts = validation.counts.rows.expect("rows were given");
    assert_eq!((counts.given, counts.agreeing), (3, 3));
    assert_eq!((counts.differing, counts.extra, counts.missing), (0, 0, 0));
}

#[test]
fn a_row_bound_to_another_epoch_than_its_sources_name() {
    let mut rows = rows();
    rows[1].binding = Binding::Bound(epoch(2));
    let validation = only_of_rows(&rows, W03, 1);
    let finding = validation.faults[0].to_string();
    assert!(
        finding.contains("bound to epoch 2.1, and its sources name 1.1"),
        "{finding}"
    );
    assert_eq!(validation.counts.wrong, 1);
}

#[test]
fn a_row_that_lost_its_epoch() {
    for binding in [
        Binding::Lost,
        Binding::Unattributed(Unattributed::ForeignThread),
    ] {
        let mut rows = rows();
        rows[1].binding = binding;
        only_of_rows(&rows, L01, 1);
    }
}

#[test]
fn a_row_bound_to_what_no_source_names() {
    let mut recording = Recording::sound();
    let helper = Launch::of_none(77, 4, 4_000);
    recording.launch(&helper);
    let mut all = rows();
    all.push(row(&helper, Binding::Bound(epoch(1))));
    let validation = recording.clone().ended().validated_with(&all, &[]);
    assert_eq!(
        validation.fault_counts.into_iter().collect::<Vec<_>>(),
        [(W03, 1)]
    );

    // Why it belongs to nobody may be said in other words.
    all[3].binding = Binding::Unattributed(Unattributed::BeforeFirstDeclaration);
    let validation = recording.ended().validated_with(&all, &[]);
    assert!(validation.is_sound(), "{validation}");
    assert_eq!(validation.counts.rows.expect("given").other_reason, 1);
}

#[test]
fn a_row_must_not_decide_a_dispute() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 200);
    let disputed = Launch {
        callback: Some(Attribution::Epoch(epoch(2))),
        ..Launch::of(epoch(1), 10, 4, 4_000)
    };
    recording.launch(&disputed);
    let recording = recording.ended();
    for (binding, count) in [
        (Binding::Disputed(epoch(1), epoch(2)), 1), // the dispute itself
        (Binding::Bound(epoch(1)), 2),
    ] {
        let mut all = rows();
        all.push(row(&disputed, binding));
        let validation = recording.validated_with(&all, &[]);
        assert_eq!(
            validation.fault_counts.into_iter().collect::<Vec<_>>(),
            [(W03, count)]
        );
    }
}

#[test]
fn a_row_that_gives_an_operation_to_another_call_or_to_none() {
    let mut other = rows();
    other[1].call.as_mut().expect("has one").correlation = UnwrappedCorrelationId(3);
    only_of_rows(&other, W04, 1);

    let mut none = rows();
    none[1].call = None;
    only_of_rows(&none, L02, 1);
}

#[test]
fn a_row_that_does_not_see_its_operation() {
    let mut rows = rows();
    rows[1].operation = None;
    // The call's row lost the operation, and the operation has no row.
    let validation = validated(&rows);
    let codes: Vec<_> = validation.fault_counts.into_iter().collect();
    assert_eq!(codes, [(L03, 1), (L07, 1)]);
}

#[test]
fn a_later_row_takes_the_place_of_an_earlier_one() {
    let mut all = rows();
    let mut early = all[1].clone();
    early.operation = None;
    early.faults = vec![L03];
    let mut orphan = all[2].clone();
    orphan.call = None;
    orphan.binding = Binding::Lost;
    orphan.faults = vec![L02];
    all[1].supersedes = true;
    all[2].supersedes = true;
    all.insert(0, early);
    all.insert(0, orphan);
    let validation = validated(&all);
    assert!(validation.is_sound(), "{validation}");
    let counts = validation.counts.rows.expect("rows were given");
    assert_eq!((counts.superseded, counts.agreeing), (2, 3));
}

#[test]
fn rows_that_are_missing_or_there_twice() {
    let mut rows = rows();
    let missing = rows.pop();
    let validation = only_of_rows(&rows, L07, 1);
    assert_eq!(validation.counts.rows.expect("given").missing, 1);

    rows.extend([missing.clone(), missing].into_iter().flatten());
    let validation = only_of_rows(&rows, W04, 1);
    assert_eq!(validation.counts.rows.expect("given").extra, 1);
}

#[test]
fn rows_may_be_missing_while_the_session_runs() {
    let validation = Recording::sound().validated_with(&rows()[..1], &[]);
    assert!(validation.is_sound(), "{validation}");
}

#[test]
fn what_only_the_session_raised_is_said_and_unsound() {
    let mut rows = rows();
    rows[0].faults = vec![W07];
    let loose = LooseFault {
        process: ProcessOrdinal(0),
        code: L05,
        epoch: Some(epoch(1)),
        at: None,
        count: 2,
        detail: String::new(),
    };
    let validation = Recording::sound().ended().validated_with(&rows, &[loose]);
    assert_eq!(validation.fault_count(), 0);
    assert!(!validation.is_sound());
    let only: Vec<_> = validation.raised_by_session_only().collect();
    assert_eq!(only, [(L05, 2), (W07, 1)]);
    assert!(validation.to_string().contains("one of the two is wrong"));
}
