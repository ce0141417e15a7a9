use std::ffi::{CStr, c_void};
use std::sync::Mutex;

use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::client::{CallbackData, Cupti, DRIVER, DRIVER_DOMAIN, LAUNCH_KERNEL, Record};
use crate::driver::{Driver, Handle};

const NAME: &str = "callbacks_see_the_call";

#[derive(Clone, Debug, PartialEq)]
struct Seen {
    site: u32,
    domain: u32,
    cbid: u32,
    function: String,
    symbol: Option<String>,
    correlation: u32,
    context_uid: u32,
    context: usize,
    returned: Option<u32>,
    carried: u64,
    /// The second and eighth words of the parameters: grid x, and dynamic shared bytes.
    grid_x: u32,
    shared: u32,
}

static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(_: *mut c_void, domain: u32, cbid: u32, data: *const CallbackData) {
    // SAFETY: CUPTI's data is valid during the callback, and so is what it points to.
    unsafe {
        let data = &*data;
        let text =
            |pointer: *const std::ffi::c_char| CStr::from_ptr(pointer).to_str().unwrap().to_owned();
        if data.site == 0 {
            *data.correlation_data = 1_000 + u64::from(data.correlation_id);
        }
        // cuLaunchKernel_params: a handle of 8 bytes, seven numbers of 4, ...
        let words = data.function_params.cast::<u32>();
        let is_launch = cbid == LAUNCH_KERNEL;
        SEEN.lock().unwrap().push(Seen {
            site: data.site,
            domain,
            cbid,
            function: text(data.function_name),
            symbol: (!data.symbol_name.is_null()).then(|| text(data.symbol_name)),
            correlation: data.correlation_id,
            context_uid: data.context_uid,
            context: data.context as usize,
            returned: (data.site == 1).then(|| *data.return_value),
            carried: *data.correlation_data,
            grid_x: if is_launch { words.add(2).read() } else { 0 },
            shared: if is_launch { words.add(8).read() } else { 0 },
        });
    }
}

#[test]
fn enter_and_exit_with_everything_the_header_promises() {
    isolated(
        &format!("{NAME}::enter_and_exit_with_everything_the_header_promises"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER]);
            let subscriber = cupti.subscribe(note).unwrap();
            cupti.enable_callback(subscriber, DRIVER_DOMAIN, LAUNCH_KERNEL);
            driver.launch(1);
            driver.synchronize();
            let seen = SEEN.lock().unwrap().clone();
            let Some(Record::Api {
                correlation,
                cbid: LAUNCH_KERNEL,
                ..
            }) = cupti.records().first().cloned()
            else {
                panic!()
            };
            let enter = Seen {
                site: 0,
                domain: 1,
                cbid: 307,
                function: "cuLaunchKernel".to_owned(),
                symbol: Some("work".to_owned()),
                correlation,
                context_uid: 1,
                context: driver.context as usize,
                returned: None,
                carried: 1_000 + u64::from(correlation),
                grid_x: 2,
                shared: 64,
            };
            let exit = Seen {
                site: 1,
                returned: Some(0),
                ..enter.clone()
            };
            assert_eq!(seen, [enter, exit], "only the call that was chosen");
        },
    );
}

#[test]
fn a_failed_call_shows_its_code() {
    isolated(&format!("{NAME}::a_failed_call_shows_its_code"), || {
        let gpu = load(Config::default()).unwrap();
        let driver = Driver::open();
        let cupti = Cupti::open();
        let subscriber = cupti.subscribe(note).unwrap();
        cupti.enable_callback(subscriber, DRIVER_DOMAIN, LAUNCH_KERNEL);
        let wrong: Handle = std::ptr::without_provenance_mut(0x1234_5670);
        assert_eq!(driver.launch_in(wrong, 1), 400);
        let seen = SEEN.lock().unwrap().clone();
        assert_eq!(seen[1].returned, Some(400));
        let truth = gpu.truth();
        assert_eq!((truth.calls[0].result, truth.calls[0].operations), (400, 0));
        assert!(truth.operations.is_empty());
    });
}

#[test]
fn whole_domains_and_names_of_ids() {
    isolated(&format!("{NAME}::whole_domains_and_names_of_ids"), || {
        load(Config::default()).unwrap();
        let driver = Driver::open();
        let cupti = Cupti::open();
        let subscriber = cupti.subscribe(note).unwrap();
        assert_eq!(
            call!(cupti.library, "cuptiEnableDomain"(1 => u32, subscriber => *mut c_void, 1 => u32)),
            0
        );
        driver.synchronize();
        assert_eq!(
            call!(cupti.library, "cuptiEnableDomain"(0 => u32, subscriber => *mut c_void, 1 => u32)),
            0
        );
        driver.synchronize();
        let seen = SEEN.lock().unwrap().clone();
        assert_eq!(
            seen.iter()
                .map(|seen| seen.function.as_str())
                .collect::<Vec<_>>(),
            ["cuStreamSynchronize"; 2]
        );
        let name = |domain: u32, cbid: u32| {
            let mut name = std::ptr::null();
            let code = call!(cupti.library, "cuptiGetCallbackName"(domain => u32, cbid => u32, &mut name => *mut *const std::ffi::c_char));
            if code != 0 {
                return Err(code);
            }
            // SAFETY: a constant of the library.
            Ok(unsafe { CStr::from_ptr(name) }.to_str().unwrap())
        };
        assert_eq!(name(1, 307), Ok("cuLaunchKernel"));
        assert_eq!(name(1, 514), Ok("cuGraphLaunch"));
        assert_eq!(name(2, 211), Ok("cudaLaunchKernel_v7000"));
        assert_eq!(name(1, 100_000), Err(1));
        assert_eq!(name(3, 1), Err(1));
    });
}

static INSIDE: Mutex<Option<Driver>> = Mutex::new(None);

unsafe extern "C" fn launch_inside(_: *mut c_void, _: u32, _: u32, data: *const CallbackData) {
    // SAFETY: as above.
    unsafe { note(std::ptr::null_mut(), 1, LAUNCH_KERNEL, data) };
    let driver = INSIDE.lock().unwrap();
    driver.as_ref().unwrap().synchronize();
}

#[test]
fn calls_made_inside_a_callback_are_not_traced() {
    isolated(
        &format!("{NAME}::calls_made_inside_a_callback_are_not_traced"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            *INSIDE.lock().unwrap() = Some(Driver::open());
            let cupti = Cupti::open();
            let subscriber = cupti.subscribe(launch_inside).unwrap();
            assert_eq!(
                call!(cupti.library, "cuptiEnableAllDomains"(1 => u32, subscriber => *mut c_void)),
                0
            );
            driver.launch(1);
            assert_eq!(SEEN.lock().unwrap().len(), 2);
        },
    );
}
