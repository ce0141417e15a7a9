//! Decoding of buffers built by hand, walked as CUPTI walks: by the sizes of its version.

use lineage_core::observation::OperationsDue;

use super::*;

const V12_9: u32 = 28;
const V13_5: u32 = 130_500;
const OWN: u32 = 5;

/// A record under construction: written by the offsets of NVIDIA's headers, spelled out here once
/// more so that a wrong constant in the code under test shows.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(kind: u32, size: usize) -> Self {
        let mut bytes = vec![0; size];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        Self(bytes)
    }

    fn u8(mut self, offset: usize, value: u8) -> Self {
        self.0[offset] = value;
        self
    }

    fn u32(mut self, offset: usize, value: u32) -> Self {
        self.0[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, offset: usize, value: u64) -> Self {
        self.0[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }
}

fn api(kind: u32, cbid: u32, correlation: u32, start: u64) -> Bytes {
    Bytes::new(kind, 40)
        .u32(4, cbid)
        .u64(8, start)
        .u64(16, start + 50)
        .u32(24, 4000)
        .u32(28, 4321)
        .u32(32, correlation)
        .u32(36, 7)
}

fn external(kind: u32, id: u64, correlation: u32) -> Bytes {
    Bytes::new(39, 24)
        .u32(4, kind)
        .u64(8, id)
        .u32(16, correlation)
}

fn kernel(size: usize, correlation: u32, name: &'static std::ffi::CStr) -> Bytes {
    let (grid, block) = ([3, 2, 1], [128, 4, 1]);
    let mut bytes = Bytes::new(10, size)
        .u64(16, 5000)
        .u64(24, 6000)
        .u32(40, 1)
        .u32(44, 2)
        .u32(48, 13)
        // 40 registers; 4,096 and 16,384 bytes; clusters of two by two blocks.
        .u32(4, 40 << 16)
        .u32(76, 4_096)
        .u32(80, 16_384)
        .u32(92, correlation)
        .u32(176, 2)
        .u32(180, 2)
        .u64(104, name.as_ptr() as u64)
        .u64(120, 4000)
        .u64(128, 4500)
        .u64(144, 0x0000_0007_0000_0003)
        .u32(156, 7);
    for axis in 0..3 {
        bytes = bytes
            .u32(52 + 4 * axis, grid[axis])
            .u32(64 + 4 * axis, block[axis]);
    }
    bytes
}

/// `cuptiActivityGetNextRecord` for the hand-built buffers: sizes are those of the headers.
macro_rules! walker {
    ($name:ident, kernel: $kernel:literal, memcpy: $memcpy:literal, memset: $memset:literal) => {
        unsafe extern "C" fn $name(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> u32 {
            // SAFETY: called by the code under test with a buffer built here and a valid place.
            unsafe {
                let size = |at: *mut u8| match at.cast::<u32>().read_unaligned() {
                    1 => $memcpy,
                    2 => $memset,
                    4 | 5 | 48 => 40,
                    10 => $kernel,
                    17 => 56,
                    22 => 96,
                    39 => 24,
                    9999 => 32,
                    _ => 0,
                };
                let next = if (*record).is_null() {
                    buffer
                } else {
                    (*record).add(size(*record))
                };
                if next as usize >= buffer as usize + valid {
                    return 12;
                }
                if size(next) == 0 {
                    return 21;
                }
                *record = next;
                0
            }
        }
    };
}
walker!(next_12_9, kernel: 208, memcpy: 96, memset: 88);
walker!(next_13_5, kernel: 248, memcpy: 112, memset: 104);

fn decode_by(next: NextRecord, version: u32, records: Vec<Bytes>) -> (Vec<Event>, Tally) {
    let mut buffer: Vec<u8> = records.into_iter().flat_map(|record| record.0).collect();
    let names = Names::new(Box::new(|_, _| None));
    static LOADED: LoadedNames = LoadedNames::none();
    LOADED.watched();
    let mut decoder = Decoder::new(3, version, OWN, names, &LOADED, false);
    let mut events = Vec::new();
    // SAFETY: the buffer was built here for this walker; its names are static.
    let tally = unsafe {
        decoder.buffer(next, buffer.as_mut_ptr(), buffer.len(), 0, &mut |event| {
            events.push(event);
        })
    };
    (events, tally)
}

fn operation(event: &Event) -> &Operation {
    match event {
        Event::Operation(operation) => operation,
        other => panic!("expected an operation, not {other:?}"),
    }
}

#[test]
fn a_kernel_reads_the_same_in_records_of_both_versions() {
    for (next, version, size) in [
        (next_12_9 as NextRecord, V12_9, 208),
        (next_13_5 as NextRecord, V13_5, 248),
    ] {
        let records = vec![kernel(size, 17, c"gemv"), kernel(size, 18, c"softmax")];
        let (events, tally) = decode_by(next, version, records);
        let expected = Operation {
            session: 3,
            kind: ActivityKind::Kernel,
            correlation: CorrelationId(17),
            device: 1,
            context: 2,
            stream: 13,
            queued: Some(HostNanos(4000)),
            submitted: Some(HostNanos(4500)),
            start: Some(HostNanos(5000)),
            end: Some(HostNanos(6000)),
            name: Some("gemv".into()),
            graph_node: Some(0x0000_0007_0000_0003),
            graph: Some(7),
            bytes: 0,
            copies: 1,
            grid: [3, 2, 1],
            block: [128, 4, 1],
            footprint: Some(Footprint {
                registers_per_thread: 40,
                shared_bytes: 20_480,
                blocks_per_cluster: Some(4),
            }),
        };
        assert_eq!(operation(&events[0]), &expected);
        assert_eq!(operation(&events[1]).name.as_deref(), Some("softmax"));
        let all = Tally {
            records: 2,
            ..Tally::default()
        };
        assert_eq!(tally, all);
    }
}

#[test]
fn zero_times_are_unknown_times() {
    let record = kernel(208, 1, c"k")
        .u64(16, 0)
        .u64(24, 0)
        .u64(120, 0)
        .u64(128, 0);
    let (events, _) = decode_by(next_12_9, V12_9, vec![record]);
    let found = operation(&events[0]);
    assert_eq!(
        (found.queued, found.submitted, found.start, found.end),
        (None, None, None, None)
    );
}

#[test]
fn work_outside_graphs_has_neither_graph_nor_node() {
    let record = kernel(208, 1, c"k").u64(144, 0).u32(156, 0);
    let (events, _) = decode_by(next_12_9, V12_9, vec![record]);
    assert_eq!(operation(&events[0]).graph_node, None);
    assert_eq!(operation(&events[0]).graph, None);
}

fn memcpy(size: usize, copy_count: u64) -> Bytes {
    let bytes = Bytes::new(1, size)
        .u8(4, 1)
        .u64(8, 4096)
        .u64(16, 100)
        .u64(24, 200)
        .u32(32, 1)
        .u32(36, 2)
        .u32(40, 13)
        .u32(44, 55)
        .u64(64, 0x9_0000_0001)
        .u32(72, 9);
    if size >= 96 {
        bytes.u64(88, copy_count)
    } else {
        bytes
    }
}

#[test]
fn a_copy_has_its_bytes_and_from_12_8_its_count() {
    for (next, version, size, count, copies) in [
        (next_12_9 as NextRecord, V12_9, 96, 0, 1),
        (next_12_9, V12_9, 96, 4, 4),
        (next_13_5, V13_5, 112, 7, 7),
        // Before 12.8 there is no such field: what lies there is not read.
        (next_12_9, 24, 96, 9, 1),
    ] {
        let (events, _) = decode_by(next, version, vec![memcpy(size, count)]);
        let found = operation(&events[0]);
        assert_eq!(found.kind, ActivityKind::Copy);
        assert_eq!(found.correlation, CorrelationId(55));
        assert_eq!((found.bytes, found.copies), (4096, copies));
        assert_eq!(found.name.as_deref(), Some("memcpy HtoD"));
        assert_eq!((found.device, found.context, found.stream), (1, 2, 13));
        assert_eq!(
            (found.graph_node, found.graph),
            (Some(0x9_0000_0001), Some(9))
        );
    }
}

#[test]
fn a_copy_between_devices_has_its_correlation_id_elsewhere() {
    let record = Bytes::new(22, 96)
        .u8(4, 10)
        .u64(8, 77)
        .u64(16, 100)
        .u64(24, 200)
        .u32(32, 1)
        .u32(44, 999)
        .u32(60, 56);
    let (events, _) = decode_by(next_12_9, V12_9, vec![record]);
    let found = operation(&events[0]);
    assert_eq!(found.correlation, CorrelationId(56));
    assert_eq!(found.bytes, 77);
    assert_eq!(found.name.as_deref(), Some("memcpy PtoP"));
}

#[test]
fn a_set_is_read_in_both_versions() {
    for (next, version, size) in [
        (next_12_9 as NextRecord, V12_9, 88),
        (next_13_5 as NextRecord, V13_5, 104),
    ] {
        let record = Bytes::new(2, size)
            .u64(8, 512)
            .u64(16, 1)
            .u64(24, 2)
            .u32(44, 57);
        let (events, _) = decode_by(next, version, vec![record]);
        let found = operation(&events[0]);
        assert_eq!(found.kind, ActivityKind::Set);
        assert_eq!((found.bytes, found.correlation), (512, CorrelationId(57)));
        assert_eq!(found.name.as_deref(), Some("memset"));
    }
}

#[test]
fn an_api_record_names_its_function_and_what_is_due() {
    let records = vec![
        api(4, 307, 9, 1000),
        api(5, 211, 9, 900),
        api(4, 126, 10, 2000),
    ];
    let (events, _) = decode_by(next_12_9, V12_9, records);
    let apis: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Api(api) => api,
            other => panic!("expected an api record, not {other:?}"),
        })
        .collect();
    assert_eq!(apis[0].api.domain, ApiDomain::Driver);
    assert_eq!(apis[0].api.name.as_deref(), Some("cuLaunchKernel"));
    assert_eq!(apis[0].due, OperationsDue::One);
    assert_eq!(apis[0].tid, 4321);
    assert_eq!(apis[0].result, 7);
    assert_eq!(apis[0].start, Some(HostNanos(1000)));
    assert_eq!(apis[0].end, Some(HostNanos(1050)));
    assert_eq!(apis[1].api.domain, ApiDomain::Runtime);
    assert_eq!(apis[1].api.name.as_deref(), Some("cudaLaunchKernel_v7000"));
    assert_eq!(
        apis[2].due,
        OperationsDue::None,
        "cuStreamSynchronize asks for no work"
    );
}

