use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use libloading::os::unix::Library;
use lineage_sim::{Config, CuptiVersion, Faults, OtherTool, isolated, load};

use crate::call;
use crate::client::{
    self, CONCURRENT_KERNEL, Callback, CallbackData, DRIVER, EXTERNAL_CORRELATION, LAUNCH_KERNEL,
    Record,
};
use crate::driver::{Driver, Handle};

const NAME: &str = "subscribers_stand_beside_each_other_since_13_2";
const GRAPH_TRACE: u32 = 51;
const CUSTOM2: u32 = 5;

/// `CUpti_SubscriberParams`, from `cupti_callbacks.h` of 13.5.
#[repr(C)]
struct Params {
    bytes: usize,
    name: *const c_char,
    old_name: *mut c_char,
    old_name_bytes: usize,
    allow_several: u8,
    padding: [u8; 7],
}

/// `CUpti_BufferCallbackCompleteInfo`.
#[repr(C)]
struct CompleteInfo {
    bytes: usize,
    thread: u64,
    layouts: *mut c_void,
    layouts_count: usize,
}

type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut u8, usize, usize, *mut CompleteInfo);

/// The records of each buffer, and how reading ended.
type Came = Vec<(Vec<Record>, u32)>;

/// What came back to each subscriber.
static CAME: [Mutex<Came>; 2] = [const { Mutex::new(Vec::new()) }; 2];
/// The subscribers' handles as numbers.
static HANDLES: [Mutex<usize>; 2] = [const { Mutex::new(0) }; 2];
/// Callbacks: whose, and the call's side.
static CALLED: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

const BYTES: usize = 64 * 1024;

unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    most: *mut usize,
    info: *mut usize,
) {
    // SAFETY: the places are valid during the call.
    unsafe {
        assert_eq!(*info, 8, "CUPTI sets the size of what it tells");
        *size = BYTES;
        *most = 0;
        *buffer = Box::into_raw(vec![0_u64; BYTES / 8].into_boxed_slice()).cast();
    }
}

unsafe extern "C" fn completed<const WHO: usize>(
    buffer: *mut u8,
    _: usize,
    valid: usize,
    info: *mut CompleteInfo,
) {
    // SAFETY: valid during the call.
    let info = unsafe { &*info };
    assert_eq!((info.bytes, info.layouts_count), (32, 0));
    // SAFETY: takes nothing.
    assert_eq!(info.thread, unsafe { libc::gettid() } as u64);
    let library = open();
    let handle = std::ptr::with_exposed_provenance_mut::<c_void>(*HANDLES[WHO].lock().unwrap());
    let (mut records, mut record) = (Vec::new(), std::ptr::null_mut::<u8>());
    let end = loop {
        match call!(library, "cuptiActivityGetNextRecord_v2"(
            handle => *mut c_void, buffer => *mut u8, valid => usize, &mut record => *mut *mut u8,
        )) {
            0 => records.push(client::decode(record, client::version(&library))),
            code => break code,
        }
    };
    CAME[WHO].lock().unwrap().push((records, end));
    // SAFETY: made by `requested`.
    drop(unsafe {
        Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            buffer.cast::<u64>(),
            BYTES / 8,
        ))
    });
}

unsafe extern "C" fn note<const WHO: usize>(
    _: *mut c_void,
    _: u32,
    _: u32,
    data: *const CallbackData,
) {
    // SAFETY: valid during the call.
    CALLED.lock().unwrap().push((WHO, unsafe { (*data).site }));
}

fn open() -> Library {
    // SAFETY: the simulated library, loaded before.
    unsafe { Library::new("libcupti.so") }.expect("the simulator is loaded")
}

