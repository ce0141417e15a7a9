//! API calls: `CUPTI_ACTIVITY_KIND_RUNTIME`, which holds those of the driver too.

use lineage_import::ApiCall;

use crate::ImportError;
use crate::database::Database;
use crate::reading::{Pass, Reading, Source};
use crate::tables::{Table, scan};

pub(crate) const CALLS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_RUNTIME",
    process_column: "globalTid",
    read: read_calls,
};

fn read_calls(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let columns = [
        "globalTid",
        "correlationId",
        "start",
        "end",
        "returnValue",
        "nameId",
    ];
    reading.collector.results_recorded(table.has("returnValue"));
    scan(database, table, columns, |values| {
        reading.row(|reading| {
            let [global, correlation, start, end, result, name] = values;
            let Some(thread) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let correlation = correlation.correlation()?;
            let name = reading.optional_name(name)?;
            if let Some(kind) = name.and_then(|name| name.waits_for) {
                reading.waits.add(thread.process, correlation, kind);
            }
            let call = ApiCall {
                process: thread.process,
                correlation,
                tid: thread.tid,
                start_ns: reading.optional(start.time_ns()),
                end_ns: reading.optional(end.time_ns()),
                result: result.result()?,
                name: name.map_or(reading.names.unnamed(), |name| name.id),
                kernel: None,
            };
            Ok(reading.collector.api(call)?)
        })
    })
}
