//! CUPTI's clients: each has kinds, callbacks, buffers, external ids and a clock of its own.
//!
//! There is one, whoever it is, until a subscriber allows others beside it (`cuptiSubscribe_v2`, since 13.2). Then each subscriber is a client of
//! its own, all of them name themselves in every call (`…_v2`), and the functions that name nobody answer 39.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cupti::activity::Recording;
use crate::cupti::attributes::Attributes;
use crate::cupti::buffers::{self, Delivery};
use crate::cupti::result;
use crate::cupti::subscriber::{self, Callbacks};
use crate::cupti::time::RecordsClock;
use crate::handles::Handle;
use crate::threads;

/// How many clients there can be at once.
pub(crate) const MOST_CLIENTS: usize = 4;

pub(crate) struct Client {
    pub(crate) index: usize,
    pub(crate) recording: Recording,
    pub(crate) callbacks: Callbacks,
    pub(crate) delivery: Delivery,
    pub(crate) clock: RecordsClock,
    pub(crate) attributes: Attributes,
}

static CLIENTS: [Client; MOST_CLIENTS] = [new(0), new(1), new(2), new(3)];

const fn new(index: usize) -> Client {
    Client {
        index,
        recording: Recording::new(),
        callbacks: Callbacks::new(),
        delivery: Delivery::new(),
        clock: RecordsClock::new(),
        attributes: Attributes::new(),
    }
}

impl Client {
    /// Forgets everything but the subscription. What was not flushed is the client's loss.
    pub(crate) fn reset(&self) {
        self.recording.reset();
        self.delivery.reset();
        buffers::forget_those_of(self);
        self.clock.set_callback(None);
        self.attributes.reset();
        threads::clear_stacks(self.index);
    }
}

/// How many places of [`CLIENTS`] have been in use.
static USED: AtomicUsize = AtomicUsize::new(1);

/// The clients that there are or have been; the first is there always.
pub(crate) fn all() -> &'static [Client] {
    &CLIENTS[..USED.load(Ordering::Acquire).min(MOST_CLIENTS)]
}

/// The place with this number, if there is one. From now on it is among [`all`].
pub(crate) fn place(index: usize) -> Option<&'static Client> {
    let client = CLIENTS.get(index)?;
    USED.fetch_max(index + 1, Ordering::AcqRel);
    Some(client)
}

/// The one client that need not name itself.
pub(crate) fn sole() -> Result<&'static Client, u32> {
    if subscriber::allows_several() {
        Err(result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    } else {
        Ok(&CLIENTS[0])
    }
}

/// The client that a subscriber's handle means.
pub(crate) fn of(subscriber: Handle) -> Result<&'static Client, u32> {
    let mut clients = all().iter();
    clients
        .find(|client| client.callbacks.are_of(subscriber))
        .ok_or(result::INVALID_PARAMETER)
}

/// Something for each client; there is hardly ever more than the first.
pub(crate) struct PerClient<T> {
    first: T,
    others: Vec<T>,
}

impl<T> PerClient<T> {
    pub(crate) fn new(mut make: impl FnMut(&'static Client) -> T) -> Self {
        let clients = all();
        Self {
            first: make(&clients[0]),
            others: clients[1..].iter().map(make).collect(),
        }
    }

    /// What there is for a client; none for one that came later.
    pub(crate) fn get(&self, client: &Client) -> Option<&T> {
        match client.index {
            0 => Some(&self.first),
            index => self.others.get(index - 1),
        }
    }

    /// Each with its client.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = (&'static Client, &mut T)> {
        CLIENTS
            .iter()
            .zip(std::iter::once(&mut self.first).chain(&mut self.others))
    }

    pub(crate) fn into_each(self) -> impl Iterator<Item = (&'static Client, T)> {
        CLIENTS
            .iter()
            .zip(std::iter::once(self.first).chain(self.others))
    }
}
