//! A record without a time joins if exactly one call can be meant, also where no record has a time: a
//! recording whose times are all unreadable still says which call asked for which operation.

mod correlator_support;

use correlator_support::*;
use lineage_core::fault::FaultCode;

fn timeless_call(correlation: u32) -> lineage_core::observation::ApiRecord {
    let mut call = api_of(1, correlation, 1_000);
    (call.start, call.end) = (None, None);
    call
}

#[test]
fn the_call_comes_first() {
    let run = ended([timeless_call(5).into(), kernel(5, 0, 0)]);
    let row = run.row();
    assert!(row.call.is_some() && row.operation.is_some());
    assert_eq!(row.faults, [FaultCode::L08]);
}

#[test]
fn the_operation_comes_first() {
    let run = ended([kernel(5, 0, 0), timeless_call(5).into()]);
    let row = run.row();
    assert!(row.call.is_some() && row.operation.is_some());
    assert_eq!(row.faults, [FaultCode::L08]);
}

#[test]
fn ids_in_the_upper_half_are_found_too() {
    let run = ended([timeless_call(0xffff_fff0).into(), kernel(0xffff_fff0, 0, 0)]);
    let row = run.row();
    assert!(row.call.is_some() && row.operation.is_some());
}
