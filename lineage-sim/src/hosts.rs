use crate::load::loaded;
use crate::{Gpu, abi};

/// The simulator's clock as a plain function: nanoseconds of `CLOCK_MONOTONIC`, or the virtual time of the calling thread; 0
/// while no simulator is loaded.
///
/// With the virtual clock whoever keeps time beside the simulator should use this one: `lineage`'s builder takes it as its
/// `clock`, and hands it to CUPTI.
pub fn now_ns() -> u64 {
    loaded().map_or(0, |interface| {
        // SAFETY: takes nothing and returns a number.
        unsafe { (interface.now_ns)() }
    })
}

/// A place in the order of calls that the simulator makes; see [`Gpu::host_threads`].
#[derive(Debug)]
#[must_use = "the simulator waits for the thread of each place"]
pub struct HostThread {
    gpu: Gpu,
    /// None with the real clock, which orders nothing.
    seat: Option<i64>,
}

impl HostThread {
    /// Does something on the calling thread, in this place. Each driver call waits for its turn.
    pub fn run<T>(self, body: impl FnOnce() -> T) -> T {
        if let Some(seat) = self.seat {
            // SAFETY: takes a number that `open_seats` gave.
            unsafe { (self.gpu.interface.take_seat)(seat) };
        }
        let value = body();
        drop(self);
        value
    }
}

impl Drop for HostThread {
    /// Leaves the place, also when `run`'s body has panicked or was never reached.
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            // SAFETY: as in `run`; the seat is taken again in case it never was, and then left.
            unsafe {
                (self.gpu.interface.take_seat)(seat);
                (self.gpu.interface.take_seat)(-1);
            }
        }
    }
}

/// Comes back from being away also when the wait has panicked.
struct Away<'a>(&'a abi::SimInterface);

impl Drop for Away<'_> {
    fn drop(&mut self) {
        // SAFETY: takes a number.
        unsafe { (self.0.away)(0) };
    }
}

impl Gpu {
    /// Places for so many host threads under the virtual clock, each with a time of its own.
    ///
    /// A call begins only when the thread of every other place is at a call, waits for the device, is [away](Gpu::away) or has
    /// left; then the one whose time is the earliest goes first, and among equals the seed decides. So the order of all calls
    /// is the simulator's, not the machine's: the same program gives the same records in each run. All threads must come:
    /// nobody's turn comes before.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gpu = lineage_sim::load(lineage_sim::Config::default().virtual_clock())?;
    /// std::thread::scope(|scope| {
    ///     for place in gpu.host_threads(2) {
    ///         let gpu = &gpu;
    ///         scope.spawn(move || place.run(|| gpu.spend_ns(5_000)));
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// With the real clock the places order nothing.
    pub fn host_threads(&self, count: u32) -> Vec<HostThread> {
        // SAFETY: takes and returns numbers.
        let first = unsafe { (self.interface.open_seats)(count) };
        (0..i64::from(count))
            .map(|number| HostThread {
                gpu: self.clone(),
                seat: (first >= 0).then_some(first + number),
            })
            .collect()
    }

    /// The calling thread is busy with something else for so long: its virtual time advances, or real time is burnt.
    pub fn spend_ns(&self, duration_ns: u64) {
        // SAFETY: takes a number.
        unsafe { (self.interface.spend_ns)(duration_ns) }
    }

    /// Waits for something else than the simulator, as a channel or a lock, while other [places](Gpu::host_threads) go on. In
    /// which order the thread comes back is not the simulator's choice.
    pub fn away<T>(&self, wait: impl FnOnce() -> T) -> T {
        // SAFETY: takes a number.
        unsafe { (self.interface.away)(1) };
        let _back = Away(self.interface);
        wait()
    }
}