#[test]
fn a_launch_outside_any_public_function_is_a_class_of_its_own() {
    let (events, tally) = decode_by(next_12_9, V12_9, vec![api(48, 307, 9, 1000)]);
    let Event::Api(found) = &events[0] else {
        panic!("expected an api record, not {:?}", events[0]);
    };
    // The id in such a record is not used by CUPTI, so it must not be taken for cuLaunchKernel.
    assert_eq!(found.api.cbid, 0);
    assert_eq!(found.api.name.as_deref(), Some("internal launch"));
    assert_eq!(found.due, OperationsDue::Any);
    assert_eq!(tally.undecodable, 0);
}

fn externals(events: &[Event]) -> Vec<(u64, bool, u32, Option<u64>)> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::External(found) => Some((
                found.external_id,
                found.own_kind,
                found.correlation.0,
                found.beside.map(|at| at.0),
            )),
            _ => None,
        })
        .collect()
}

#[test]
fn an_external_id_is_placed_by_the_next_api_record_with_its_correlation_id() {
    let records = vec![
        // Two kinds for one call; an operation in between, and another call with the same (wrapped
        // around) id later.
        external(3, 1, 40),
        external(OWN, 0x0100_0001, 40),
        kernel(208, 40, c"k"),
        api(4, 307, 40, 1000),
        external(OWN, 0x0200_0001, 40),
        api(4, 307, 40, 9000),
    ];
    let (events, tally) = decode_by(next_12_9, V12_9, records);
    assert_eq!(
        externals(&events),
        [
            (1, false, 40, Some(1000)),
            (0x0100_0001, true, 40, Some(1000)),
            (0x0200_0001, true, 40, Some(9000)),
        ]
    );
    assert_eq!(tally.records, 6);
    // Each comes before its call.
    let order: Vec<bool> = events
        .iter()
        .filter(|event| matches!(event, Event::Api(_) | Event::External(_)))
        .map(|event| matches!(event, Event::Api(_)))
        .collect();
    assert_eq!(order, [false, false, true, false, true]);
}

