//! Exports of other people's, from schema 2.9 to 3.25, hold what other code counted in them.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{observations, real_exports, skipped};
use lineage_core::observation::{Event, SynchronizationKind};
use lineage_import::{EpochsFrom, Recording, Settings, Skip};

fn import(folder: &Path, file: &str) -> Recording {
    lineage_nsys::import(
        &folder.join("nsys").join(file),
        Settings::default(),
        &mut |_| {},
    )
    .unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// How many waits of each kind a recording has.
fn waits(recording: &Recording) -> BTreeMap<SynchronizationKind, u64> {
    let mut kinds = BTreeMap::new();
    for seen in observations(recording) {
        if let Event::Synchronization(wait) = seen.event {
            *kinds.entry(wait.kind).or_default() += 1;
        }
    }
    kinds
}

#[test]
fn calls_kernels_copies_sets_and_failures_are_as_many_as_expected() {
    let Some(folder) = real_exports() else { return };
    let expected = std::fs::read_to_string(folder.join("expected_nsys.tsv")).expect("the counts");
    let mut lines = expected.lines().map(|line| line.split('\t'));
    let header: Vec<&str> = lines.next().expect("a header").collect();
    let mut files = 0;
    for line in lines {
        let row: BTreeMap<&str, &str> = header.iter().copied().zip(line).collect();
        let count = |column: &str| -> u64 { row[column].parse().expect("a count") };
        let recording = import(&folder, row["file"]);
        let holdings = recording.holdings();
        let found = [
            holdings.sum(|process| process.api_calls),
            holdings.sum(|process| process.kernels),
            holdings.sum(|process| process.memcpys),
            holdings.sum(|process| process.memsets),
            holdings.sum(|process| process.failed_calls),
        ];
        let wanted = ["api", "kernel", "memcpy", "memset", "failed_api"].map(count);
        assert_eq!(found, wanted, "{}", row["file"]);
        assert_eq!(holdings.lost_records(), 0, "{}", row["file"]);
        assert!(holdings.results_recorded, "{}", row["file"]);
        files += 1;
    }
    assert_eq!(files, 7);
}

#[test]
fn two_processes_of_one_file_stay_two() {
    let Some(folder) = real_exports() else { return };
    let recording = import(&folder, "nsysai_mfu_2gpu_before.sqlite");
    // Counted with sqlite3: rows by globalPid, and by globalTid & ~0xffffff.
    let found: Vec<_> = recording
        .holdings()
        .processes
        .iter()
        .map(|process| {
            let described = &process.description;
            let name = described.name.as_deref();
            (described.pid, name, process.api_calls, process.kernels)
        })
        .collect();
    assert_eq!(
        found,
        [
            (Some(144), Some("python3"), 3_688, 1_993),
            (Some(145), Some("python3"), 3_778, 2_017)
        ]
    );
}

#[test]
fn the_version_is_that_of_the_file() {
    let Some(folder) = real_exports() else { return };
    for (file, version) in [
        ("pipit_saxpy_mpi_cuda_perlmutter.sqlite", "schema 2.9.1"),
        ("Butter-gpw__CUDA__build__report1.sqlite", "schema 3.7.2"),
        ("nsysai_mfu_2gpu_before.sqlite", "schema 3.25.0"),
    ] {
        let recording = import(&folder, file);
        assert_eq!(recording.holdings().version.as_deref(), Some(version));
        let notes = &recording.holdings().notes;
        assert!(
            !notes.iter().any(|note| note.contains("schema")),
            "{notes:?}"
        );
    }
}

/// The same numbers stand for different kinds in these files: 2 is a wait of a thread for an event in
/// the first, a stream synchronisation in the second, and a stream's wait in the third.
#[test]
fn waits_are_named_by_their_calls_in_every_schema() {
    let Some(folder) = real_exports() else { return };
    let two = import(&folder, "Butter-gpw__CUDA__build__report1.sqlite");
    assert_eq!(
        waits(&two),
        BTreeMap::from([(SynchronizationKind::Event, 1)])
    );
    let old = import(&folder, "Donovoi__ripgrep__report1.sqlite");
    assert_eq!(
        waits(&old),
        BTreeMap::from([
            (SynchronizationKind::Event, 1),
            (SynchronizationKind::Stream, 4)
        ])
    );
    let new = import(&folder, "nsysai_mfu_2gpu_before.sqlite");
    assert_eq!(
        waits(&new),
        BTreeMap::from([
            (SynchronizationKind::Event, 133),
            (SynchronizationKind::StreamWait, 200),
            (SynchronizationKind::Stream, 33)
        ])
    );
    // 133 + 200 waits for events, each with its eventSyncId.
    assert_eq!(new.holdings().sum(|process| process.linked_waits), 333);
}

#[test]
fn scheduler_events_and_calls_of_the_system_come_along() {
    let Some(folder) = real_exports() else { return };
    let recording = import(&folder, "0x822a5b87__test-cuda__report1.sqlite");
    let holdings = recording.holdings();
    assert_eq!(holdings.sum(|process| process.scheduled), 2_424);
    // 906 rows, two of which mark begin and end of the library's tracing.
    assert_eq!(holdings.sum(|process| process.os_calls), 904);
    assert_eq!(holdings.others["marks of the OS runtime's tracing"], 2);
    assert_eq!(holdings.sum(|process| process.event_records), 2);
    // The device's times of events were not collected: they are 0.
    assert_eq!(holdings.sum(|process| process.event_times), 0);
    // Four kernels and twelve copies on streams 13 to 16.
    let streams: Vec<u32> = holdings.processes[0]
        .streams
        .keys()
        .map(|key| key.2)
        .collect();
    assert_eq!(streams, [13, 14, 15, 16]);
}

#[test]
fn the_recorders_warnings_are_notes_and_its_small_talk_is_not() {
    let Some(folder) = real_exports() else { return };
    let recording = import(&folder, "0x822a5b87__test-cuda__report1.sqlite");
    let notes = &recording.holdings().notes;
    assert!(
        notes.iter().any(|note| note
            == "a warning of the recorder's: Not all NVTX events might have been collected."),
        "{notes:?}"
    );
    // 5 of its 23 diagnostics are warnings.
    let warnings = notes
        .iter()
        .filter(|note| note.contains("of the recorder's"));
    assert_eq!(warnings.count(), 5);
    assert!(!notes.iter().any(|note| note.contains('\n')));
}

/// The file has 99 copies of unified memory that no call asked for.
#[test]
fn copies_of_unified_memory_have_no_call_and_say_so() {
    let Some(folder) = real_exports() else { return };
    let recording = import(&folder, "cestwc__balinski-and-gomory-cuda__report11.sqlite");
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    for (_, operation) in common::operations(&recording) {
        if operation.correlation.0 == 0 {
            let name = operation.name.as_deref().unwrap_or("no name");
            *names.entry(name.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(
        names,
        BTreeMap::from([
            ("memcpy unified HtoD".to_owned(), 50),
            ("memcpy unified DtoH".to_owned(), 49)
        ])
    );
}

#[test]
fn ranges_become_candidates_where_they_are_asked_for() {
    let Some(folder) = real_exports() else { return };
    let path = folder.join("nsys/pipit_saxpy_mpi_cuda_perlmutter.sqlite");
    // 24 rows: 22 ranges, 5 of which are named saxpy, the name of a thread and a domain.
    for (settings, epochs) in [
        (Settings::default(), 0),
        (Settings::default().epochs_from(EpochsFrom::Nvtx), 22),
        (
            Settings::default()
                .epochs_from(EpochsFrom::Nvtx)
                .epoch_name("saxpy"),
            5,
        ),
        (
            Settings::default()
                .epochs_from(EpochsFrom::Nvtx)
                .epoch_name("MPI_Send"),
            10,
        ),
    ] {
        let recording = lineage_nsys::import(&path, settings, &mut |_| {}).expect("an export");
        let holdings = recording.holdings();
        assert_eq!(holdings.sum(|process| process.ranges), 22);
        assert_eq!(holdings.sum(|process| process.epochs), epochs);
        assert_eq!(holdings.others["NVTX names and domains"], 2);
        assert_eq!(skipped(holdings, Skip::UnclosedRange), 0);
    }
}

#[test]
fn progress_ends_at_the_size_of_the_file() {
    let Some(folder) = real_exports() else { return };
    let path = folder.join("nsys/nsysai_mfu_2gpu_before.sqlite");
    let size = std::fs::metadata(&path).expect("a file").len();
    let mut told = Vec::new();
    lineage_nsys::import(&path, Settings::default(), &mut |progress| {
        told.push(progress)
    })
    .expect("an export");
    // 32,249 rows are read: one report on the way, and one at the end.
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|progress| progress.of == size));
    assert!(0 < told[0].done && told[0].done < size);
    assert_eq!(told[1].done, size);
}

#[test]
fn why_a_thread_was_taken_off_is_not_made_up() {
    let Some(folder) = real_exports() else { return };
    // Counted with sqlite3: rows by isSchedIn, and those that leave a thread terminated. No row has a
    // reason, and no other state but "unknown".
    for (file, on, off, terminated) in [
        ("0x822a5b87__test-cuda__report1.sqlite", 1_212, 1_212, 9),
        ("Donovoi__ripgrep__report1.sqlite", 532, 532, 10),
        ("NVIDIA__Fuser__8fa9ec2_report1.sqlite", 144, 144, 10),
        (
            "cestwc__balinski-and-gomory-cuda__report11.sqlite",
            2_919,
            2_919,
            10,
        ),
        ("pipit_saxpy_mpi_cuda_perlmutter.sqlite", 1_619, 1_619, 0),
    ] {
        let mut last = BTreeMap::new();
        let (mut found, mut ended) = ((0, 0), Vec::new());
        for seen in observations(&import(&folder, file)) {
            let Event::Scheduled(switch) = seen.event else {
                continue;
            };
            assert_eq!(switch.off, None, "{file}");
            if switch.running {
                found.0 += 1;
            } else {
                found.1 += 1;
            }
            if switch.state == Some(5) {
                ended.push((switch.tid, switch.at));
            }
            let at = last.entry(switch.tid).or_insert(switch.at);
            *at = switch.at.max(*at);
        }
        assert_eq!(found, (on, off), "{file}");
        assert_eq!(ended.len(), terminated, "{file}");
        // That 5 stands for the end of a thread: nothing comes after it.
        for (tid, at) in ended {
            assert_eq!(last[&tid], at, "{file}");
        }
    }
}
