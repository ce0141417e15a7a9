//! Device sessions, and up to where each thread's records are known to have come.

use std::collections::BTreeMap;

use lineage_core::id::HostNanos;
use lineage_core::observation::DeviceSession;

use super::gather::Gathered;

/// The device sessions of a process.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// Start and number, in order of time.
    starts: Vec<(HostNanos, u32)>,
    /// When each ended; at 0 where only its last flush says so.
    ended: BTreeMap<u32, HostNanos>,
    /// Up to where each thread's records have come, by session and thread.
    fences: BTreeMap<(u32, u64), HostNanos>,
    /// The last flush of each session: when it was asked for, and its place in the stream.
    last_flush: BTreeMap<u32, HostNanos>,
    numbers: Vec<u32>,
    /// Whether any is another tool's recording: its epochs are candidates, and none is ever due.
    pub(crate) imported: bool,
    /// Why there is no device evidence, where a session says so.
    pub(crate) absent: Option<String>,
}

impl Sessions {
    pub(crate) fn new(gathered: &Gathered<'_>) -> Self {
        let mut sessions = Self::default();
        for seen in &gathered.device_sessions {
            match seen.what {
                DeviceSession::Started { session, at, .. } => sessions.starts.push((*at, *session)),
                DeviceSession::Ended { session, at } => {
                    sessions.ended.insert(*session, *at);
                }
                DeviceSession::Imported { session, at, .. } => {
                    sessions.imported = true;
                    sessions.starts.push((*at, *session));
                }
                DeviceSession::Absent { why, .. } => sessions.absent = Some(why.to_string()),
                _ => {}
            }
        }
        sessions.starts.sort_unstable();
        for seen in &gathered.flushes {
            let flush = seen.what;
            if flush.last {
                sessions.ended.entry(flush.session).or_default();
            }
            let last = sessions.last_flush.entry(flush.session).or_default();
            *last = flush.asked.max(*last);
        }
        sessions
            .numbers
            .extend(sessions.starts.iter().map(|(_, session)| *session));
        sessions
            .numbers
            .extend(gathered.apis.iter().map(|seen| seen.what.session));
        sessions
            .numbers
            .extend(gathered.operations.iter().map(|seen| seen.what.session));
        sessions.numbers.sort_unstable();
        sessions.numbers.dedup();
        sessions.fence(gathered);
        sessions
    }

    /// A thread's fence: a flush returned, and a later record of the thread came after it.
    fn fence(&mut self, gathered: &Gathered<'_>) {
        // Of each session, the flushes in the order of the stream and of time.
        let mut flushes: BTreeMap<u32, Vec<(usize, HostNanos)>> = BTreeMap::new();
        for seen in &gathered.flushes {
            let of_session = flushes.entry(seen.what.session).or_default();
            if of_session
                .last()
                .is_none_or(|(_, asked)| *asked <= seen.what.asked)
            {
                of_session.push((seen.place, seen.what.asked));
            }
        }
        for seen in &gathered.apis {
            let record = seen.what;
            let (Some(start), Some(flushes)) = (record.start, flushes.get(&record.session)) else {
                continue;
            };
            let in_stream = flushes.partition_point(|(place, _)| *place < seen.place);
            let in_time = flushes.partition_point(|(_, asked)| *asked <= start);
            let passed = in_stream.min(in_time).checked_sub(1);
            if let Some((_, asked)) = passed.and_then(|last| flushes.get(last)) {
                let fence = self.fences.entry((record.session, record.tid)).or_default();
                *fence = (*asked).max(*fence);
            }
        }
    }

    /// The session in which our own callback was made: it does not know.
    pub(crate) fn at(&self, at: HostNanos) -> u32 {
        let begun = self.starts.partition_point(|(start, _)| *start <= at);
        let started = self
            .starts
            .get(begun.saturating_sub(1))
            .map(|(_, session)| *session);
        started.or(self.numbers.first().copied()).unwrap_or(1)
    }

    /// Whether everything of this session has come.
    pub(crate) fn has_ended(&self, session: u32) -> bool {
        self.ended.contains_key(&session)
    }

    /// Whether every session has ended, and there was one.
    pub(crate) fn all_ended(&self) -> bool {
        !self.numbers.is_empty() && self.numbers.iter().all(|&session| self.has_ended(session))
    }

    /// Whether all that a thread did until then has come.
    pub(crate) fn has_come(&self, session: u32, tid: u64, until: Option<HostNanos>) -> bool {
        let fence = self.fences.get(&(session, tid));
        self.has_ended(session)
            || until
                .zip(fence.copied())
                .is_some_and(|(until, fence)| until <= fence)
    }

    /// Whether launches between two times would have been seen, and have been handed over.
    pub(crate) fn launches_seen(&self, from: HostNanos, until: HostNanos) -> bool {
        if self.starts.is_empty() {
            // An import: its sessions are as long as its records say.
            return self.all_ended();
        }
        self.starts.iter().any(|&(start, session)| {
            let end = self.ended.get(&session).copied().unwrap_or_default();
            let open_until_then = end == HostNanos(0) || until <= end;
            let handed_over = self.has_ended(session)
                || self
                    .last_flush
                    .get(&session)
                    .is_some_and(|asked| until <= *asked);
            start <= from && open_until_then && handed_over
        })
    }

    /// Whether any device evidence was collected.
    pub(crate) fn any(&self) -> bool {
        !self.numbers.is_empty()
    }
}
