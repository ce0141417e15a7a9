//! Activity buffers: what is in which, in which order, and when it comes back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Barrier;
use std::time::Instant;

use lineage_cupti::sys::codes::kind;
use serde_json::{Value, json};

use super::{Answer, Arm};
use crate::check::cupti::Setup;
use crate::check::failure::Failure;
use crate::check::program::SPIN_NS;
use crate::check::record::{Domain, Record, What, operations, work_calls, work_calls_of};

/// `CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER`, a `uint8_t`.
const PER_THREAD_BUFFERS: u32 = 9;

pub(super) fn record_order(arm: &Arm) -> Result<Answer, Failure> {
    const LAUNCHES: u64 = 50;
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    program.launch(0)?;
    program.synchronize()?;
    client.take_until(|records| !operations(records).is_empty())?;
    for number in 1..=LAUNCHES {
        client.push(number << 24 | 1)?;
        program.launch(number)?;
        program.set(64)?;
        let popped = client.pop();
        if popped != Ok(number << 24 | 1) {
            return Err(Failure::unexpected(format!("popped {popped:?}")));
        }
    }
    program.synchronize()?;
    let records = client.take_until(|records| operations(records).len() as u64 >= 2 * LAUNCHES)?;

    let mut externals = 0;
    let mut beside_their_call = 0;
    for pair in records.windows(2) {
        if let What::External(external) = &pair[0].what {
            externals += 1;
            let is_beside = pair[0].buffer == pair[1].buffer
                && pair[1]
                    .api()
                    .is_some_and(|api| api.correlation == external.correlation);
            beside_their_call += usize::from(is_beside);
        }
    }
    // Places of the first API record and of the operation of each id.
    let mut call_at = HashMap::new();
    let mut operation_at = HashMap::new();
    for (place, record) in records.iter().enumerate() {
        let place = (record.buffer, place);
        match &record.what {
            What::Api(api) => {
                call_at.entry(api.correlation).or_insert(place);
            }
            What::Operation(operation) => {
                operation_at.insert(operation.correlation, place);
            }
            _ => {}
        }
    }
    let pairs: Vec<_> = operation_at
        .iter()
        .filter_map(|(id, operation)| Some((*call_at.get(id)?, *operation)))
        .filter(|(call, operation)| call.0 == operation.0)
        .collect();
    let call_first = pairs
        .iter()
        .filter(|(call, operation)| call.1 < operation.1)
        .count();
    let in_order = |times: Vec<u64>| times.windows(2).all(|pair| pair[0] <= pair[1]);
    let answer = json!({
        "external_is_just_before_its_api_record": externals > 0 && externals == beside_their_call,
        "call_and_operation_in_one_buffer": !pairs.is_empty() && pairs.len() == operation_at.len(),
        "call_before_operation": of_all(call_first, pairs.len()),
        "driver_calls_in_order_of_start":
            in_order(work_calls_of(&records, Domain::Driver).iter().map(|api| api.start).collect()),
        "operations_in_order_of_start":
            in_order(operations(&records).iter().map(|operation| operation.start).collect()),
    });
    let measured = json!({ "external_records": externals, "call_before_operation": call_first, "pairs": pairs.len() });
    Ok(Answer::new(answer, measured).with_records(&records))
}

fn of_all(some: usize, all: usize) -> &'static str {
    match some {
        _ if all == 0 => "none to compare",
        0 => "never",
        some if some == all => "always",
        _ => "sometimes",
    }
}

