//! What lineage's own threads cost.

/// Processor time of this thread so far, in nanoseconds; `None` where the system does not tell.
pub(crate) fn this_thread_ns() -> Option<u64> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let rest = u64::try_from(time.tv_nsec).ok()?;
        Some(seconds * 1_000_000_000 + rest)
    }
    #[cfg(not(unix))]
    None
}
