//! What the system did with threads: the scheduler's events and calls of the system's libraries.

use lineage_import::{OsCall, Scheduled, Skip};

use crate::ImportError;
use crate::database::Database;
use crate::reading::{Pass, Reading, Source};
use crate::tables::{Schema, Table, Value, scan};
use crate::thread_states::ThreadStates;

/// `eventClass` of a call. The others mark where the library's tracing began and ended.
const OS_RUNTIME: i64 = 27;

pub(crate) const OS_CALLS: Source = Source {
    table: "OSRT_API",
    process_column: "globalTid",
    read: read_os_calls,
};

fn read_os_calls(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let columns = ["globalTid", "eventClass", "nameId", "start", "end"];
    let mut marks = 0;
    scan(database, table, columns, |values| {
        reading.other_row(|reading| {
            let [global, class, name, start, end] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            if !matches!(class, Value::Absent | Value::Integer(OS_RUNTIME)) {
                marks += 1;
                return Ok(());
            }
            let name = reading.optional_name(name)?;
            let call = OsCall {
                process: owner.process,
                tid: owner.tid,
                name: name.map_or(reading.names.unnamed(), |name| name.id),
                start_ns: start.time_ns()?.ok_or(Skip::NoTime)?,
                end_ns: reading.optional(end.time_ns()),
            };
            Ok(reading.collector.os_call(call)?)
        })
    })?;
    if marks > 0 {
        reading
            .collector
            .other("marks of the OS runtime's tracing", marks);
    }
    Ok(())
}

/// The table of the scheduler's events.
pub(crate) const SCHEDULED: &str = "SCHED_EVENTS";

/// Reads the scheduler's events. A capture of a whole machine has those of every process: where no
/// other record speaks of the process, they are the thread's alone. So this comes after the others.
pub(crate) fn read_scheduled(
    database: &Database,
    schema: &Schema,
    table: &Table,
    reading: &mut Reading<'_>,
) -> Result<(), ImportError> {
    let states = ThreadStates::read(database, schema)?;
    let columns = [
        "globalTid",
        "start",
        "cpu",
        "isSchedIn",
        "threadState",
        "threadBlock",
    ];
    scan(database, table, columns, |values| {
        reading.other_row(|reading| {
            let [global, start, cpu, running, state, block] = values;
            let global = global.bits()?.ok_or(Skip::MissingField)?;
            let (process, tid) = reading.processes.known_thread(global);
            let running = running.integer()?.ok_or(Skip::MissingField)? != 0;
            let off = states.off(state, block).filter(|_| !running);
            let state: Option<u32> = reading.optional(state.number());
            let scheduled = Scheduled {
                process,
                tid,
                at_ns: start.time_ns()?.ok_or(Skip::NoTime)?,
                cpu: reading.optional(cpu.id()),
                running,
                off,
                // 0 stands for an unknown state, which is all that is recorded of threads that go on.
                state: state.filter(|&state| state != 0),
            };
            Ok(reading.collector.scheduled(scheduled)?)
        })
    })
}
