//! What the correlator may hold.

/// Bounds of the correlator's memory, and the clock's error.
///
/// Where a bound is reached, the oldest is forgotten: a call or an operation is given as a row as
/// it stands, with L07, and counted under
/// [`DropSite::Correlator`](crate::observation::DropSite::Correlator). With the defaults the calls
/// of a session come to at most 260 MB, beside about 80 bytes for each operation of a call that is not
/// settled yet, its graphs to 200 MB, the epochs of a process to 100 MB, and each thread that
/// launches to 0.8 MB; a server whose calls are joined within a second stays at 20 to 50 MB in all.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The clock's error in nanoseconds: an order of two times is only called impossible beyond
    /// it. Default 1,000.
    pub epsilon_ns: u64,
    /// Calls and operations of one CUPTI session that are not joined yet, about 700 bytes each; and
    /// calls of it that are known to be captured, about 30 bytes each. Default 262,144 of both.
    pub open_calls: usize,
    /// Calls of one CUPTI session that are joined, kept so that a duplicate or the record of the
    /// enclosing runtime call finds them. They are forgotten without a fault. About 700 bytes
    /// each. Default 16,384.
    pub joined_calls: usize,
    /// Calls of one CUPTI session that were given as lost, kept so that a late operation
    /// supersedes the row. They are forgotten without a fault. About 700 bytes each.
    /// Default 32,768.
    pub lost_calls: usize,
    /// Operations of the calls of one CUPTI session that are kept as joined or lost, by which a
    /// duplicate is known: a launch of a graph may have thousands. Calls with more are forgotten
    /// sooner. About 80 bytes each. Default 262,144.
    pub kept_operations: usize,
    /// Records of one CUPTI session without a time, or without a call to place them by, that wait
    /// for one. About 300 bytes each. Default 8,192.
    pub unplaced: usize,
    /// Epochs, retired ones among them while something about them is undecided. About 300 bytes
    /// each. Default 262,144.
    pub epochs: usize,
    /// Handoffs of one epoch that are neither opened nor abandoned. 40 bytes each.
    /// Default 65,536.
    pub handoffs_per_epoch: usize,
    /// Threads and tasks that one epoch is known to have come to. 32 bytes each. Beyond it
    /// reachability is not denied any more. Default 256.
    pub places_per_epoch: usize,
    /// Threads of one process. Default 16,384.
    pub threads: usize,
    /// Ended scopes of one thread that are kept for calls which only CUPTI saw. 72 bytes each.
    /// Default 1,024.
    pub scopes_per_thread: usize,
    /// Calls of one thread that wait for their scope to end. 80 bytes each. Default 8,192.
    pub calls_awaiting_scope: usize,
    /// Nodes of graphs and of executable graphs, and changes of them that a launch may still be from
    /// before, of one CUPTI session. About 200 bytes each. New ones find no room then, and what is
    /// launched of them is not known. Default 1,048,576.
    pub graph_nodes: usize,
    /// Rows, and as many faults, that were not drained yet. About 750 bytes each. Drain after every
    /// batch of observations. Default 1,048,576.
    pub undrained: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            epsilon_ns: 1_000,
            open_calls: 1 << 18,
            joined_calls: 1 << 14,
            lost_calls: 1 << 15,
            kept_operations: 1 << 18,
            unplaced: 1 << 13,
            epochs: 1 << 18,
            handoffs_per_epoch: 1 << 16,
            places_per_epoch: 1 << 8,
            threads: 1 << 14,
            scopes_per_thread: 1 << 10,
            calls_awaiting_scope: 1 << 13,
            graph_nodes: 1 << 20,
            undrained: 1 << 20,
        }
    }
}
