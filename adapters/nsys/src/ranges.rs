//! NVTX: ranges that the application named.

use lineage_import::{EpochsFrom, NameId, Range, RangeKind, Skip};

use crate::ImportError;
use crate::database::Database;
use crate::reading::{Fault, Pass, Reading, Source};
use crate::tables::{Table, Value, scan};
use crate::text;

/// To be read last: where ranges are wanted, their texts are many.
pub(crate) const RANGES: Source = Source {
    table: "NVTX_EVENTS",
    process_column: "globalTid",
    read: read_ranges,
};

/// `eventType`, as `ENUM_NSYS_EVENT_TYPE` names it in every export that has that table: NVTX and its
/// text files (`Nvtxt`).
mod kind {
    pub(super) const MARK: i64 = 34;
    pub(super) const PUSH_POP: i64 = 59;
    pub(super) const START_END: i64 = 60;
    pub(super) const TEXT_MARK: i64 = 65;
    pub(super) const TEXT_PUSH_POP: i64 = 70;
    pub(super) const TEXT_START_END: i64 = 71;
}

fn read_ranges(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let settings = reading.collector.settings();
    let by_request = settings.epochs_from == EpochsFrom::RequestIds;
    let wanted = (by_request || settings.epochs_from == EpochsFrom::Nvtx).then(|| Wanted {
        part: settings.epoch_name.clone(),
    });
    let (mut marks, mut others) = (0, 0);
    let columns = ["globalTid", "eventType", "start", "end", "text", "textId"];
    scan(database, table, columns, |values| {
        reading.other_row(|reading| {
            let [global, event, start, end, text, number] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let kind = match event.integer()?.ok_or(Skip::MissingField)? {
                kind::PUSH_POP | kind::TEXT_PUSH_POP => RangeKind::Nvtx,
                kind::START_END | kind::TEXT_START_END => RangeKind::NvtxStartEnd,
                kind::MARK | kind::TEXT_MARK => {
                    marks += 1;
                    return Ok(());
                }
                _ => {
                    others += 1;
                    return Ok(());
                }
            };
            let start_ns = start.time_ns()?.ok_or(Skip::NoTime)?;
            let end_ns = end.time_ns()?.filter(|&end_ns| end_ns >= start_ns);
            let text = match &wanted {
                Some(wanted) if kind == RangeKind::Nvtx => wanted.text(reading, text, number)?,
                _ => reading.names.unnamed(),
            };
            let range = Range {
                process: owner.process,
                tid: owner.tid,
                text,
                start_ns,
                end_ns,
                kind,
                request: by_request
                    .then(|| reading.collector.request_in(text))
                    .flatten(),
            };
            Ok(reading.collector.range(range)?)
        })
    })?;
    for (what, count) in [("NVTX marks", marks), ("NVTX names and domains", others)] {
        if count > 0 {
            reading.collector.other(what, count);
        }
    }
    Ok(())
}

/// Which ranges' texts are kept.
struct Wanted {
    /// Only those that contain this.
    part: Option<String>,
}

impl Wanted {
    /// The name of a range with its text in the row or in `StringIds`; no name where the text is
    /// not wanted.
    fn text(
        &self,
        reading: &mut Reading<'_>,
        text: Value<'_>,
        number: Value<'_>,
    ) -> Result<NameId, Fault> {
        if text.is_absent() {
            let name = reading.optional_name(number)?;
            return Ok(name.map_or(reading.names.unnamed(), |name| name.id));
        }
        let Some(text) = text::of(text, text::NAME_BYTES) else {
            return Err(Skip::WrongType.into());
        };
        let wanted = self.part.as_deref().is_none_or(|part| text.contains(part));
        Ok(match wanted {
            true => reading.collector.name(&text),
            false => reading.names.unnamed(),
        })
    }
}