#[test]
fn an_external_id_without_its_api_record_has_no_place() {
    let records = vec![external(OWN, 0x0100_0001, 40), api(4, 307, 41, 1000)];
    let (events, _) = decode_by(next_12_9, V12_9, records);
    assert_eq!(externals(&events), [(0x0100_0001, true, 40, None)]);
}

#[test]
fn many_external_ids_without_api_records_are_all_given_on() {
    let records = (0..200)
        .map(|id| external(OWN, 1 << 24 | id, id as u32))
        .collect();
    let (events, _) = decode_by(next_12_9, V12_9, records);
    let ids: Vec<u64> = externals(&events)
        .iter()
        .map(|found| found.0 & 0xff_ffff)
        .collect();
    assert_eq!(ids, (0..200).collect::<Vec<u64>>());
}

#[test]
fn an_unknown_kind_is_stepped_over_and_counted() {
    let records = vec![
        kernel(208, 1, c"a"),
        Bytes::new(9999, 32),
        kernel(208, 2, c"b"),
    ];
    let (events, tally) = decode_by(next_12_9, V12_9, records);
    assert_eq!(events.len(), 2);
    assert_eq!(
        tally,
        Tally {
            records: 3,
            undecodable: 1,
            tails: 0
        }
    );
}

#[test]
fn a_tail_of_incomplete_records_is_counted() {
    let records = vec![
        kernel(208, 1, c"a"),
        Bytes::new(0, 208),
        kernel(208, 2, c"b"),
    ];
    let (events, tally) = decode_by(next_12_9, V12_9, records);
    assert_eq!(events.len(), 1);
    assert_eq!(
        tally,
        Tally {
            records: 1,
            undecodable: 0,
            tails: 1
        }
    );
}

