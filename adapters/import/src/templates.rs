//! Which captured call a replayed operation comes from, where only the order can say it.
//!
//! A recording without clone records and source ids (HIP's; CUDA's by other tools) does not say
//! which node of a template an operation of a graph launch is. Where the names of the captured
//! launches are recorded, and a replay's operations have exactly these names in exactly this order,
//! and no other capture has them, then the order tells: *inferred*, never observed. Equal name
//! sequences of several captures are no identity, and nothing is said then.

use std::sync::Arc;

use lineage_core::id::{HostNanos, ProcessOrdinal};
use rustc_hash::FxHashMap;

use crate::entry::{Entry, Sort};
use crate::error::CollectError;
use crate::recording::Recording;
use lineage_core::observation::OperationsDue;

/// Captured launches, and operations of replays, that are remembered of one recording.
const REMEMBERED: usize = 1 << 20;

/// A launch that was made while a capture was open, and has no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedLaunch {
    /// The recorder's number of the call.
    pub correlation: u32,
    /// The kernel's name, where the record has it.
    pub kernel: Option<Arc<str>>,
    /// When it was made.
    pub at: Option<HostNanos>,
}

/// The launches of one capture, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The process.
    pub process: ProcessOrdinal,
    /// The launches.
    pub launches: Vec<CapturedLaunch>,
}

/// The operations of one graph launch, in the order in which they began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The process.
    pub process: ProcessOrdinal,
    /// The recorder's number of the launch.
    pub correlation: u32,
    /// The names of its kernels.
    pub kernels: Vec<Option<Arc<str>>>,
}

/// What is known of a replay's template.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateMatch {
    /// Each operation comes from the launch of this capture that has the same place: inferred by
    /// capture order.
    ByCaptureOrder {
        /// Which of the captures.
        capture: usize,
    },
    /// Several captures have these names in this order.
    Ambiguous {
        /// How many.
        captures: usize,
    },
    /// No capture has.
    None,
}

/// Holds replays against captures: of one recording, or of several of the same program.
pub fn match_templates(captures: &[Capture], replays: &[Replay]) -> Vec<TemplateMatch> {
    let names = |capture: &Capture| -> Option<Vec<Arc<str>>> {
        let names = capture.launches.iter().map(|launch| launch.kernel.clone());
        names.collect()
    };
    let mut by_names: FxHashMap<Vec<Arc<str>>, Vec<usize>> = FxHashMap::default();
    for (number, capture) in captures.iter().enumerate() {
        if let Some(names) = names(capture).filter(|names| !names.is_empty()) {
            by_names.entry(names).or_default().push(number);
        }
    }
    let of = |replay: &Replay| {
        let names: Option<Vec<Arc<str>>> = replay.kernels.iter().cloned().collect();
        match names
            .and_then(|names| by_names.get(&names))
            .map(Vec::as_slice)
        {
            None | Some([]) => TemplateMatch::None,
            Some(&[capture]) => TemplateMatch::ByCaptureOrder { capture },
            Some(several) => TemplateMatch::Ambiguous {
                captures: several.len(),
            },
        }
    };
    replays.iter().map(of).collect()
}

impl Recording {
    /// The captures whose launches the recording names, and its graph launches: what
    /// [`match_templates`] takes. What is beyond a million launches is left out.
    ///
    /// # Errors
    /// Those of the temporary file, if records did not fit into memory.
    pub fn captures_and_replays(&self) -> Result<(Vec<Capture>, Vec<Replay>), CollectError> {
        let mut captures: Vec<Capture> = Vec::new();
        let mut replays: Vec<Replay> = Vec::new();
        let mut remembered = 0;
        let mut open: Option<(u32, usize)> = None;
        let mut of_id: Vec<Entry> = Vec::new();
        let mut entries = self.calls.iter()?;
        loop {
            let next = entries.next().transpose()?;
            let is_same = |entry: &Entry| {
                of_id.first().is_some_and(|first| {
                    first.wire != 0 && (first.process, first.wire) == (entry.process, entry.wire)
                })
            };
            if let Some(entry) = next
                && (of_id.is_empty() || is_same(&entry))
            {
                of_id.push(entry);
                continue;
            }
            remembered += self.take_id(&of_id, &mut open, &mut captures, &mut replays);
            of_id.clear();
            match next {
                Some(entry) if remembered < REMEMBERED => of_id.push(entry),
                _ => break,
            }
        }
        captures.retain(|capture| !capture.launches.is_empty());
        Ok((captures, replays))
    }