/// The handle, or the code; and the name of the first subscriber.
fn subscribe<const WHO: usize>(allow_several: bool) -> (Result<Handle, u32>, String) {
    let mut old_name = [0_u8; 64];
    let name = [c"first", c"second"][WHO];
    let mut params = Params {
        bytes: 40,
        name: name.as_ptr(),
        old_name: old_name.as_mut_ptr().cast(),
        old_name_bytes: old_name.len(),
        allow_several: allow_several.into(),
        padding: [0; 7],
    };
    let mut handle = std::ptr::null_mut();
    let code = call!(open(), "cuptiSubscribe_v2"(
        &mut handle => *mut Handle, note::<WHO> as Callback => Callback, std::ptr::null_mut() => *mut c_void,
        &mut params => *mut Params,
    ));
    let old_name = CStr::from_bytes_until_nul(&old_name).unwrap();
    *HANDLES[WHO].lock().unwrap() = handle.expose_provenance();
    let outcome = if code == 0 { Ok(handle) } else { Err(code) };
    (outcome, old_name.to_str().unwrap().to_owned())
}

fn subscribe_plainly() -> Result<Handle, u32> {
    let mut handle = std::ptr::null_mut();
    match call!(open(), "cuptiSubscribe"(
        &mut handle => *mut Handle, note::<0> as Callback => Callback, std::ptr::null_mut() => *mut c_void,
    )) {
        0 => Ok(handle),
        code => Err(code),
    }
}

fn register<const WHO: usize>(handle: Handle) {
    let code = call!(open(), "cuptiActivityRegisterCallbacks_v2"(
        handle => Handle, requested => Requested, completed::<WHO> => Completed,
    ));
    assert_eq!(code, 0);
}

fn enable(handle: Handle, kinds: &[u32]) {
    for kind in kinds {
        assert_eq!(
            try_enable(handle, *kind, std::ptr::null()),
            0,
            "kind {kind}"
        );
    }
}

fn try_enable(handle: Handle, kind: u32, config: *const c_void) -> u32 {
    call!(open(), "cuptiActivityEnable_v2"(handle => Handle, kind => u32, config => *const c_void))
}

fn set_attribute(handle: Handle, attribute: u32, value: u64, bytes: usize) -> u32 {
    let (mut value, mut bytes) = (value, bytes);
    call!(open(), "cuptiActivitySetAttribute_v2"(
        handle => Handle, attribute => u32, &mut bytes => *mut usize, &mut value => *mut u64,
    ))
}

fn attribute(handle: Handle, attribute: u32) -> u64 {
    let (mut value, mut bytes) = (0_u64, 8_usize);
    let code = call!(open(), "cuptiActivityGetAttribute_v2"(
        handle => Handle, attribute => u32, &mut bytes => *mut usize, &mut value => *mut u64,
    ));
    assert_eq!(code, 0);
    value
}

fn push(handle: Handle, id: u64) {
    let code = call!(open(), "cuptiActivityPushExternalCorrelationId_v2"(handle => Handle, CUSTOM2 => u32, id => u64));
    assert_eq!(code, 0);
}

fn pop(handle: Handle) -> Result<u64, u32> {
    let mut id = 0;
    match call!(open(), "cuptiActivityPopExternalCorrelationId_v2"(handle => Handle, CUSTOM2 => u32, &mut id => *mut u64))
    {
        0 => Ok(id),
        code => Err(code),
    }
}

fn flush(flag: u32) {
    assert_eq!(call!(open(), "cuptiActivityFlushAll"(flag => u32)), 0);
}

fn came(who: usize) -> Vec<Record> {
    let came = std::mem::take(&mut *CAME[who].lock().unwrap());
    came.into_iter().flat_map(|(records, _)| records).collect()
}

fn two() -> (Driver, [Handle; 2]) {
    load(Config::default().cupti_version(CuptiVersion::V13_5)).unwrap();
    let driver = Driver::open();
    let (first, before) = subscribe::<0>(true);
    assert_eq!(before, "", "nobody was there before it");
    let (second, before) = subscribe::<1>(true);
    assert_eq!(before, "CUPTI for first");
    let handles = [first.unwrap(), second.unwrap()];
    assert_ne!(handles[0], handles[1]);
    register::<0>(handles[0]);
    register::<1>(handles[1]);
    (driver, handles)
}

