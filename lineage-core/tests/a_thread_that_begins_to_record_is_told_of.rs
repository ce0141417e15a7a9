//! The thread hook: called on the thread itself, once in each session in which it records.

mod common;

use std::sync::Mutex;
use std::thread::ThreadId;

use lineage_core::id::ThreadKey;
use lineage_core::observation::ThreadStarted;
use lineage_core::{Epoch, hook};

static CALLS: Mutex<Vec<(ThreadKey, ThreadId)>> = Mutex::new(Vec::new());

fn note(thread: ThreadKey) {
    let mut calls = CALLS.lock().expect("not poisoned");
    calls.push((thread, std::thread::current().id()));
}

fn calls() -> Vec<(ThreadKey, ThreadId)> {
    std::mem::take(&mut *CALLS.lock().expect("not poisoned"))
}

#[test]
fn a_thread_that_begins_to_record_is_told_of() {
    hook::set_thread_hook(note).expect("the first");
    let again = hook::set_thread_hook(|_| panic!("never called"));
    assert_eq!(
        again.expect_err("the second").to_string(),
        "a thread hook is already set in this process"
    );
    drop(Epoch::declare("before any session"));
    assert_eq!(calls(), []);

    for _ in 0..2 {
        let lineage = common::session().start().expect("a session");
        assert_eq!(calls(), [], "nothing was recorded yet");
        drop(Epoch::declare("here"));
        drop(Epoch::declare("here again"));
        let other = std::thread::spawn(|| {
            drop(Epoch::declare("there"));
            std::thread::current().id()
        });
        let other = other.join().expect("no panic");
        let calls = calls();
        let on: Vec<ThreadId> = calls.iter().map(|&(_, on)| on).collect();
        assert_eq!(on, [std::thread::current().id(), other]);

        let report = common::end(lineage);
        let started: Vec<&ThreadStarted> = crate::events!(report, ThreadStarted);
        let mut keys: Vec<ThreadKey> = started.iter().map(|started| started.thread).collect();
        let mut told: Vec<ThreadKey> = calls.iter().map(|&(key, _)| key).collect();
        keys.sort_unstable_by_key(|key| key.generation);
        told.sort_unstable_by_key(|key| key.generation);
        assert_eq!(keys, told);
    }
}
