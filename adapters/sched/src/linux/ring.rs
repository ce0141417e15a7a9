//! The one place with `unsafe`: a thread's event, and the memory that the kernel writes its records
//! to.
//!
//! # Protocol
//!
//! The mapping is a page of bookkeeping and then 2^n pages of data, used as a ring. The kernel alone
//! writes data and `data_head`, how many bytes it has ever written; it writes the data first and
//! `data_head` after it. We alone write `data_tail`, how many of them were read. The kernel never
//! writes to bytes between tail and head; where there is no other room, it drops the record and
//! counts it. So bytes below a head that was loaded with acquire can be copied, until a new tail is
//! stored with release (`linux/perf_event.h`, at `data_head`).
//!
//! Only one of us reads: that takes `&mut Ring`.
//!
//! # Forks
//!
//! A child does not have the mapping (the kernel makes it `VM_DONTCOPY`), and may have something else
//! of its own at its address. So a ring knows the process that made it, and in any other it is
//! neither read nor unmapped.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};
use rustix::thread::Pid;

use super::attributes::Attributes;

/// Offsets of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Why the switches of a thread cannot be collected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(
        "the system does not let this process observe its own switches{}: `sysctl \
         kernel.perf_event_paranoid=2`, or the capability CAP_PERFMON, would",
        setting("perf_event_paranoid")
    )]
    Paranoid,
    #[error(
        "perf_event_open is not permitted, as in most containers: a seccomp profile that allows it \
         would do"
    )]
    Filtered,
    #[error("this kernel cannot record switches ({0}): Linux 4.3 and CONFIG_PERF_EVENTS can")]
    NotSupported(Errno),
    #[error(
        "no file descriptor is left for it, of {}: raise `ulimit -n`",
        limit(Resource::Nofile)
    )]
    NoDescriptor,
    #[error(
        "no memory may be locked for its records any more, of {} bytes{}: raise `ulimit -l`, or make \
         the rings smaller",
        limit(Resource::Memlock),
        setting("perf_event_mlock_kb")
    )]
    NoLockedMemory,
    #[error("the thread is gone")]
    NoSuchThread,
    #[error("only the run-queue delay was asked for")]
    NotAskedFor,
    #[error(
        "the session's clock is not CLOCK_MONOTONIC, which switches are stamped with: it is {apart_ns} \
         ns away from it, and times that cannot be compared would mislead"
    )]
    OtherClock { apart_ns: u64 },
    #[error("perf_event_open failed: {0}")]
    Open(Errno),
    #[error("its records could not be mapped: {0}")]
    Map(Errno),
}

/// A setting as the system has it, for a message: empty where it cannot be read.
fn setting(name: &str) -> String {
    match std::fs::read_to_string(format!("/proc/sys/kernel/{name}")) {
        Ok(value) => format!(" (kernel.{name} is {})", value.trim()),
        Err(_) => String::new(),
    }
}

fn limit(resource: Resource) -> String {
    match getrlimit(resource).current {
        Some(limit) => limit.to_string(),
        None => "unlimited".to_owned(),
    }
}

impl OpenError {
    /// Whether it will be the same for every thread of this process.
    pub(crate) fn is_for_all(&self) -> bool {
        matches!(
            self,
            Self::Paranoid | Self::Filtered | Self::NotSupported(_) | Self::NotAskedFor
        )
    }

    pub(super) fn of_open(error: Errno) -> Self {
        match error {
            Errno::ACCESS => Self::Paranoid,
            Errno::PERM => Self::Filtered,
            // EINVAL: a kernel that knows neither the clock nor the flag. ENOENT: no such event.
            Errno::NOSYS | Errno::NOENT | Errno::INVAL | Errno::OPNOTSUPP | Errno::NODEV => {
                Self::NotSupported(error)
            }
            Errno::MFILE | Errno::NFILE => Self::NoDescriptor,
            Errno::SRCH => Self::NoSuchThread,
            other => Self::Open(other),
        }
    }

    pub(super) fn of_map(error: Errno) -> Self {
        match error {
            Errno::PERM => Self::NoLockedMemory,
            other => Self::Map(other),
        }
    }
}

/// A thread's switches, as the kernel writes them down.
#[derive(Debug)]
pub(crate) struct Ring {
    event: OwnedFd,
    mapping: Mapping,
    /// Whether the event tells how many records were lost when it is read.
    counts_lost: bool,
}

impl Ring {
    /// Begins to observe a thread of this process: the calling one if none is named.
    ///
    /// The ring has room for this many bytes or, where the system does not let so much memory be
    /// locked, for less, down to one page.
    pub(crate) fn open(thread: Option<Pid>, bytes: usize) -> Result<Self, OpenError> {
        let (event, counts_lost) = match open_event(thread, &Attributes::switches(true)) {
            // Before Linux 6.0.
            Err(Errno::INVAL) => (open_event(thread, &Attributes::switches(false)), false),
            opened => (opened, true),
        };
        let event = event.map_err(OpenError::of_open)?;
        let page = rustix::param::page_size();
        let mut pages = (bytes / page).max(1).next_power_of_two();
        loop {
            match Mapping::new(event.as_fd(), page, pages * page) {
                Ok(mapping) => {
                    return Ok(Self {
                        event,
                        mapping,
                        counts_lost,
                    });
                }
                Err(Errno::PERM | Errno::NOMEM) if pages > 1 => pages /= 2,
                Err(error) => return Err(OpenError::of_map(error)),
            }
        }
    }

    /// The event alone. Without a mapping it has nowhere to write, and nothing is written.
    pub(crate) fn into_event(self) -> OwnedFd {
        self.event
    }

