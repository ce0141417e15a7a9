//! The virtual clock's host threads: whose call is next, and what time it is for each.
//!
//! Without seats there is one virtual time for all threads: it advances by what calls cost and by what is waited
//! for. One thread is then fully deterministic.
//!
//! With seats each thread has a time of its own, and the simulator puts their calls in order: a call begins only when every
//! other seat is at a call, waits, is away or is left, and the seat whose time is the earliest goes first. Where
//! times are equal, the seed decides. So one thread at a time is between two calls, and the order of all calls does not depend
//! on the machine. A thread that waits for another by other means than the driver says that it is away meanwhile; in
//! which order it comes back is the machine's choice.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::config::{is_virtual, model};
use crate::device::{self, Goal};
use crate::sync::lock;

/// The time of threads without a seat, minus the beginning.
static SHARED_NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SEAT: Cell<Option<usize>> = const { Cell::new(None) };
    /// The time of a thread that has a seat.
    static OWN_NS: Cell<u64> = const { Cell::new(0) };
    /// Calls that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

enum State {
    /// Between two calls, or in one; or not come yet.
    Running,
    /// Wants to begin a call.
    Asks,
    Waits(Goal),
    Away,
    Left,
}

struct Seat {
    now_ns: u64,
    state: State,
    /// Its wait can never end.
    is_stuck: bool,
}

static SEATS: Mutex<Vec<Seat>> = Mutex::new(Vec::new());
static TURN: Condvar = Condvar::new();
static DRAWS: AtomicU64 = AtomicU64::new(0);

/// The virtual time of the calling thread.
pub(crate) fn now_ns() -> u64 {
    match SEAT.try_with(Cell::get).ok().flatten() {
        Some(_) => OWN_NS.with(Cell::get),
        None => model().virtual_start_ns + SHARED_NS.load(Ordering::Acquire),
    }
}

/// The calling thread goes on at this time, if that is not past.
pub(crate) fn advance_to(at_ns: u64) {
    if SEAT.with(Cell::get).is_some() {
        OWN_NS.with(|own| own.set(own.get().max(at_ns)));
    } else {
        let since_ns = at_ns.saturating_sub(model().virtual_start_ns);
        SHARED_NS.fetch_max(since_ns, Ordering::AcqRel);
    }
}

/// The calling thread is busy for so long.
pub(crate) fn spend_ns(duration_ns: u64) {
    if SEAT.with(Cell::get).is_some() {
        OWN_NS.with(|own| own.set(own.get() + duration_ns));
    } else {
        SHARED_NS.fetch_add(duration_ns, Ordering::AcqRel);
    }
}

/// Makes seats. The first one's number.
pub(crate) fn open_seats(count: u32) -> i64 {
    let mut seats = lock(&SEATS);
    let first = seats.len();
    let now_ns = now_ns();
    seats.extend((0..count).map(|_| Seat {
        now_ns,
        state: State::Running,
        is_stuck: false,
    }));
    first as i64
}

/// Takes a seat, or leaves it.
pub(crate) fn take_seat(number: i64) {
    let Ok(number) = usize::try_from(number) else {
        if let Some(seat) = SEAT.take() {
            let now_ns = OWN_NS.with(Cell::get);
            let mut seats = lock(&SEATS);
            seats[seat].state = State::Left;
            seats[seat].now_ns = now_ns;
            decide(&mut seats);
            drop(seats);
            // What comes after does not come before what was done in the seat.
            advance_to(now_ns);
        }
        return;
    };
    if SEAT.with(Cell::get) == Some(number) {
        return;
    }
    if let Some(seat) = lock(&SEATS).get(number) {
        OWN_NS.with(|own| own.set(seat.now_ns));
        SEAT.set(Some(number));
    }
}

/// The thread of a seat is about to wait for something else than the simulator, or has done so.
pub(crate) fn away(is_away: bool) {
    let Some(seat) = SEAT.with(Cell::get) else {
        return;
    };
    let mut seats = lock(&SEATS);
    if is_away {
        seats[seat].state = State::Away;
        seats[seat].now_ns = OWN_NS.with(Cell::get);
        decide(&mut seats);
    } else {
        // What it waited for happened in a thread whose time may be later.
        let latest = seats.iter().map(|seat| seat.now_ns).max().unwrap_or(0);
        OWN_NS.with(|own| own.set(own.get().max(latest)));
        seats[seat].state = State::Running;
    }
}