fn test(name: &str, run: fn()) {
    isolated(&format!("{NAME}::{name}"), run);
}

#[test]
fn each_has_kinds_buffers_and_external_ids_of_its_own() {
    test("each_has_kinds_buffers_and_external_ids_of_its_own", || {
        let (driver, [first, second]) = two();
        enable(first, &[DRIVER, EXTERNAL_CORRELATION]);
        enable(second, &[CONCURRENT_KERNEL, EXTERNAL_CORRELATION, DRIVER]);
        push(first, 7);
        push(second, 8);
        push(second, 9);
        driver.launch(1);
        assert_eq!(
            (pop(second), pop(second), pop(second)),
            (Ok(9), Ok(8), Err(18))
        );
        assert_eq!((pop(first), pop(first)), (Ok(7), Err(18)));
        driver.synchronize();
        flush(0);
        let externals = |records: &[Record]| -> Vec<u64> {
            let ids = records.iter().filter_map(|record| match record {
                Record::External { id, .. } => Some(*id),
                _ => None,
            });
            ids.collect()
        };
        let (of_first, of_second) = (came(0), came(1));
        assert_eq!(externals(&of_first), [7]);
        assert_eq!(externals(&of_second), [9], "the top of its own stack");
        assert_eq!(client::kernels(&of_first).len(), 0);
        assert_eq!(client::kernels(&of_second).len(), 1);
        // The call has one id, whoever records it.
        let launch = |records: &[Record]| {
            records.iter().find_map(|record| match record {
                Record::Api {
                    cbid: LAUNCH_KERNEL,
                    correlation,
                    ..
                } => Some(*correlation),
                _ => None,
            })
        };
        assert!(launch(&of_first).is_some());
        assert_eq!(launch(&of_first), launch(&of_second));
    });
}

#[test]
fn callbacks_go_to_who_asked_for_them() {
    test("callbacks_go_to_who_asked_for_them", || {
        let (driver, [first, second]) = two();
        let ask = |handle: Handle| call!(open(), "cuptiEnableCallback"(1 => u32, handle => Handle, 1 => u32, LAUNCH_KERNEL => u32));
        assert_eq!(ask(second), 0);
        driver.launch(1);
        assert_eq!(
            std::mem::take(&mut *CALLED.lock().unwrap()),
            [(1, 0), (1, 1)]
        );
        assert_eq!(ask(first), 0);
        driver.launch(2);
        assert_eq!(
            std::mem::take(&mut *CALLED.lock().unwrap()),
            [(0, 0), (1, 0), (0, 1), (1, 1)]
        );
        assert_eq!(call!(open(), "cuptiUnsubscribe"(second => Handle)), 0);
        driver.launch(3);
        assert_eq!(
            std::mem::take(&mut *CALLED.lock().unwrap()),
            [(0, 0), (0, 1)]
        );
    });
}

/// A kernel that has not ended: a flush without force leaves both subscribers' buffers, and a forced one takes both.
#[test]
fn a_flush_is_everybodys_with_the_same_flag() {
    test("a_flush_is_everybodys_with_the_same_flag", || {
        let (driver, [first, second]) = two();
        for handle in [first, second] {
            enable(handle, &[CONCURRENT_KERNEL]);
        }
        // What waits for a value has not begun.
        let value = driver.allocate(4);
        let waits = call!(driver.library, "cuStreamWaitValue32_v2"(driver.stream => Handle, value => u64, 1 => u32, 0 => u32));
        assert_eq!(waits, 0);
        driver.launch(1);
        flush(0);
        assert_eq!(
            (CAME[0].lock().unwrap().len(), CAME[1].lock().unwrap().len()),
            (0, 0)
        );
        flush(1);
        for came in &CAME {
            let came = std::mem::take(&mut *came.lock().unwrap());
            let ends: Vec<u32> = came.iter().map(|(_, end)| *end).collect();
            assert_eq!(ends, [21], "an incomplete record ends the buffer");
        }
        let other = driver.new_stream();
        let written = call!(driver.library, "cuStreamWriteValue32_v2"(other => Handle, value => u64, 1 => u32, 0 => u32));
        assert_eq!(written, 0);
        driver.synchronize();
    });
}

/// CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED 39, CUPTI_ERROR_NOT_SUPPORTED 27.
#[test]
fn who_does_not_name_itself_is_refused() {
    test("who_does_not_name_itself_is_refused", || {
        let (_driver, [first, second]) = two();
        let library = open();
        assert_eq!(subscribe_plainly(), Err(39));
        assert_eq!(call!(library, "cuptiActivityEnable"(10 => u32)), 39);
        assert_eq!(
            call!(library, "cuptiActivityPushExternalCorrelationId"(CUSTOM2 => u32, 1 => u64)),
            39
        );
        assert_eq!(call!(library, "cuptiSetThreadIdType"(1 => u32)), 27);
        assert_eq!(attribute(first, 12), 1, "several are allowed");
        // Nor is one who would be alone; and it is told who is there.
        assert_eq!(call!(library, "cuptiUnsubscribe"(second => Handle)), 0);
        assert_eq!(
            subscribe::<1>(false),
            (Err(39), "CUPTI for first".to_owned())
        );
        // When all have gone, the first one decides anew.
        assert_eq!(call!(library, "cuptiUnsubscribe"(first => Handle)), 0);
        let plain = subscribe_plainly().unwrap();
        assert_eq!(subscribe::<1>(true).0, Err(39));
        assert_eq!(attribute(plain, 12), 0);
    });
}

#[test]
fn before_13_2_there_is_one_whatever_it_allows() {
    test("before_13_2_there_is_one_whatever_it_allows", || {
        load(Config::default().cupti_version(CuptiVersion::V13_1)).unwrap();
        assert!(subscribe::<0>(true).0.is_ok());
        assert_eq!(
            subscribe::<1>(true),
            (Err(39), "CUPTI for first".to_owned())
        );
        // It need not name itself.
        assert_eq!(call!(open(), "cuptiActivityEnable"(10 => u32)), 0);
    });
}

#[test]
fn clocks_thread_ids_and_drops_are_each_ones_own() {
    test("clocks_thread_ids_and_drops_are_each_ones_own", || {
        unsafe extern "C" fn noon() -> u64 {
            12
        }
        let (driver, [first, second]) = two();
        // A timestamp callback, and the system's thread ids.
        assert_eq!(
            set_attribute(first, 22, (noon as *const ()).expose_provenance() as u64, 8),
            0
        );
        assert_eq!(set_attribute(second, 21, 1, 4), 0);
        assert_eq!((attribute(first, 21), attribute(second, 21)), (0, 1));
        let stamp = |handle: Handle| {
            let mut now = 0;
            assert_eq!(
                call!(open(), "cuptiGetTimestamp_v2"(handle => Handle, &mut now => *mut u64)),
                0
            );
            now
        };
        assert_eq!(stamp(first), 12);
        assert!(stamp(second) > 1_000_000_000);
        enable(first, &[DRIVER]);
        enable(second, &[DRIVER]);
        driver.launch(1);
        flush(0);
        let of_launch = |records: Vec<Record>| {
            let launch = records.into_iter().find_map(|record| match record {
                Record::Api {
                    cbid: LAUNCH_KERNEL,
                    start,
                    thread,
                    ..
                } => Some((start, thread)),
                _ => None,
            });
            launch.unwrap()
        };
        // SAFETY: takes nothing.
        let system = unsafe { libc::gettid() } as u32;
        let (of_first, of_second) = (of_launch(came(0)), of_launch(came(1)));
        assert_eq!(of_first.0, 12);
        assert_eq!(of_second.1, system);
        assert_ne!(of_first.1, system, "pthread_self, cut");
        // A third subscriber without buffers loses its own records only.
        let mut third = std::ptr::null_mut();
        let mut params = Params {
            bytes: 40,
            name: std::ptr::null(),
            old_name: std::ptr::null_mut(),
            old_name_bytes: 0,
            allow_several: 1,
            padding: [0; 7],
        };
        let code = call!(open(), "cuptiSubscribe_v2"(
            &mut third => *mut Handle, note::<0> as Callback => Callback, std::ptr::null_mut() => *mut c_void,
            &mut params => *mut Params,
        ));
        assert_eq!(code, 0);
        enable(third, &[CONCURRENT_KERNEL]);
        driver.launch(2);
        driver.synchronize();
        let dropped = |handle: Handle| {
            let mut dropped = 9_usize;
            let code = call!(open(), "cuptiActivityGetNumDroppedRecords_v2"(
                handle => Handle, std::ptr::null_mut() => *mut c_void, 0 => u32, &mut dropped => *mut usize,
            ));
            assert_eq!(code, 0);
            dropped
        };
        assert_eq!((dropped(first), dropped(second), dropped(third)), (0, 0, 1));
        assert_eq!(dropped(third), 0, "reading it sets it back");
    });
}

