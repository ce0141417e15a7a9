//! What differs between the versions of CUPTI, through plain calls; one promise per file.

#![cfg(target_os = "linux")]
#![allow(missing_docs, unreachable_pub)]
#![allow(
    dead_code,
    reason = "the driver and the client are shared with other tests"
)]
#![allow(
    clippy::macro_metavars_in_unsafe,
    reason = "`call!` takes the arguments of a C call"
)]

#[path = "../cupti/client.rs"]
mod client;
#[path = "../cupti/driver.rs"]
mod driver;

mod host_functions_have_records_since_13_1;
mod kinds_and_ids_are_those_of_the_version;
mod records_are_as_long_as_the_version_says;
mod subscribers_stand_beside_each_other_since_13_2;
mod waits_name_the_record_call_since_12_8;