#[test]
fn a_record_that_is_cut_short_is_counted_and_not_read_beyond() {
    let whole = kernel(208, 1, c"a");
    let mut cut = kernel(208, 2, c"b");
    cut.0.truncate(100);
    let (events, tally) = decode_by(next_12_9, V12_9, vec![whole, cut]);
    assert_eq!(events.len(), 1);
    assert_eq!(
        tally,
        Tally {
            records: 2,
            undecodable: 1,
            tails: 0
        }
    );
}

#[test]
fn an_empty_buffer_holds_nothing() {
    let (events, tally) = decode_by(next_12_9, V12_9, vec![]);
    assert!(events.is_empty());
    assert_eq!(tally, Tally::default());
}

#[test]
fn data_of_an_overhead_record_is_freed_though_the_record_is_skipped() {
    // A large block, which the allocator gives back to the system at once: its first page is then
    // no longer mapped, which `mincore` tells.
    let size = 64 << 20;
    // SAFETY: plain allocation; the code under test frees it.
    let data = unsafe { libc::malloc(size) };
    let page = (data as usize + 4095) & !4095;
    let mapped = || {
        let mut state = [0_u8; 1];
        // SAFETY: `mincore` only looks, and answers an error for what is not mapped.
        unsafe { libc::mincore(page as *mut c_void, 4096, state.as_mut_ptr().cast()) == 0 }
    };
    // SAFETY: inside the block just allocated.
    unsafe { (page as *mut u8).write(1) };
    assert!(mapped());
    let record = Bytes::new(17, 56).u32(4, 6 << 16).u64(48, data as u64);
    let (events, tally) = decode_by(next_12_9, V12_9, vec![record]);
    assert!(events.is_empty());
    assert_eq!(tally.undecodable, 1);
    assert!(!mapped(), "freed with C's free");
}

#[test]
fn before_12_4_an_overhead_record_has_no_data_to_free() {
    // If this address were freed, the process would end.
    let record = Bytes::new(17, 56).u64(48, 0x10);
    let (_, tally) = decode_by(next_12_9, 21, vec![record]);
    assert_eq!(tally.records, 1);
}

#[test]
fn counting_a_buffer_walks_all_of_it() {
    let records = vec![
        kernel(248, 1, c"a"),
        memcpy(112, 0),
        external(OWN, 1, 1),
        Bytes::new(0, 8),
    ];
    let mut buffer: Vec<u8> = records.into_iter().flat_map(|record| record.0).collect();
    // SAFETY: the buffer was built here for this walker.
    let tally = unsafe { count_records(next_13_5, buffer.as_mut_ptr(), buffer.len(), V13_5) };
    assert_eq!(
        tally,
        Tally {
            records: 3,
            undecodable: 0,
            tails: 1
        }
    );
}