pub(super) fn by_thread(arm: &Arm) -> Result<Answer, Failure> {
    const THREADS: usize = 2;
    const LAUNCHES: u64 = 20;
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    // Both live until all is flushed: a thread that ends may give its buffer back.
    let launched = Barrier::new(THREADS + 1);
    let flushed = Barrier::new(THREADS + 1);
    let records = std::thread::scope(|scope| {
        let work = || {
            let outcome = program
                .use_here()
                .and_then(|()| (0..LAUNCHES).try_for_each(|label| program.launch(label)));
            launched.wait();
            flushed.wait();
            outcome
        };
        let threads = [scope.spawn(work), scope.spawn(work)];
        launched.wait();
        let records = program.synchronize().and_then(|()| {
            client
                .take_until(|records| operations(records).len() as u64 >= THREADS as u64 * LAUNCHES)
        });
        flushed.wait();
        for thread in threads {
            thread
                .join()
                .map_err(|_| Failure::unexpected("a launching thread panicked"))??;
        }
        records
    })?;

    let mut threads_of_buffer: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    let mut buffer_of_call = HashMap::new();
    for record in &records {
        if let Some(api) = record.api().filter(|api| api.is_work()) {
            threads_of_buffer
                .entry(record.buffer)
                .or_default()
                .insert(api.thread);
            buffer_of_call.insert(api.correlation, record.buffer);
        }
    }
    let threads: BTreeSet<u32> = threads_of_buffer.values().flatten().copied().collect();
    if threads.len() != THREADS {
        return Err(Failure::unexpected(format!(
            "{} threads in the records of {THREADS}",
            threads.len()
        )));
    }
    let beside = |record: &Record| {
        record.operation().is_none_or(|operation| {
            buffer_of_call.get(&operation.correlation) == Some(&record.buffer)
        })
    };
    let attribute = client.attribute(PER_THREAD_BUFFERS, 1);
    let answer = json!({
        "per_thread": threads_of_buffer.values().all(|threads| threads.len() == 1),
        "operations_are_beside_their_calls": records.iter().all(beside),
        "attribute": attribute.ok(),
        "code_of_the_attribute": attribute.err().unwrap_or(0),
    });
    let measured = json!({ "buffers": threads_of_buffer.len() });
    Ok(Answer::new(answer, measured).with_records(&records))
}

pub(super) fn flush_while_running(arm: &Arm) -> Result<Answer, Failure> {
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    program.launch(0)?;
    program.synchronize()?;
    client.take_until(|records| !operations(records).is_empty())?;
    program.launch(1)?;
    program.launch_spin()?;
    // The first one has ended by then, the second one runs.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let start = Instant::now();
    let while_running = client.take()?;
    let took_ns = start.elapsed().as_nanos() as u64;
    program.synchronize()?;
    let afterwards = client
        .take_until(|records| operations(records).len() + operations(&while_running).len() >= 2)?;
    let ended = |records: &[Record]| {
        operations(records)
            .iter()
            .filter(|operation| operation.end != 0)
            .count()
    };
    let answer = json!({
        "waits_for_the_kernel": took_ns > SPIN_NS / 2,
        "calls_given_back_while_running": work_calls_of(&while_running, Domain::Driver).len(),
        "operations_given_back_while_running": operations(&while_running).len(),
        "operations_without_end_while_running": operations(&while_running).len() - ended(&while_running),
        "operations_in_all": ended(&while_running) + ended(&afterwards),
    });
    Ok(Answer::new(answer, json!({ "flush_ns": took_ns }))
        .with_records(&while_running)
        .with_records(&afterwards))
}

pub(super) fn dropped_records(arm: &Arm) -> Result<Answer, Failure> {
    const LAUNCHES: usize = 300;
    // One buffer with room for a few dozen records.
    let setup = Setup {
        buffer_bytes: 8 << 10,
        buffers: 1,
        ..Setup::default()
    };
    let (client, program) = arm.open(&setup)?;
    client.enable(&[kind::CONCURRENT_KERNEL])?;
    client.enable_work_calls()?;
    for label in 0..LAUNCHES {
        program.launch(label as u64)?;
    }
    program.synchronize()?;
    let records = client.take_until(|records| !records.is_empty())?;
    let stream = operations(&records)
        .first()
        .map_or(0, |operation| operation.stream);
    // From the narrowest scope to the widest: each reading may reset what a wider one counts.
    let of_stream = client.dropped(program.context(), stream);
    let of_context = client.dropped(program.context(), 0);
    let of_all = client.dropped(std::ptr::null_mut(), 0);
    let again = client.dropped(std::ptr::null_mut(), 0);
    let counted = |count: Result<usize, u32>| count.map(|count| count > 0).ok();
    let (requested, denied) = client.requests();
    let sum = of_stream.unwrap_or(0) + of_context.unwrap_or(0) + of_all.unwrap_or(0);
    let answer = json!({
        "counted_for_all": counted(of_all),
        "counted_for_context": counted(of_context),
        "counted_for_stream": counted(of_stream),
        "reading_resets": of_all.is_ok_and(|count| count > 0) && again == Ok(0),
        // With runtime calls around the driver's there are more than two records for each launch.
        "count_and_records_add_up": (sum + records.len()).is_multiple_of(LAUNCHES),
    });
    let shown =
        |count: Result<usize, u32>| count.map_or_else(|code| json!({ "code": code }), Value::from);
    let measured = json!({
        "for_all": shown(of_all), "for_context": shown(of_context), "for_stream": shown(of_stream),
        "for_all_again": shown(again), "records": records.len(), "calls": work_calls(&records).len(),
        "buffers_requested": requested, "buffers_denied": denied,
    });
    Ok(Answer::new(answer, measured).with_records(&records))
}