/// `CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE` is 20; CUPTI_ERROR_NOT_COMPATIBLE 14.
#[test]
fn graphs_as_a_whole_are_for_all_of_them_or_for_none() {
    test("graphs_as_a_whole_are_for_all_of_them_or_for_none", || {
        let (driver, [first, second]) = two();
        assert_eq!(try_enable(first, GRAPH_TRACE, std::ptr::null()), 14);
        assert_eq!(set_attribute(second, 20, 1, 1), 0);
        enable(first, &[GRAPH_TRACE]);
        enable(second, &[CONCURRENT_KERNEL]);
        let library = &driver.library;
        assert_eq!(
            call!(library, "cuStreamBeginCapture_v2"(driver.stream => Handle, 0 => u32)),
            0
        );
        driver.launch(1);
        let (mut graph, mut exec) = (std::ptr::null_mut(), std::ptr::null_mut());
        assert_eq!(
            call!(library, "cuStreamEndCapture"(driver.stream => Handle, &mut graph => *mut Handle)),
            0
        );
        let code = call!(library, "cuGraphInstantiateWithFlags"(&mut exec => *mut Handle, graph => Handle, 0 => u64));
        assert_eq!(code, 0);
        assert_eq!(
            call!(library, "cuGraphLaunch"(exec => Handle, driver.stream => Handle)),
            0
        );
        driver.synchronize();
        flush(0);
        assert_eq!(came(0), [Record::Other(GRAPH_TRACE)]);
        assert_eq!(came(1), [], "its node's record is hidden for everybody");
        // The first value holds.
        assert_eq!(set_attribute(second, 20, 0, 1), 0);
        assert_eq!(attribute(first, 20), 1);
    });
}

