//! Built without the feature `record`, or for another system, the source exists and does nothing.
#![cfg(not(all(target_os = "linux", feature = "record")))]

use std::time::Duration;

use lineage_core::source::{EvidenceSource, SourceContext, Tier};
use lineage_cupti::{Cupti, ExternalKind, RecordedCalls};

fn clock() -> u64 {
    1
}

#[test]
fn and_it_says_why() {
    let mut source = Cupti::new()
        .external_kind(ExternalKind::Custom1)
        .recorded_calls(RecordedCalls::All)
        .buffer_bytes(1)
        .buffer_limit(1)
        .library("libcupti.so");
    let answer = source.start(SourceContext::new(clock, Tier::Correlate));
    let why = answer.expect_err("nothing is recorded").to_string();
    let expected = if cfg!(target_os = "linux") {
        "no device evidence: recording is compiled out"
    } else {
        "no device evidence: not supported on this platform"
    };
    assert!(why.starts_with(expected), "{why}");
    source.flush();
    source.drain(&mut |observation| panic!("{observation:?}"));
    source.stop(Duration::from_secs(1), &mut |observation| {
        panic!("{observation:?}")
    });
}
