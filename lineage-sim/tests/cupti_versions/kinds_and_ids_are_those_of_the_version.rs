use std::ffi::c_void;

use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::call;
use crate::client::{CallbackData, Cupti, DRIVER_DOMAIN};

const NAME: &str = "kinds_and_ids_are_those_of_the_version";

const RUNTIME_DOMAIN: u32 = 2;
const RESOURCE_DOMAIN: u32 = 3;

unsafe extern "C" fn ignore(_: *mut c_void, _: u32, _: u32, _: *const CallbackData) {}

/// The last activity kind, driver id, runtime id and resource id that a version takes; the next of each is refused.
fn last_are(version: CuptiVersion, kind: u32, driver: u32, runtime: u32, resource: u32) {
    load(Config::default().cupti_version(version)).unwrap();
    let cupti = Cupti::open();
    let subscriber = cupti.subscribe(ignore).unwrap();
    let enable = |domain: u32, id: u32| call!(cupti.library, "cuptiEnableCallback"(1 => u32, subscriber => *mut c_void, domain => u32, id => u32));
    let enable_kind = |kind: u32| call!(cupti.library, "cuptiActivityEnable"(kind => u32));
    // CUPTI_ERROR_INVALID_KIND and CUPTI_ERROR_INVALID_PARAMETER
    assert_eq!([enable_kind(kind), enable_kind(kind + 1)], [0, 21]);
    for (domain, last) in [
        (DRIVER_DOMAIN, driver),
        (RUNTIME_DOMAIN, runtime),
        (RESOURCE_DOMAIN, resource),
    ] {
        let answers = [enable(domain, last), enable(domain, last + 1)];
        assert_eq!(answers, [0, 1], "domain {domain}");
    }
}

/// From the enumerations of each version's headers.
macro_rules! versions {
    ($($name:ident: $version:ident, $kind:literal, $driver:literal, $runtime:literal, $resource:literal;)+) => { $(
        #[test]
        fn $name() {
            isolated(&format!("{NAME}::{}", stringify!($name)), || {
                last_are(CuptiVersion::$version, $kind, $driver, $runtime, $resource);
            });
        }
    )+ };
}
versions! {
    of_12_0: V12_0, 52, 700, 444, 20;
    of_12_4: V12_4, 52, 753, 467, 21;
    of_12_9: V12_9, 55, 783, 486, 21;
    // 22 and 23: the nodes of an exec were updated.
    of_13_0: V13_0, 55, 806, 522, 23;
    of_13_1: V13_1, 58, 845, 549, 23;
    of_13_4: V13_4, 59, 867, 565, 23;
    of_13_5: V13_5, 59, 876, 566, 25;
}
