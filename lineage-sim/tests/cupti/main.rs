//! What the simulated CUPTI does, one promise per file.

#![cfg(target_os = "linux")]
#![allow(missing_docs, unreachable_pub)]
#![allow(
    clippy::macro_metavars_in_unsafe,
    reason = "`call!` takes the arguments of a C call"
)]

mod client;
mod driver;

mod a_second_subscriber_is_refused;
mod buffers_are_asked_for_filled_and_handed_back;
mod callbacks_see_the_call;
mod correlation_ids_join_calls_and_operations;
mod external_ids_precede_their_api_record;
mod kinds_and_ids_choose_what_is_recorded;
mod odd_answers_are_nvidias_codes;
mod per_thread_variants_have_ids_of_their_own;
mod records_have_nvidias_layout;
mod runtime_calls_wrap_driver_calls;
mod times_are_on_the_clients_clock;
