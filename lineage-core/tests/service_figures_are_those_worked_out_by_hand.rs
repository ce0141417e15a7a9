//! Requests, batches and devices whose figures are plain from the numbers written here.

use std::sync::Arc;

use lineage_core::id::{Attribution, CorrelationId, HostNanos, LaunchEpoch, ScopeToken, ThreadKey};
use lineage_core::observation::{
    ApiDomain, ApiId, ApiRecord, Declared, Event, LinkKind, Linked, Observation, Operation,
    OperationsDue, Scope,
};
use lineage_core::row::{Binding, Row};
use lineage_core::service::{Collectives, Devices, Objective, TokenOptions, Tokens};

#[path = "common/rows.rs"]
mod rows;

const THREAD: ThreadKey = ThreadKey {
    tid: 1,
    generation: 1,
};

fn epoch(id: u64, version: u32) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, version).expect("in range")
}

fn declared(id: u64, at: u64) -> Observation {
    Observation::live(Declared {
        epoch: epoch(id, 1),
        thread: THREAD,
        task: None,
        at: HostNanos(at),
        name: Arc::from("request"),
        site: None,
    })
}

fn linked(id: u64, from: u64, kind: LinkKind) -> Observation {
    Observation::live(Linked {
        epoch: epoch(id, 1),
        from: epoch(from, 1),
        kind,
        at: HostNanos(0),
    })
}

fn row(binding: Binding, device: u32, name: &str, start: u64, end: u64) -> Row {
    let operation = Operation {
        name: Some(Arc::from(name)),
        ..rows::kernel(device, start, end)
    };
    Row {
        operation: Some(operation),
        ..rows::row(binding)
    }
}

fn ran(id: u64, version: u32, end: u64) -> Row {
    row(Binding::Bound(epoch(id, version)), 0, "gemv", end - 1, end)
}

#[test]
fn tokens_are_the_steps_of_the_batches_that_a_request_is_in() {
    let options = TokenOptions::default();
    let mut tokens = Tokens::new(options);
    // Requests 1 and 2 are in batch 10 together; 2 goes on alone in batch 11, whose ids run out:
    // it continues as 12. Request 3 is in no batch and steps on its own; request 4 does nothing.
    for observation in [
        declared(1, 100),
        declared(2, 200),
        declared(3, 300),
        declared(4, 400),
        declared(10, 500),
        declared(11, 500),
        declared(12, 500),
        declared(20, 500),
        linked(10, 1, LinkKind::Merge),
        linked(10, 2, LinkKind::Merge),
        linked(11, 2, LinkKind::Merge),
        linked(12, 11, LinkKind::Continues),
        // A part of batch 10's work: no step of its own.
        linked(20, 10, LinkKind::Fork),
    ] {
        tokens.observe(&observation);
    }
    for row in [
        // Reading the prompt is no token.
        ran(1, 1, 600),
        // Two operations of one step: the later end counts.
        ran(10, 1, 1_000),
        ran(10, 1, 990),
        ran(20, 1, 1_005),
        ran(10, 2, 1_400),
        ran(11, 1, 2_000),
        ran(12, 1, 2_300),
        ran(3, 1, 5_000),
    ] {
        tokens.row(&row);
    }
    let figures = tokens.figures();
    assert_eq!((figures.without_tokens, figures.not_kept), (1, 0));
    let served = figures.served;
    // 1: 1000, 1400. 2: 1000, 1400, 2000, 2300. 3: 5000.
    assert_eq!(
        (served.requests, served.tokens, served.single_token),
        (3, 7, 1)
    );
    // 1000 - 100, 1000 - 200, 5000 - 300.
    assert_eq!(served.first_token.count, 3);
    assert_eq!(served.first_token.p50_ns, Some(900));
    assert_eq!(served.first_token.max_ns, Some(4_700));
    // 400; 400, 600, 300.
    assert_eq!(served.between_tokens.count, 4);
    assert_eq!(served.between_tokens.p50_ns, Some(400));
    assert_eq!(served.between_tokens.max_ns, Some(600));
    // 400 / 1 and 1300 / 3: two requests, however many tokens.
    assert_eq!(served.per_output_token.count, 2);
    assert_eq!(served.per_output_token.p50_ns, Some(400));
    assert_eq!(served.per_output_token.max_ns, Some(433));
    assert_eq!(served.span_ns, 4_900);
    assert!(served.first_token.is_small());
}