    /// What the records of one id add; how many launches and operations that are.
    fn take_id(
        &self,
        of_id: &[Entry],
        open: &mut Option<(u32, usize)>,
        captures: &mut Vec<Capture>,
        replays: &mut Vec<Replay>,
    ) -> usize {
        let Some(call) = of_id.iter().find(|entry| entry.is_call()) else {
            return 0;
        };
        let function = self.function(call.name());
        let of_process = self.captures.get(call.process as usize);
        if function.graph_launch {
            let mut kernels: Vec<&Entry> =
                of_id.iter().filter(|e| e.sort() == Sort::Kernel).collect();
            if kernels.is_empty() {
                return 0;
            }
            kernels.sort_by_key(|kernel| kernel.start());
            let names = kernels.iter().map(|kernel| self.text_of(kernel.name()));
            replays.push(Replay {
                process: call.process(),
                correlation: call.wire,
                kernels: names.collect(),
            });
            return kernels.len();
        }
        let due = of_process.map(|captures| captures.due(call, function));
        let captured = match due {
            Some(OperationsDue::MaybeCaptured) => true,
            // A node made inside of it says so.
            Some(OperationsDue::None) => function.due == OperationsDue::One,
            _ => false,
        };
        let is_launch = function.due == OperationsDue::One;
        if !captured || !is_launch || of_id.iter().any(Entry::is_operation) {
            return 0;
        }
        let number = of_process.and_then(|captures| captures.number_at(call));
        let Some(number) = number else { return 0 };
        if *open != Some((call.process, number)) {
            *open = Some((call.process, number));
            captures.push(Capture {
                process: call.process(),
                launches: Vec::new(),
            });
        }
        if let Some(capture) = captures.last_mut() {
            capture.launches.push(CapturedLaunch {
                correlation: call.wire,
                kernel: self.text_of(call.kernel()),
                at: call.start().map(HostNanos),
            });
        }
        1
    }

    fn text_of(&self, name: Option<crate::names::NameId>) -> Option<Arc<str>> {
        name.and_then(|name| self.text(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<Option<Arc<str>>> {
        text.split(' ').map(|name| Some(Arc::from(name))).collect()
    }

    fn capture(text: &str) -> Capture {
        let launches = names(text).into_iter().zip(1..);
        Capture {
            process: ProcessOrdinal(0),
            launches: launches
                .map(|(kernel, correlation)| CapturedLaunch {
                    correlation,
                    kernel,
                    at: None,
                })
                .collect(),
        }
    }

    fn replay(text: &str) -> Replay {
        Replay {
            process: ProcessOrdinal(0),
            correlation: 9,
            kernels: names(text),
        }
    }

    #[test]
    fn the_order_tells_only_where_exactly_one_capture_has_it() {
        let captures = [
            capture("a b c"),
            capture("a b"),
            capture("x y"),
            capture("x y"),
        ];
        let replays = ["a b c", "a b", "x y", "b a c", "a b c d"].map(replay);
        assert_eq!(
            match_templates(&captures, &replays),
            [
                TemplateMatch::ByCaptureOrder { capture: 0 },
                TemplateMatch::ByCaptureOrder { capture: 1 },
                TemplateMatch::Ambiguous { captures: 2 },
                TemplateMatch::None,
                TemplateMatch::None,
            ]
        );
    }

    #[test]
    fn a_launch_without_a_name_identifies_nothing() {
        let mut unnamed = capture("a b");
        unnamed.launches[1].kernel = None;
        assert_eq!(
            match_templates(&[unnamed], &[replay("a b")]),
            [TemplateMatch::None]
        );
    }
}
