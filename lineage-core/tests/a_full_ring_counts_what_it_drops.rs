//! A ring that is too small loses records, says where, and says how many.

mod common;

use std::time::Duration;

use lineage_core::Epoch;

#[test]
fn a_full_ring_counts_what_it_drops() {
    const MARKS: u64 = 10_000;
    let builder = common::session()
        .ring_capacity(16)
        .drain_every(Duration::from_millis(50));
    let lineage = builder.start().expect("a session");
    std::thread::spawn(|| {
        let epoch = Epoch::declare("busy");
        for _ in 0..MARKS {
            epoch.mark(lineage_core::observation::Mark::Ready);
        }
    })
    .join()
    .expect("no panic");
    let report = common::end(lineage);
    let written = events!(report, Declared).len()
        + events!(report, Marked).len()
        + events!(report, Retired).len();
    let dropped: u64 = events!(report, Gap).iter().map(|gap| gap.count).sum();
    assert!(dropped > 0, "16 records are too few for {MARKS}");
    assert_eq!(
        written as u64 + dropped,
        MARKS + 2,
        "the declaration, the marks and the retirement"
    );
    for gap in events!(report, Gap) {
        if let (Some(before), Some(after)) = (gap.not_before, gap.not_after) {
            assert!(before <= after);
        }
    }
}