/// `CUpti_ActivityConfig` with `CUpti_ActivityApiOptions`, from `cupti_activity.h` of 13.5.
#[test]
fn calls_are_allowed_or_denied_when_their_kind_is_enabled() {
    #[repr(C)]
    struct Ids {
        bytes: usize,
        list: *const u32,
        count: usize,
        allow: u8,
    }
    #[repr(C)]
    struct Options {
        bytes: usize,
        ids: *const Ids,
    }
    #[repr(C)]
    struct ActivityConfig {
        bytes: usize,
        selection: [usize; 3],
        options: *const Options,
    }
    fn enable_with(handle: Handle, ids: &[u32], allow: bool) {
        let ids = Ids {
            bytes: 32,
            list: ids.as_ptr(),
            count: ids.len(),
            allow: allow.into(),
        };
        let options = Options {
            bytes: 16,
            ids: &ids,
        };
        let config = ActivityConfig {
            bytes: 40,
            selection: [24, 0, 0],
            options: &options,
        };
        assert_eq!(try_enable(handle, DRIVER, (&raw const config).cast()), 0);
    }
    fn ids(records: &[Record]) -> Vec<u32> {
        let ids = records.iter().filter_map(|record| match record {
            Record::Api { cbid, .. } => Some(*cbid),
            _ => None,
        });
        ids.collect()
    }
    test(
        "calls_are_allowed_or_denied_when_their_kind_is_enabled",
        || {
            const STREAM_SYNCHRONIZE: u32 = 126;
            let (driver, [first, second]) = two();
            enable_with(first, &[LAUNCH_KERNEL], true);
            enable_with(second, &[LAUNCH_KERNEL], false);
            driver.launch(1);
            driver.synchronize();
            flush(0);
            assert_eq!(ids(&came(0)), [LAUNCH_KERNEL]);
            assert_eq!(ids(&came(1)), [STREAM_SYNCHRONIZE]);
            // One more, by itself.
            let code = call!(open(), "cuptiActivityEnableDriverApi_v2"(first => Handle, STREAM_SYNCHRONIZE => u32, 1 => u8));
            assert_eq!(code, 0);
            driver.launch(2);
            driver.synchronize();
            flush(0);
            assert_eq!(ids(&came(0)), [LAUNCH_KERNEL, STREAM_SYNCHRONIZE]);
        },
    );
}

/// `cuptiActivityGetStructSize`: of this version, of an older one, of one from before there was such a question (27).
#[test]
fn structures_have_the_size_of_the_version_that_is_asked_for() {
    test(
        "structures_have_the_size_of_the_version_that_is_asked_for",
        || {
            load(Config::default().cupti_version(CuptiVersion::V13_5)).unwrap();
            let size = |kind: u32, version: u32| {
                let mut size = 0_usize;
                match call!(open(), "cuptiActivityGetStructSize"(kind => u32, version => u32, &mut size => *mut usize))
                {
                    0 => Ok(size),
                    code => Err(code),
                }
            };
            let kernel = CONCURRENT_KERNEL;
            assert_eq!(
                (
                    size(kernel, 0),
                    size(kernel, 130_000),
                    size(kernel, 130_100)
                ),
                (Ok(248), Ok(216), Ok(224))
            );
            assert_eq!((size(kernel, 28), size(99, 0)), (Err(27), Err(21)));
        },
    );
}

fn beside_another_tool(
    version: CuptiVersion,
) -> (Result<Handle, u32>, Result<Handle, u32>, String) {
    let faults = Faults::default().other_tool(OtherTool::AllowsOthers);
    load(Config::default().cupti_version(version).faults(faults)).unwrap();
    let several = version >= CuptiVersion::V13_4;
    let enabled = call!(open(), "cuptiActivityEnable"(10 => u32));
    assert_eq!(enabled, if several { 39 } else { 0 });
    let plain = subscribe_plainly();
    let (shared, name) = subscribe::<0>(true);
    (plain, shared, name)
}

#[test]
fn another_tool_may_allow_it() {
    test("another_tool_may_allow_it", || {
        let (plain, shared, name) = beside_another_tool(CuptiVersion::V13_4);
        assert_eq!(plain, Err(39));
        assert_eq!(name, "CUPTI for another tool");
        let handle = shared.unwrap();
        register::<0>(handle);
        enable(handle, &[CONCURRENT_KERNEL]);
        let driver = Driver::open();
        driver.launch(1);
        driver.synchronize();
        flush(0);
        assert_eq!(came(0).len(), 1);
    });
}

#[test]
fn another_tool_of_13_1_is_alone() {
    test("another_tool_of_13_1_is_alone", || {
        let (plain, shared, _) = beside_another_tool(CuptiVersion::V13_1);
        assert_eq!((plain, shared), (Err(39), Err(39)));
    });
}
