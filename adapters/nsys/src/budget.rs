//! Counts what the import of a file costs, and stops it when that is too much.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rusqlite::Connection;

use crate::Limits;

/// Instructions between two looks at the clock.
const STEPS_PER_LOOK: i32 = 4_096;

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    rows_granted: u64,
    rows_left: Cell<u64>,
    spent: Arc<Spent>,
}

#[derive(Debug)]
struct Spent {
    steps_left: AtomicU64,
    exhausted: AtomicBool,
}

impl Budget {
    /// Starts the clock, and lets SQLite ask from now on whether it may go on.
    pub(crate) fn watch(connection: &mut Connection, limits: &Limits) -> rusqlite::Result<Self> {
        let spent = Arc::new(Spent {
            steps_left: AtomicU64::new(limits.steps),
            exhausted: AtomicBool::new(false),
        });
        let ends = Instant::now().checked_add(limits.time);
        let watched = Arc::clone(&spent);
        connection.progress_handler(
            STEPS_PER_LOOK,
            Some(move || {
                let left = watched.steps_left.load(Ordering::Relaxed);
                let out_of_time = ends.is_some_and(|ends| Instant::now() >= ends);
                let stop = out_of_time || left == 0;
                if stop {
                    watched.exhausted.store(true, Ordering::Relaxed);
                }
                let left = left.saturating_sub(u64::from(STEPS_PER_LOOK.unsigned_abs()));
                watched.steps_left.store(left, Ordering::Relaxed);
                stop
            }),
        )?;
        Ok(Self {
            rows_granted: limits.rows,
            rows_left: Cell::new(limits.rows),
            spent,
        })
    }

    /// Whether SQLite was told to stop.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.spent.exhausted.load(Ordering::Relaxed)
    }

    /// Takes a row; false if none is left.
    pub(crate) fn take_row(&self) -> bool {
        let left = self.rows_left.get().checked_sub(1);
        self.rows_left.set(left.unwrap_or(0));
        left.is_some()
    }

    pub(crate) fn rows_granted(&self) -> u64 {
        self.rows_granted
    }
}
