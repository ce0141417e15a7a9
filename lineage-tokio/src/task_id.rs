//! Tells lineage-core which tokio task is running, so that it can see a launch that was made in
//! another task than the one that entered the epoch (`W02`).

use std::hash::{Hash, Hasher};
use std::sync::Once;

use lineage_core::hook;
use lineage_core::id::TaskId;

/// Installs the task-id hook, once per process. Called where a layer or a carrier is made, so that
/// nothing has to be set up by hand; a hook that another runtime's adapter set first stays.
#[inline]
pub(crate) fn install_hook() {
    if !cfg!(feature = "record") {
        return;
    }
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // `Err` says that a hook is set already, which is all that is needed.
        let _ = hook::set_task_id_hook(running_task);
    });
}

/// The running task's id; `None` outside of one, as in `block_on` and on other threads.
fn running_task() -> Option<TaskId> {
    tokio::task::try_id().map(number_of)
}

/// tokio's id as a number. Its only public forms are text and a hash, and the hash of an id is one
/// `write_u64` of that number: a hasher that keeps it costs nothing (formatting costs 30 ns). If
/// tokio ever hashes otherwise, this is still the same number for the same task.
pub(crate) fn number_of(id: tokio::task::Id) -> TaskId {
    let mut keep = KeepNumber(0);
    id.hash(&mut keep);
    TaskId(keep.finish())
}

struct KeepNumber(u64);

impl Hasher for KeepNumber {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, bytes: &[u8]) {
        // FNV-1a, for a form of hashing that is not in use today.
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_number_is_the_one_that_tokio_prints() {
        let mut handles = Vec::new();
        for _ in 0..100 {
            handles.push(tokio::spawn(async { tokio::task::id() }));
        }
        for handle in handles {
            let id = handle.await.expect("the task does not panic");
            let printed: u64 = id.to_string().parse().expect("tokio prints a number");
            assert_eq!(number_of(id), TaskId(printed));
        }
    }

    #[tokio::test]
    async fn outside_of_a_task_there_is_none() {
        // The body of `#[tokio::test]` runs in `block_on`, which is no task.
        assert_eq!(running_task(), None);
        let inside = tokio::spawn(async { (running_task(), tokio::task::id()) });
        let (seen, id) = inside.await.expect("the task does not panic");
        assert_eq!(seen, Some(number_of(id)));
    }
}
