//! From rings to observations.

use std::collections::{BTreeMap, VecDeque};
use std::sync::PoisonError;

use crate::hot::{self, Popped, Resolver, ThreadRing};
use crate::id::{DetachedReason, HostNanos, ThreadKey};
use crate::observation::{
    DropSite, Dropped, Event, Gap, Named, Observation, ThreadEnded, ThreadStarted,
};

/// The rings of one session, by thread.
pub(super) struct Rings {
    session: u32,
    open: BTreeMap<u32, Open>,
    resolver: Resolver,
}

struct Open {
    ring: ThreadRing,
    last: Option<HostNanos>,
}

impl Rings {
    pub(super) fn new(session: u32) -> Self {
        Self {
            session,
            open: BTreeMap::new(),
            resolver: Resolver::default(),
        }
    }

    /// Gives on everything that the rings hold.
    pub(super) fn drain(&mut self, out: &mut VecDeque<Observation>) {
        self.take_arrivals(out);
        let resolver = &mut self.resolver;
        self.open.retain(|_, open| {
            let (closed, closed_at) = (
                open.ring.consumer.is_closed(),
                open.ring.consumer.closed_at(),
            );
            open.drain(resolver, out);
            if closed {
                open.trailing_gap(out);
                // A ring that closed without a time was left for another session's.
                let ended = closed_at.map(|at| ThreadEnded {
                    thread: open.ring.key,
                    at: HostNanos(at),
                });
                out.extend(ended.map(Observation::live));
            }
            !closed
        });
        for (number, name) in self.resolver.new_reasons() {
            out.push_back(Observation::live(Named {
                reason: DetachedReason(number),
                name: name.into(),
            }));
        }
    }

    /// The last drain: what was dropped at the end counts, although the threads live on.
    pub(super) fn finish(&mut self, out: &mut VecDeque<Observation>) {
        self.drain(out);
        for open in self.open.values_mut() {
            open.trailing_gap(out);
        }
        self.open.clear();
    }

    fn take_arrivals(&mut self, out: &mut VecDeque<Observation>) {
        let mut arrivals = hot::ARRIVALS.lock().unwrap_or_else(PoisonError::into_inner);
        let new = std::mem::take(&mut arrivals.rings);
        drop(arrivals);
        for ring in new.into_iter().filter(|ring| ring.session == self.session) {
            out.push_back(Observation::live(ThreadStarted {
                thread: ring.key,
                name: ring.name.clone(),
                at: ring.started,
            }));
            self.open
                .insert(ring.key.generation, Open { ring, last: None });
        }
    }
}

impl Open {
    fn drain(&mut self, resolver: &mut Resolver, out: &mut VecDeque<Observation>) {
        let (thread, last) = (self.ring.key, &mut self.last);
        let mut missing = 0;
        self.ring.consumer.drain(|popped| match popped {
            Popped::Gap(count) => missing += count,
            Popped::Record(words) => {
                let at = hot::written_at(&words);
                if missing > 0 {
                    out.push_back(gap(thread, std::mem::take(&mut missing), *last, Some(at)));
                }
                *last = Some(at);
                let undecodable = DropSite::Undecodable;
                let event = hot::decode(&words, thread, resolver);
                let dropped = || {
                    Event::Dropped(Dropped {
                        site: undecodable,
                        count: 1,
                        at,
                    })
                };
                out.push_back(Observation::live(event.unwrap_or_else(dropped)));
            }
        });
    }

    fn trailing_gap(&mut self, out: &mut VecDeque<Observation>) {
        let missing = self.ring.consumer.trailing_gap();
        if missing > 0 {
            out.push_back(gap(self.ring.key, missing, self.last, None));
        }
    }
}

fn gap(
    thread: ThreadKey,
    count: u64,
    not_before: Option<HostNanos>,
    not_after: Option<HostNanos>,
) -> Observation {
    Observation::live(Gap {
        thread,
        count,
        not_before,
        not_after,
    })
}
