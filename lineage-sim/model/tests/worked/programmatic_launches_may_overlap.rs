use lineage_sim_model::{Cause, DependencyKind, Footprint, Programmatic, Settings, Work};

use crate::{Bench, ends, starts};

fn kernel(duration_ns: u64, programmatic: Programmatic) -> Work {
    let Work::Kernel {
        footprint,
        collective,
        ..
    } = Work::kernel_with(Footprint::default(), duration_ns)
    else {
        unreachable!("it is a kernel");
    };
    Work::Kernel {
        footprint,
        programmatic,
        collective,
        duration_ns,
    }
}

/// The primary triggers 30 after its start.
fn primary() -> Work {
    let mut programmatic = Programmatic::default();
    programmatic.triggers_after_ns = Some(30);
    kernel(100, programmatic)
}

/// The dependent waits for the primary's end 10 after its own start.
fn dependent() -> Work {
    let mut programmatic = Programmatic::default();
    programmatic.may_overlap = true;
    programmatic.waits_after_ns = 10;
    kernel(50, programmatic)
}

/// The primary runs from 1 to 101 and triggers at 31. The dependent starts at 31, comes to its wait at 41, goes on at 101, and
/// the 40 that it has left end at 141. In a record it looks as if it had run for 110.
#[test]
fn a_dependent_starts_at_the_trigger_and_waits_inside() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    bench.call(1, stream, 1, primary());
    bench.call(1, stream, 2, dependent());
    bench.call(1, stream, 3, kernel(5, Programmatic::default()));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 31, 141]);
    assert_eq!(ends(&facts), [101, 141, 146]);
    assert_eq!(facts[1].waited_inside_ns, 60);
    assert_eq!(facts[1].last_dependency, DependencyKind::Programmatic);
    assert_eq!(facts[1].waits.of(Cause::Dependency), 29);
}

/// NVIDIA promises no overlap: without it the dependent starts at 101 and runs for 50.
#[test]
fn overlap_is_never_promised() {
    let mut bench = Bench::new(Settings::default().programmatic_overlap_percent(0));
    let stream = bench.stream();
    bench.call(1, stream, 1, primary());
    bench.call(1, stream, 2, dependent());
    let facts = bench.finish();
    assert_eq!(
        (starts(&facts), ends(&facts)),
        (vec![1, 101], vec![101, 151])
    );
    assert_eq!(facts[1].last_dependency, DependencyKind::Stream);
}

/// A primary that never triggers does so when it ends.
#[test]
fn a_kernel_that_never_triggers_does_so_at_its_end() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    bench.call(1, stream, 1, kernel(100, Programmatic::default()));
    bench.call(1, stream, 2, dependent());
    let facts = bench.finish();
    assert_eq!(
        (starts(&facts), ends(&facts)),
        (vec![1, 101], vec![101, 151])
    );
}

/// All blocks must have triggered: with two waves of 100 the second begins at 101, and triggers at 131. The dependent, placed where the
/// last block leaves room, starts then.
#[test]
fn the_last_block_triggers() {
    let mut bench = Bench::new(Settings::default().multiprocessors(1));
    let stream = bench.stream();
    let Work::Kernel { programmatic, .. } = primary() else {
        unreachable!("it is a kernel");
    };
    let two_waves = Work::Kernel {
        footprint: Footprint::new(3, 1_024),
        programmatic,
        collective: None,
        duration_ns: 100,
    };
    bench.call(1, stream, 1, two_waves);
    bench.call(1, stream, 2, dependent());
    let facts = bench.finish();
    assert_eq!(
        (starts(&facts), ends(&facts)),
        (vec![1, 131], vec![201, 241])
    );
}
