//! Which threads' switches a live session collected, and why not those of the others.

use std::collections::{BTreeMap, BTreeSet};

use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::SchedulerSession;

use crate::text::{counted, thousands};

/// Reasons that are told apart; threads of further ones are counted together.
const REASONS: usize = 16;
/// Threads that are told apart for each reason.
const THREADS: usize = 1 << 16;

/// What a ledger says of its scheduler evidence.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    absent: BTreeSet<String>,
    watched: BTreeSet<(ProcessOrdinal, u64)>,
    /// Threads of which only the waits for a processor were counted, by why.
    run_queue_only: ByReason,
    /// Threads of which nothing is known from some time on, by why.
    unwatched: ByReason,
    lost: u64,
}

type ByReason = BTreeMap<String, BTreeSet<(ProcessOrdinal, u64)>>;

fn add(to: &mut ByReason, why: &str, thread: (ProcessOrdinal, u64)) {
    let why = if to.len() < REASONS || to.contains_key(why) {
        why
    } else {
        "other reasons"
    };
    let threads = to.entry(why.to_owned()).or_default();
    if threads.len() < THREADS {
        threads.insert(thread);
    }
}

impl Scheduler {
    pub(super) fn learn(&mut self, process: ProcessOrdinal, session: &SchedulerSession) {
        match session {
            SchedulerSession::Absent { why, .. } if self.absent.len() < REASONS => {
                self.absent.insert(why.to_string());
            }
            SchedulerSession::Watched { tid, .. } if self.watched.len() < THREADS => {
                self.watched.insert((process, *tid));
            }
            SchedulerSession::RunQueueOnly { tid, why, .. } => {
                add(&mut self.run_queue_only, why, (process, *tid));
            }
            SchedulerSession::Unwatched { tid, why, .. } => {
                add(&mut self.unwatched, why, (process, *tid));
            }
            SchedulerSession::Lost { count, .. } => self.lost = self.lost.saturating_add(*count),
            _ => {}
        }
    }

    /// What a person should know of it: what is not there, and why.
    pub(super) fn notes(&self) -> Vec<String> {
        let absent = self.absent.iter();
        let mut notes: Vec<String> = absent
            .map(|why| format!("no scheduler evidence: {why}"))
            .collect();
        let less = [
            (
                &self.run_queue_only,
                "only how long it waited for a processor is known, not when",
                "only how long they waited for a processor is known, not when",
            ),
            (
                &self.unwatched,
                "whether it was off its processor is not known",
                "whether they were off their processors is not known",
            ),
        ];
        for (threads, of_one, of_many) in less {
            for (why, threads) in threads {
                let known = if threads.len() == 1 { of_one } else { of_many };
                let threads = counted(threads.len() as u64, "thread", "threads");
                notes.push(format!("of {threads} {known}: {why}"));
            }
        }
        if !notes.is_empty() && !self.watched.is_empty() {
            let threads = counted(self.watched.len() as u64, "thread was", "threads were");
            notes.push(format!("{threads} watched, switch by switch"));
        }
        if self.lost > 0 {
            let lost = thousands(self.lost);
            notes.push(format!(
                "{lost} scheduler records were lost: around them it is not known whether their threads ran"
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use lineage_core::id::HostNanos;

    use super::*;

    #[test]
    fn why_a_thread_was_not_watched_is_said_once_for_all_threads_it_holds_for() {
        let at = HostNanos(1);
        let unwatched = |tid, why: &str| SchedulerSession::Unwatched {
            tid,
            why: why.into(),
            at,
        };
        let mut scheduler = Scheduler::default();
        for (process, session) in [
            (0, unwatched(7, "too many open files")),
            (0, unwatched(7, "too many open files")),
            (1, unwatched(7, "too many open files")),
            (
                0,
                SchedulerSession::RunQueueOnly {
                    tid: 8,
                    why: "perf_event_paranoid is 4".into(),
                    at,
                },
            ),
            (
                0,
                SchedulerSession::Watched {
                    tid: 9,
                    at,
                    running: None,
                },
            ),
        ] {
            scheduler.learn(ProcessOrdinal(process), &session);
        }
        assert_eq!(
            scheduler.notes(),
            [
                "of 1 thread only how long it waited for a processor is known, not when: perf_event_paranoid is 4",
                "of 2 threads whether they were off their processors is not known: too many open files",
                "1 thread was watched, switch by switch",
            ]
        );
    }

    #[test]
    fn where_all_threads_were_watched_nothing_need_be_said() {
        let mut scheduler = Scheduler::default();
        let watched = SchedulerSession::Watched {
            tid: 9,
            at: HostNanos(1),
            running: Some(true),
        };
        scheduler.learn(ProcessOrdinal(0), &watched);
        assert_eq!(scheduler.notes(), [""; 0]);
    }

    #[test]
    fn however_many_reasons_a_file_gives_few_are_kept() {
        let mut scheduler = Scheduler::default();
        for tid in 0..1_000 {
            let unwatched = SchedulerSession::Unwatched {
                tid,
                why: format!("reason {tid}").into(),
                at: HostNanos(1),
            };
            scheduler.learn(ProcessOrdinal(0), &unwatched);
        }
        let notes = scheduler.notes();
        assert_eq!(notes.len(), REASONS + 1);
        let others = notes.iter().find(|note| note.ends_with("other reasons"));
        assert!(others.is_some_and(|note| note.starts_with("of 984 threads")));
    }
}
