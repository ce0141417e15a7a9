//! A trace in, a recording out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use lineage_import::{CollectError, Collector, ProcessDescription, Recorder, Recording, Skip};

use crate::category::Category;
use crate::document::{Broken, Document, Element, Part};
use crate::error::{ImportError, ImportErrorKind};
use crate::event::{Event, Phase};
use crate::fields::{Malformed, Text, Value};
use crate::header::Header;
use crate::input::{Blocks, End};
use crate::number::whole;
use crate::ranges::OpenRanges;
use crate::records::Records;
use crate::settings::Settings;
use crate::window::Window;

/// How far an import has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of the file that were read, as they lie in it: compressed, if it is.
    pub bytes_read: u64,
    /// Bytes of the whole file; `None` where that is not known.
    pub bytes_in_all: Option<u64>,
}

/// Imports the trace in this file. `progress` is called for each quarter of a mebibyte of text.
///
/// # Errors
/// [`ImportError`] where the file cannot be opened, is no trace, or cannot be read to its end; what
/// was read before comes with it.
pub fn import(
    path: impl AsRef<Path>,
    settings: Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, ImportError> {
    let file = File::open(path).map_err(|error| ImportError::new(ImportErrorKind::Open(error)))?;
    let bytes_in_all = file.metadata().ok().map(|metadata| metadata.len());
    import_sized(file, bytes_in_all, settings, progress)
}

/// Imports the trace that is read from here, decompressing it if it is gzip.
///
/// # Errors
/// As [`import`].
pub fn import_from(
    from: impl Read + Send,
    settings: Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, ImportError> {
    import_sized(from, None, settings, progress)
}

fn import_sized(
    from: impl Read + Send,
    bytes_in_all: Option<u64>,
    settings: Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, ImportError> {
    let limit = settings.text_bytes_at_most;
    let bytes_read = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let blocks = Blocks::read(scope, from, limit, &bytes_read);
        let mut document = Document::new(Window::new(blocks));
        let mut importer = Importer::new(settings);
        let mut report = |bytes_read| {
            progress(Progress {
                bytes_read,
                bytes_in_all,
            });
        };
        let stopped = importer.read(&mut document, &mut report)?;
        report(document.window().bytes_read());
        let Some(kind) = why(stopped, &mut document, limit) else {
            return Ok(importer.finish()?);
        };
        if !document.events_found() {
            return Err(ImportError::new(kind));
        }
        importer.records.collector.note(kind.to_string());
        importer.records.collector.skip(Skip::Truncated);
        Err(ImportError::with_partial(kind, importer.finish()?))
    })
}

/// What is wrong with a file that was read up to here: `None` if it is whole.
fn why(
    stopped: Option<Broken>,
    document: &mut Document<'_>,
    limit: u64,
) -> Option<ImportErrorKind> {
    let at = document.window().offset();
    match stopped {
        Some(Broken::Malformed(expected)) => {
            return Some(ImportErrorKind::Malformed { at, expected });
        }
        Some(Broken::NoTrace) if document.window().peek().is_some() => {
            return Some(ImportErrorKind::NotATrace);
        }
        _ => {}
    }
    Some(match document.window().take_end() {
        End::Unreadable(error) => ImportErrorKind::Read(error),
        End::BadGzip(source) => ImportErrorKind::Damaged {
            text_bytes: at,
            source,
        },
        End::TooMuch => ImportErrorKind::TooMuchText { limit },
        End::CutGzip => ImportErrorKind::Truncated { text_bytes: at },
        End::OfFile => match stopped {
            None if document.events_found() => return None,
            None | Some(Broken::NoTrace) => ImportErrorKind::NotATrace,
            Some(_) => ImportErrorKind::Truncated { text_bytes: at },
        },
    })
}

/// Processes that are told apart, to say that there were several.
const PROCESSES_TOLD_APART: usize = 64;
/// Kinds of records without a join that are told apart.
const KINDS_TOLD_APART: usize = 256;

struct Importer {
    records: Records,
    header: Header,
    open: OpenRanges,
    others: Others,
    /// API calls of each process, by the `pid` that the file gives them.
    processes: BTreeMap<u64, u64>,
    /// Names of processes by their `pid`.
    process_names: BTreeMap<u64, String>,
}

impl Importer {
    fn new(settings: Settings) -> Self {
        let mut collector = Collector::new(Recorder::Kineto, settings.collect);
        let process = collector.process(ProcessDescription::default());
        Self {
            records: Records {
                collector,
                process,
                not_finite: 0,
                queued: 0,
            },
            header: Header::default(),
            open: OpenRanges::default(),
            others: Others::default(),
            processes: BTreeMap::new(),
            process_names: BTreeMap::new(),
        }
    }

    /// Reads the trace to its end: `None`, or why it could not be.
    fn read(
        &mut self,
        document: &mut Document<'_>,
        report: &mut dyn FnMut(u64),
    ) -> Result<Option<Broken>, CollectError> {
        let mut blocks_reported = 0;
        loop {
            match document.next_part() {
                Ok(Part::Element) => {
                    if let Err(broken) = self.element(document)? {
                        return Ok(Some(broken));
                    }
                }
                Ok(Part::Member(key, value)) => {
                    if !self.header.take(key, value) {
                        self.member_not_read(key);
                    }
                }
                Ok(Part::UnreadMember(key)) => self.member_not_read(key),
                Ok(Part::End) => return Ok(None),
                Err(broken) => return Ok(Some(broken)),
            }
            let blocks_taken = document.window().blocks_taken();
            if blocks_taken != blocks_reported {
                blocks_reported = blocks_taken;
                report(document.window().bytes_read());
            }
        }
    }

    /// Takes the element of the list of events that comes next.
    fn element(&mut self, document: &mut Document<'_>) -> Result<Result<(), Broken>, CollectError> {
        let text = document.element_and_more();
        if let (Some(b'{'), Ok(event)) = (text.first(), Event::read(text)) {
            let length = event.length;
            self.event(&event, &text[..length])?;
            document.step_over(length);
            return Ok(Ok(()));
        }
        // It goes on behind what is held, or something is wrong with it.
        let why = match document.whole_element() {
            Ok(Element::Event(text)) => match Event::read(text) {
                Ok(event) => return self.event(&event, text).map(Ok),
                Err(Malformed) => Skip::Malformed,
            },
            Ok(Element::NoEvent) => Skip::WrongType,
            Ok(Element::LongEvent) => Skip::TooLong,
            Ok(Element::DeepEvent) => Skip::TooDeep,
            Err(broken) => return Ok(Err(broken)),
        };
        self.records.collector.skip(why);
        Ok(Ok(()))
    }

    fn event(&mut self, event: &Event<'_>, text: &[u8]) -> Result<(), CollectError> {
        match event.phase {
            Phase::Complete => self.complete(event, None),
            Phase::Begin => self.begin(event, text),
            Phase::End => self.end(event),
            Phase::Metadata => {
                self.metadata(event);
                Ok(())
            }
            Phase::Other if event.is_empty => Ok(()),
            Phase::Other => {
                self.others.count(&event.category_name);
                Ok(())
            }
        }
    }

    fn complete(&mut self, event: &Event<'_>, end: Option<Value<'_>>) -> Result<(), CollectError> {
        match event.category {
            Category::Other => {
                self.others.count(&event.category_name);
                return Ok(());
            }
            Category::Api => {
                if let Some(pid) = pid(event) {
                    if self.processes.len() < PROCESSES_TOLD_APART {
                        *self.processes.entry(pid).or_default() += 1;
                    } else if let Some(calls) = self.processes.get_mut(&pid) {
                        *calls += 1;
                    }
                }
            }
            _ => {}
        }
        self.records.take(event, end)
    }

    fn begin(&mut self, event: &Event<'_>, text: &[u8]) -> Result<(), CollectError> {
        let kept = (event.category != Category::Other).then_some(text);
        if kept.is_none() {
            self.others.count(&event.category_name);
        }
        if self.open.begin(event.process, event.thread, kept) {
            return Ok(());
        }
        self.records.collector.skip(Skip::UnclosedRange);
        match kept {
            Some(_) => self.complete(event, None),
            None => Ok(()),
        }
    }

    fn end(&mut self, event: &Event<'_>) -> Result<(), CollectError> {
        match self.open.end(event.process, event.thread) {
            Some(Some(text)) => match Event::read(&text) {
                Ok(begun) => self.complete(&begun, event.timestamp),
                // It was read before.
                Err(Malformed) => Ok(()),
            },
            Some(None) => Ok(()),
            None => {
                self.records.collector.skip(Skip::UnclosedRange);
                Ok(())
            }
        }
    }

    /// Metadata name processes and threads. The process's own name is wanted.
    fn metadata(&mut self, event: &Event<'_>) {
        self.others.count(b"metadata");
        if event.name.map(Text::raw) != Some(b"process_name") {
            return;
        }
        if let (Some(pid), Some(name)) = (pid(event), event.args.name)
            && self.process_names.len() < PROCESSES_TOLD_APART
        {
            self.process_names.insert(pid, name.decode().into_owned());
        }
    }

    fn member_not_read(&mut self, key: &[u8]) {
        const LONGEST: usize = 64;
        let key = String::from_utf8_lossy(&key[..key.len().min(LONGEST)]);
        let note = format!("the member `{key}` of the trace could not be read");
        self.records.collector.note(note);
    }

    fn finish(mut self) -> Result<Recording, CollectError> {
        for begun in self.open.take_open() {
            let text = begun.unwrap_or_default();
            match Event::read(&text) {
                // The collector counts it, if it is to be an epoch.
                Ok(event) if event.category == Category::Annotation => {
                    self.complete(&event, None)?;
                }
                Ok(event) => {
                    self.records.collector.skip(Skip::UnclosedRange);
                    self.complete(&event, None)?;
                }
                Err(Malformed) => self.records.collector.skip(Skip::UnclosedRange),
            }
        }
        let Records {
            mut collector,
            process,
            not_finite,
            queued,
        } = self.records;
        let most_calls = self.processes.iter().max_by_key(|&(_, calls)| calls);
        let pid = most_calls.map(|(&pid, _)| pid);
        collector.describe(
            process,
            ProcessDescription {
                pid,
                name: pid.and_then(|pid| self.process_names.remove(&pid)),
                rank: self.header.rank,
            },
        );
        if self.processes.len() > 1 {
            collector.note(
                "calls of several processes are in this file, and its device work does not say \
                 which asked for it: joins between them cannot be told apart; import each \
                 process's own trace",
            );
        }
        if let Some(base_ns) = self.header.base_ns {
            collector.times_are_relative_to(base_ns);
        }
        if let Some(versions) = self.header.versions() {
            collector.version(versions);
        }
        for device in self.header.devices {
            collector.device(device);
        }
        for (kind, count) in self.others.kinds {
            collector.other(&String::from_utf8_lossy(&kind), count);
        }
        for (what, count) in [
            ("other kinds", self.others.more),
            ("queued times (not used)", queued),
            ("NaN and infinite values", not_finite),
        ] {
            if count > 0 {
                collector.other(what, count);
            }
        }
        collector.finish()
    }
}

/// The number of the process that an event names, where it is one: a device's events name the
/// device, and those of the profiler itself have a word.
fn pid(event: &Event<'_>) -> Option<u64> {
    let number = whole(event.process?).ok()?;
    u64::try_from(number).ok()
}

/// Records that no join needs, by their category.
#[derive(Debug, Default)]
struct Others {
    kinds: Vec<(Box<[u8]>, u64)>,
    /// Of kinds beyond those told apart.
    more: u64,
    /// The kind that was counted last: most come in rows.
    last: usize,
}

impl Others {
    fn count(&mut self, kind: &[u8]) {
        const LONGEST: usize = 64;
        const NO_CATEGORY: &[u8] = b"without a category";
        let kind = match &kind[..kind.len().min(LONGEST)] {
            b"" => NO_CATEGORY,
            kind => kind,
        };
        if let Some((last, count)) = self.kinds.get_mut(self.last)
            && **last == *kind
        {
            *count += 1;
            return;
        }
        match self.kinds.iter().position(|(known, _)| **known == *kind) {
            Some(known) => {
                self.kinds[known].1 += 1;
                self.last = known;
            }
            None if self.kinds.len() < KINDS_TOLD_APART => {
                self.last = self.kinds.len();
                self.kinds.push((kind.into(), 1));
            }
            None => self.more += 1,
        }
    }
}
