//! Calls of the operating system's libraries that do nothing but wait.

/// Whether a thread inside of this function waits: for time, for a lock, for another thread or
/// process, for something to become readable. Functions that may copy or compute for as long, as
/// `read` and `ioctl`, or may wake another, as `futex` and `semop`, are none. Names as Nsight
/// Systems' OS runtime tracing writes them, which are those of the C library (POSIX.1-2017; the Linux
/// manual pages of sections 2 and 3).
pub(super) fn waits(function: &str) -> bool {
    const WAITING: [&str; 47] = [
        "accept",
        "accept4",
        "clock_nanosleep",
        "epoll_pwait",
        "epoll_pwait2",
        "epoll_wait",
        "mq_receive",
        "mq_timedreceive",
        "msgrcv",
        "nanosleep",
        "pause",
        "poll",
        "ppoll",
        "pselect",
        "pthread_barrier_wait",
        "pthread_clockjoin_np",
        "pthread_cond_clockwait",
        "pthread_cond_timedwait",
        "pthread_cond_wait",
        "pthread_join",
        "pthread_mutex_clocklock",
        "pthread_mutex_lock",
        "pthread_mutex_timedlock",
        "pthread_rwlock_clockrdlock",
        "pthread_rwlock_clockwrlock",
        "pthread_rwlock_rdlock",
        "pthread_rwlock_timedrdlock",
        "pthread_rwlock_timedwrlock",
        "pthread_rwlock_wrlock",
        "pthread_spin_lock",
        "pthread_timedjoin_np",
        "select",
        "sem_clockwait",
        "sem_timedwait",
        "sem_wait",
        "sigsuspend",
        "sigtimedwait",
        "sigwait",
        "sigwaitinfo",
        "sleep",
        "thrd_sleep",
        "usleep",
        "wait",
        "wait3",
        "wait4",
        "waitid",
        "waitpid",
    ];
    WAITING.binary_search(&function).is_ok()
}

#[cfg(test)]
mod tests {
    use super::waits;

    #[test]
    fn what_only_waits_is_told_from_what_may_work() {
        for function in [
            "poll",
            "sem_timedwait",
            "pthread_cond_wait",
            "accept",
            "waitpid",
        ] {
            assert!(waits(function), "{function}");
        }
        for function in [
            "read",
            "ioctl",
            "mmap",
            "fread",
            "pthread_create",
            "futex",
            "",
            "Poll",
        ] {
            assert!(!waits(function), "{function}");
        }
    }
}
