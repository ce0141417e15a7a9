//! From rings to observations.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use crate::hot::{self, Popped, Resolver, ThreadRing};
use crate::id::{DetachedReason, HostNanos, ThreadKey};
use crate::observation::{DropSite, Dropped, Event, Gap, Named, ThreadEnded, ThreadStarted};

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
    pub(super) fn drain(&mut self, out: &mut Vec<Event>) {
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
                out.extend(ended.map(Event::from));
            }
            !closed
        });
        for (number, name) in self.resolver.new_reasons() {
            out.push(Event::Named(Named {
                reason: DetachedReason(number),
                name: name.into(),
            }));
        }
    }

    /// The last drain: what was dropped at the end counts, although the threads live on.
    pub(super) fn finish(&mut self, out: &mut Vec<Event>) {
        self.drain(out);
        for open in self.open.values_mut() {
            open.trailing_gap(out);
        }
        self.open.clear();
    }

    fn take_arrivals(&mut self, out: &mut Vec<Event>) {
        let mut arrivals = hot::ARRIVALS.lock().unwrap_or_else(PoisonError::into_inner);
        let new = std::mem::take(&mut arrivals.rings);
        drop(arrivals);
        for ring in new.into_iter().filter(|ring| ring.session == self.session) {
            out.push(Event::ThreadStarted(ThreadStarted {
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
    fn drain(&mut self, resolver: &mut Resolver, out: &mut Vec<Event>) {
        let (thread, last) = (self.ring.key, &mut self.last);
        let mut missing = 0;
        self.ring.consumer.drain(|popped| match popped {
            Popped::Gap(count) => missing += count,
            Popped::Record(words) => {
                let at = hot::written_at(&words);
                if missing > 0 {
                    out.push(gap(thread, std::mem::take(&mut missing), *last, Some(at)));
                }
                *last = Some(at);
                out.push(
                    hot::decode(&words, thread, resolver).unwrap_or(Event::Dropped(Dropped {
                        site: DropSite::Undecodable,
                        count: 1,
                        at,
                    })),
                );
            }
        });
    }

    fn trailing_gap(&mut self, out: &mut Vec<Event>) {
        let missing = self.ring.consumer.trailing_gap();
        if missing > 0 {
            out.push(gap(self.ring.key, missing, self.last, None));
        }
    }
}

fn gap(
    thread: ThreadKey,
    count: u64,
    not_before: Option<HostNanos>,
    not_after: Option<HostNanos>,
) -> Event {
    Event::Gap(Gap {
        thread,
        count,
        not_before,
        not_after,
    })
}
