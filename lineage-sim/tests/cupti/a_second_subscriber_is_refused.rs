use std::ffi::c_void;

use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::client::{CallbackData, Cupti};

unsafe extern "C" fn ignore(_: *mut c_void, _: u32, _: u32, _: *const CallbackData) {}

#[test]
fn until_the_first_has_unsubscribed() {
    isolated(
        "a_second_subscriber_is_refused::until_the_first_has_unsubscribed",
        || {
            load(Config::default()).unwrap();
            let cupti = Cupti::open();
            let first = cupti.subscribe(ignore).unwrap();
            // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
            assert_eq!(cupti.subscribe(ignore), Err(39));
            assert_eq!(
                call!(cupti.library, "cuptiUnsubscribe"(first => *mut c_void)),
                0
            );
            // CUPTI_ERROR_INVALID_PARAMETER: it is no subscriber any more.
            assert_eq!(
                call!(cupti.library, "cuptiUnsubscribe"(first => *mut c_void)),
                1
            );
            let second = cupti.subscribe(ignore).unwrap();
            assert_ne!(first, second);
        },
    );
}

#[test]
fn by_configuration_with_any_code() {
    isolated(
        "a_second_subscriber_is_refused::by_configuration_with_any_code",
        || {
            load(
                Config::default()
                    .fail_subscribe_with(Some(39))
                    .activity_enable_fails_with(Some(35)),
            )
            .unwrap();
            let cupti = Cupti::open();
            assert_eq!(cupti.subscribe(ignore), Err(39));
            assert_eq!(call!(cupti.library, "cuptiActivityEnable"(10 => u32)), 35);
            assert_eq!(call!(cupti.library, "cuptiGetLastError"()), 35);
            assert_eq!(call!(cupti.library, "cuptiGetLastError"()), 0);
        },
    );
}