#[test]
fn warm_up_is_apart_and_missed_objectives_are_counted() {
    let mut options = TokenOptions::default();
    options.warm_up_ns = 50;
    options.objective = {
        let mut objective = Objective::default();
        objective.first_token_ns = Some(1_000);
        objective
    };
    let mut tokens = Tokens::new(options);
    for (id, at) in [(1, 0), (2, 49), (3, 50), (4, 60)] {
        tokens.observe(&declared(id, at));
    }
    for (id, end) in [(1, 90_000), (2, 80_000), (3, 1_050), (4, 1_061)] {
        tokens.row(&ran(id, 1, end));
    }
    let figures = tokens.figures();
    assert_eq!((figures.warm_up.requests, figures.served.requests), (2, 2));
    let missed = figures.served.first_token_missed.expect("promised");
    // 1050 - 50 is exactly what was promised; 1061 - 60 is one more.
    assert_eq!((missed.count, missed.missed), (2, 1));
    assert_eq!(missed.max_ns, Some(1_001));
    assert_eq!(figures.served.between_tokens_missed, None, "not promised");
    assert_eq!(
        figures.served.per_output_token.count, 0,
        "undefined for one token"
    );
}

#[test]
fn what_cannot_be_kept_is_counted() {
    let mut options = TokenOptions::default();
    options.limit = 2;
    let mut tokens = Tokens::new(options);
    for id in 1..=3 {
        tokens.observe(&declared(id, id));
    }
    tokens.row(&ran(1, 1, 10));
    assert_eq!(tokens.figures().not_kept, 2);
}

fn api(start: u64, end: u64) -> Observation {
    Observation::live(ApiRecord {
        session: 1,
        api: ApiId {
            domain: ApiDomain::Driver,
            cbid: 307,
            name: None,
        },
        correlation: CorrelationId(1),
        tid: 1,
        start: Some(HostNanos(start)),
        end: Some(HostNanos(end)),
        result: 0,
        due: OperationsDue::One,
    })
}

fn scope(entered: u64, exited: u64) -> Observation {
    Observation::live(Event::Scope(Scope {
        thread: THREAD,
        attribution: Attribution::None,
        token: ScopeToken(1),
        entered: HostNanos(entered),
        exited: HostNanos(exited),
        task: None,
        boundary: false,
        pushed: false,
    }))
}

#[test]
fn idle_time_is_told_by_what_the_host_did_in_it() {
    let none = Binding::Lost;
    let mut devices = Devices::default();
    // Device 0: busy 0-100, idle 100-200, busy 200-310 (two that overlap), idle 310-400, busy 400-450.
    for (start, end) in [(0, 100), (200, 300), (250, 310), (400, 450)] {
        devices.row(&row(none, 0, "gemv", start, end));
    }
    devices.row(&row(none, 1, "gemv", 5, 6));
    // Calls: 90-120 covers 20 of the first gap. Scopes: 110-160 covers 50, of which 10 are in the
    // call; 300-320 covers 10 of the second.
    for observation in [api(90, 120), scope(110, 160), scope(300, 320)] {
        devices.observe(&observation);
    }
    let figures = devices.figures();
    assert_eq!(figures.len(), 2);
    let first = figures[0];
    assert_eq!((first.device, first.operations), (0, 4));
    assert_eq!((first.span_ns, first.busy_ns), (450, 260));
    assert_eq!((first.gaps.count, first.gaps.max_ns), (2, Some(100)));
    assert_eq!(first.idle.in_call_ns, 20);
    assert_eq!(first.idle.in_scope_ns, 50);
    assert_eq!(first.idle.unknown_ns, 120);
    assert_eq!(first.idle.total_ns(), first.span_ns - first.busy_ns);
    assert_eq!(first.exposed_host_ns(), 70);
    // 450 / (450 - 70).
    assert!((first.best_speedup().expect("some time is left") - 1.184).abs() < 0.001);
    assert_eq!((figures[1].busy_ns, figures[1].gaps.count), (1, 0));
}

#[test]
fn the_devices_of_a_collective_are_compared_time_by_time() {
    let mut collectives = Collectives::default();
    for (device, starts) in [
        (0, [100, 200, 330]),
        (1, [107, 190, 300]),
        (2, [101, 203, 301]),
    ] {
        for start in starts {
            let name = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
            collectives.row(&row(Binding::Lost, device, name, start, start + 50));
        }
    }
    collectives.row(&row(Binding::Lost, 0, "ncclKernel_Broadcast", 1, 2));
    collectives.row(&row(Binding::Lost, 1, "ncclKernel_Broadcast", 1, 2));
    collectives.row(&row(Binding::Lost, 1, "ncclKernel_Broadcast", 3, 4));
    collectives.row(&row(Binding::Lost, 0, "ncclKernel_SendRecv", 1, 2));
    collectives.row(&row(Binding::Lost, 0, "gemv", 1, 2));
    let figures = collectives.figures();
    assert_eq!(figures.len(), 2, "what one device alone ran is left out");
    let skew = figures[0].skew.expect("equally often");
    // 107-100, 203-190, 330-300.
    assert_eq!(
        (skew.count, skew.p50_ns, skew.max_ns),
        (3, Some(13), Some(30))
    );
    assert_eq!(figures[0].devices.len(), 3);
    assert_eq!(
        figures[1].skew, None,
        "not equally often: nothing is guessed"
    );
}
