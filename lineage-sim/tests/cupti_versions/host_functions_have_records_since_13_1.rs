use std::ffi::c_void;

use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::call;
use crate::client::{Cupti, DRIVER, HOST_LAUNCH, Record};
use crate::driver::{Driver, Handle};

const NAME: &str = "host_functions_have_records_since_13_1";

unsafe extern "C" fn nothing(_: *mut c_void) {}

#[test]
fn with_the_calls_id_and_its_stream() {
    isolated(&format!("{NAME}::with_the_calls_id_and_its_stream"), || {
        load(Config::default().cupti_version(CuptiVersion::V13_1)).unwrap();
        let driver = Driver::open();
        let cupti = Cupti::open();
        cupti.enable(&[DRIVER, HOST_LAUNCH]);
        type HostFunction = unsafe extern "C" fn(*mut c_void);
        let stream = driver.stream;
        let launched = call!(driver.library, "cuLaunchHostFunc"(stream => Handle, nothing => HostFunction, std::ptr::null_mut() => *mut c_void));
        assert_eq!(launched, 0);
        driver.synchronize();
        let records = cupti.records();
        let call = records.iter().find_map(|record| match record {
            // cuLaunchHostFunc
            Record::Api {
                cbid: 527,
                correlation,
                ..
            } => Some(*correlation),
            _ => None,
        });
        let host = records.iter().find_map(|record| match record {
            Record::HostLaunch {
                stream,
                correlation,
                process,
                start,
                end,
            } => {
                assert!(0 < *start && start <= end);
                Some((*stream, *correlation, *process))
            }
            _ => None,
        });
        assert_eq!(host, Some((13, call.unwrap(), std::process::id())));
    });
}

#[test]
fn and_not_before() {
    isolated(&format!("{NAME}::and_not_before"), || {
        load(Config::default().cupti_version(CuptiVersion::V13_0)).unwrap();
        let cupti = Cupti::open();
        // CUPTI_ERROR_INVALID_KIND
        assert_eq!(
            call!(cupti.library, "cuptiActivityEnable"(HOST_LAUNCH => u32)),
            21
        );
    });
}
