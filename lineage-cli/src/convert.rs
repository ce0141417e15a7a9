//! `lineage convert`: a ledger in another form.

use std::fs::File;
use std::path::Path;

use lineage_arrow::export::Sqlite;
use lineage_core::ledger::{Entry, Writer};
use lineage_core::source::{SessionInfo, Sink};

use crate::arguments::Convert;
use crate::input::{self, Format, Read, Refusal};
use crate::terminal::Terminal;
use crate::text::{counted, printable_path, printable_text};
use crate::{BAD, FINE};

/// Why nothing was converted.
#[derive(Debug, thiserror::Error)]
enum CannotConvert {
    #[error("{0}")]
    Read(#[from] Refusal),
    #[error("{source}; what was converted before that is in {to}, without an end: remove it")]
    HalfRead { to: String, source: Box<Refusal> },
    #[error("{0}: another tool's recording; only ledgers of lineage's own are converted")]
    NotALedger(String),
    #[error(
        "{0}: its name says no form that can be written; end it in .jsonl, .lineage, .sqlite or .parquet"
    )]
    NoForm(String),
    #[error("{0}: is there already; name another file, or remove it")]
    Exists(String),
    #[cfg(not(feature = "parquet"))]
    #[error(
        "{0}: this `lineage` was built without Parquet; build it with `--features parquet`, or write .sqlite, which DuckDB reads, too"
    )]
    NoParquet(String),
    #[error("{to}: {}", printable_text(why))]
    Write { to: String, why: String },
}

/// Converts one ledger.
pub(crate) fn run(arguments: &Convert, terminal: &mut Terminal) -> u8 {
    match convert(&arguments.from, &arguments.to) {
        Ok((read, said)) => {
            for note in read.notes() {
                let (from, note) = (printable_path(&arguments.from), printable_text(&note));
                terminal.complain(&format!("{from}: {note}"));
            }
            terminal.print(&said);
            FINE
        }
        Err(error) => {
            terminal.complain(&error.to_string());
            BAD
        }
    }
}

fn convert(from: &Path, to: &Path) -> Result<(Read, String), CannotConvert> {
    let name = printable_path(to);
    let extension = to.extension().and_then(|of| of.to_str());
    let form = extension.unwrap_or_default().to_ascii_lowercase();
    if input::format(from)? != Format::Ledger {
        return Err(CannotConvert::NotALedger(printable_path(from)));
    }
    if to.exists() {
        return Err(CannotConvert::Exists(name));
    }
    let failed = |why: String| CannotConvert::Write {
        to: name.clone(),
        why,
    };
    let mut out: Box<dyn Out> = match form.as_str() {
        "jsonl" => {
            let file = File::create_new(to).map_err(|error| failed(error.to_string()))?;
            Box::new(Session::of(Writer::new(file), from)?)
        }
        lineage_arrow::EXTENSION => Box::new(Session::of(lineage_arrow::Writer::new(to), from)?),
        "sqlite" | "sqlite3" | "db" => {
            Box::new(Sqlite::create(to).map_err(|error| failed(error.to_string()))?)
        }
        #[cfg(feature = "parquet")]
        "parquet" => {
            let folder = lineage_arrow::export::Parquet::create(to);
            Box::new(folder.map_err(|error| failed(error.to_string()))?)
        }
        #[cfg(not(feature = "parquet"))]
        "parquet" => return Err(CannotConvert::NoParquet(name)),
        _ => return Err(CannotConvert::NoForm(name)),
    };
    let mut outcome = Ok(());
    let read = input::read(from, |entry| {
        if outcome.is_ok() {
            outcome = out.add(&entry);
        }
    });
    let read = read.map_err(|source| CannotConvert::HalfRead {
        to: name.clone(),
        source: Box::new(source),
    })?;
    outcome.map_err(failed)?;
    out.finish(read.summary.ended).map_err(failed)?;
    let counts = read.summary.read;
    let said = format!(
        "{name}: {}, {}, {}\n",
        counted(counts.observations, "observation", "observations"),
        counted(counts.rows, "row", "rows"),
        counted(counts.faults, "fault of no row", "faults of no row"),
    );
    Ok((read, said))
}

/// What entries are written to.
trait Out {
    fn add(&mut self, entry: &Entry) -> Result<(), String>;
    /// Ends it. What has no end of its own gets none, so that it is seen to lack one.
    fn finish(self: Box<Self>, ended: bool) -> Result<(), String>;
}

/// A ledger that is written as its session would have written it.
struct Session<S>(S);

impl<S: Sink> Session<S> {
    fn of(mut sink: S, from: &Path) -> Result<Self, CannotConvert> {
        let header = input::header(from)?;
        let mut info = SessionInfo::new(header.process, header.service, header.started);
        info.started_unix_ns = header.started_unix_ns;
        sink.begin(&info).map_err(|error| CannotConvert::Write {
            to: "the ledger".to_owned(),
            why: error.to_string(),
        })?;
        Ok(Self(sink))
    }
}

impl<S: Sink> Out for Session<S> {
    fn add(&mut self, entry: &Entry) -> Result<(), String> {
        match entry {
            Entry::Observation(of) => self.0.observations(std::slice::from_ref(of)),
            Entry::Row(of) => self.0.rows(std::slice::from_ref(of), &[]),
            Entry::Fault(of) => self.0.rows(&[], std::slice::from_ref(of)),
            _ => Ok(()),
        }
        .map_err(|error| error.to_string())
    }

    fn finish(mut self: Box<Self>, ended: bool) -> Result<(), String> {
        if ended {
            return self.0.finish().map_err(|error| error.to_string());
        }
        Ok(())
    }
}

impl Out for Sqlite {
    fn add(&mut self, entry: &Entry) -> Result<(), String> {
        Self::add(self, entry).map_err(|error| error.to_string())
    }

    fn finish(self: Box<Self>, _: bool) -> Result<(), String> {
        Self::finish(*self).map_err(|error| error.to_string())?;
        Ok(())
    }
}

#[cfg(feature = "parquet")]
impl Out for lineage_arrow::export::Parquet {
    fn add(&mut self, entry: &Entry) -> Result<(), String> {
        Self::add(self, entry).map_err(|error| error.to_string())
    }

    fn finish(self: Box<Self>, _: bool) -> Result<(), String> {
        Self::finish(*self).map_err(|error| error.to_string())?;
        Ok(())
    }
}