    /// Takes all that was written since the last time, appended.
    pub(crate) fn read(&mut self, into: &mut Vec<u8>) {
        self.mapping.read(into);
    }

    /// How many records were ever lost; `None` where the kernel does not say.
    pub(crate) fn lost(&self) -> Option<u64> {
        if !self.counts_lost {
            return None;
        }
        // The event's count, which is always 0, and how many were lost.
        let mut words = [0; 16];
        let read = rustix::io::read(&self.event, &mut words).ok()?;
        let lost = words[8..].try_into().ok()?;
        (read == words.len()).then(|| u64::from_ne_bytes(lost))
    }

    /// What hangs up when the thread ends.
    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

fn open_event(thread: Option<Pid>, attributes: &Attributes) -> Result<OwnedFd, Errno> {
    let thread = Pid::as_raw(thread);
    // On whichever processor, in no group.
    let (cpu, group): (libc::c_int, libc::c_int) = (-1, -1);
    // SAFETY: the kernel reads as many bytes of the structure as its `size` says, which is its own,
    // and writes at most to that field, when it refuses the size: then the structure is the shorter
    // one of an old kernel and the write goes to memory that is ours. It is passed as a pointer to
    // a copy that nothing else refers to.
    let opened = unsafe {
        let mut attributes = attributes.clone();
        let attributes = &raw mut attributes;
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes,
            thread,
            cpu,
            group,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(opened) {
        // SAFETY: a file descriptor that the kernel has just made for us, and nobody else knows.
        Ok(event) if event >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(event) }),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

#[derive(Debug)]
struct Mapping {
    /// A page of bookkeeping, then the data.
    address: NonNull<u8>,
    page: usize,
    /// Bytes of data, a power of two.
    data: usize,
    /// The process that made it.
    process: u32,
}

// SAFETY: the address is that of a mapping, which belongs to the process and to no thread of it. It is
// reached through this value alone, which is not `Sync` and gives no reference away.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(event: BorrowedFd<'_>, page: usize, data: usize) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping, at an address that the kernel chooses: no memory in use is touched.
        let address = unsafe {
            rustix::mm::mmap(
                anywhere,
                page + data,
                protection,
                MapFlags::SHARED,
                event,
                0,
            )?
        };
        let address = NonNull::new(address.cast::<u8>()).ok_or(Errno::FAULT)?;
        Ok(Self {
            address,
            page,
            data,
            process: std::process::id(),
        })
    }

    /// Whether it exists in this process.
    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `HEAD` and `TAIL` lie in the first page, aligned to 8 bytes, and the mapping lives as
        // long as this value (`read` has checked that it exists in this process). The kernel reads and
        // writes them as whole words, concurrently, which is what an atomic is for.
        unsafe { AtomicU64::from_ptr(self.address.add(offset).cast::<u64>().as_ptr()) }
    }

    fn read(&mut self, into: &mut Vec<u8>) {
        if !self.is_here() {
            return;
        }
        let head = self.counter(HEAD).load(Ordering::Acquire);
        let tail = self.counter(TAIL).load(Ordering::Relaxed);
        let unread = (head.wrapping_sub(tail) as usize).min(self.data);
        let begin = tail as usize & (self.data - 1);
        let first = unread.min(self.data - begin);
        for (offset, length) in [(begin, first), (0, unread - first)] {
            // SAFETY: `offset + length <= data`, so the bytes lie in the mapping, which exists in this
            // process. They are between tail and head: the kernel wrote them before it stored the head
            // that was loaded with acquire, and leaves them alone until it sees the tail that is stored
            // below. Nobody else writes there, and no reference to them outlives the copy.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.address.add(self.page + offset).as_ptr(), length)
            };
            into.extend_from_slice(bytes);
        }
        self.counter(TAIL).store(head, Ordering::Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: the mapping that `new` made, in the process that made it, whole. This value is the
            // only one that knows its address, and ends here.
            let unmapped =
                unsafe { rustix::mm::munmap(self.address.as_ptr().cast(), self.page + self.data) };
            debug_assert_eq!(unmapped, Ok(()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_neither_reads_nor_unmaps() {
        let mut ring = match Ring::open(None, 1) {
            Ok(ring) => ring,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let address = ring.mapping.address.as_ptr();
        let length = ring.mapping.page + ring.mapping.data;
        // SAFETY: the child only maps memory, allocates, which the C library makes possible after a fork,
        // and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let there = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
            // SAFETY: the kernel refuses an address that is in use.
            let mapped =
                unsafe { rustix::mm::mmap_anonymous(address.cast(), length, protection, there) };
            let mut is_fine = mapped == Ok(address.cast());
            // SAFETY: the first page of what was just mapped, aligned.
            unsafe { address.add(HEAD).cast::<u64>().write(64) };
            let mut bytes = Vec::new();
            ring.read(&mut bytes);
            is_fine &= bytes.is_empty();
            drop(ring);
            // SAFETY: as above; if it is mapped no more, the child dies of this, as it should.
            is_fine &= unsafe { address.add(HEAD).cast::<u64>().read() } == 64;
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(i32::from(!is_fine)) };
        }
        assert!(child > 0, "forked");
        let mut status = 0;
        // SAFETY: waits for the child just made.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
    }

    #[test]
    fn a_ring_that_is_dropped_leaves_no_memory() {
        let first = match Ring::open(None, 1) {
            Ok(ring) => ring,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let is_mapped = |address: usize| {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("read");
            maps.contains(&format!("{address:08x}-"))
        };
        let address = first.mapping.address.as_ptr() as usize;
        assert!(is_mapped(address));
        drop(first);
        assert!(!is_mapped(address));
    }
}