/// One call of the calling thread; while this lives it is in it.
pub(crate) struct InCall;

impl Drop for InCall {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Begins a call: waits for the thread's turn, if it has a seat.
pub(crate) fn begin_call() -> Option<InCall> {
    if !is_virtual() {
        return None;
    }
    let depth = DEPTH.with(|depth| depth.replace(depth.get() + 1));
    if depth == 0
        && let Some(seat) = SEAT.with(Cell::get)
    {
        let mut seats = lock(&SEATS);
        seats[seat].now_ns = OWN_NS.with(Cell::get);
        seats[seat].state = State::Asks;
        take_turn(seats, seat);
    }
    device::catch_up();
    Some(InCall)
}

/// Waits for something. None: it can never happen.
pub(crate) fn wait(goal: Goal) -> Option<()> {
    let Some(seat) = SEAT.with(Cell::get) else {
        device::catch_up();
        let (_, at_ns) = device::until_a_goal(u64::MAX, &[(0, goal)])?;
        advance_to(at_ns);
        return Some(());
    };
    let mut seats = lock(&SEATS);
    seats[seat].now_ns = OWN_NS.with(Cell::get);
    seats[seat].state = State::Waits(goal);
    take_turn(seats, seat)
}

/// Gives the turn to whom it belongs, and waits until that is this seat. None: its wait can never end.
fn take_turn(mut seats: MutexGuard<'static, Vec<Seat>>, seat: usize) -> Option<()> {
    decide(&mut seats);
    while !matches!(seats[seat].state, State::Running) {
        seats = TURN
            .wait(seats)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    OWN_NS.with(|own| own.set(seats[seat].now_ns));
    (!std::mem::take(&mut seats[seat].is_stuck)).then_some(())
}

/// When nobody runs: lets time pass until somebody can.
fn decide(seats: &mut [Seat]) {
    if seats
        .iter()
        .any(|seat| matches!(seat.state, State::Running))
    {
        return;
    }
    let asks = |seat: &Seat| matches!(seat.state, State::Asks);
    let first_ns = seats
        .iter()
        .filter(|seat| asks(seat))
        .map(|seat| seat.now_ns)
        .min();
    let goals: Vec<(usize, Goal)> = seats
        .iter()
        .enumerate()
        .filter_map(|(number, seat)| match &seat.state {
            State::Waits(goal) => Some((number, goal.clone())),
            _ => None,
        })
        .collect();
    // A seat that waits is not woken before the time at which it began to.
    let until_ns = first_ns.unwrap_or(u64::MAX);
    let reached = if goals.is_empty() {
        None
    } else {
        device::until_a_goal(until_ns, &goals)
    };
    let next = match (reached, first_ns) {
        (Some((number, at_ns)), _) => {
            seats[number].now_ns = seats[number].now_ns.max(at_ns);
            Some(number)
        }
        (None, Some(first_ns)) => {
            let first: Vec<usize> = (0..seats.len())
                .filter(|number| asks(&seats[*number]) && seats[*number].now_ns == first_ns)
                .collect();
            Some(first[draw(first.len())])
        }
        // Those that are away may still do something about it.
        (None, None) if seats.iter().any(|seat| matches!(seat.state, State::Away)) => None,
        (None, None) => {
            let stuck = goals.first().map(|(number, _)| *number);
            if let Some(number) = stuck {
                seats[number].is_stuck = true;
            }
            stuck
        }
    };
    if let Some(number) = next {
        seats[number].state = State::Running;
        TURN.notify_all();
    }
}

/// One of so many, by the seed.
fn draw(of: usize) -> usize {
    if of < 2 {
        return 0;
    }
    let draws = DRAWS.fetch_add(1, Ordering::Relaxed) + 1;
    let mixed = (model().seed ^ draws).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 33) % of as u64) as usize
}
