//! Threads of one's own.

use launch_lineage::fault::FaultCode;
use launch_lineage::thread::{self, ScopeExt as _};
use tokio::sync::oneshot;

use super::USUAL;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::mutation::Shows;
use crate::request::Request;

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "std::thread::spawn",
        write: "launch_lineage::thread::spawn(work)",
        threads_per_request: true,
        run: spawned,
        mutations: ITS_OWN_THREAD,
        ..USUAL
    },
    Carrier {
        name: "std::thread::scope",
        write: "scope.spawn_carried(work)",
        threads_per_request: true,
        run: scoped,
        mutations: ITS_OWN_THREAD,
        ..USUAL
    },
];

/// Nobody comes after a thread that ends with its work.
pub(super) const ITS_OWN_THREAD: [Shows; 3] = [
    Shows::Live(&[FaultCode::L01]),
    Shows::CannotBe("the thread ends with its work: nobody finds what it left"),
    Shows::NeedsTruth,
];

fn spawned(cell: &Cell) {
    let threads = cell.threads.clone();
    cell.tasks(move |request| {
        let threads = threads.clone();
        async move {
            let Request { epoch, work, .. } = request;
            let (done, is_done) = oneshot::channel();
            let launches = move || {
                threads.watch_this_one();
                work.launch();
                work.launch();
                let _ = done.send(());
            };
            let thread = if request.forgotten {
                std::thread::spawn(launches)
            } else {
                epoch.run(|| thread::spawn(launches))
            };
            is_done.await.expect("the thread does not panic");
            thread.join().expect("the thread does not panic");
        }
    });
}

/// The task's worker waits meanwhile.
fn scoped(cell: &Cell) {
    let threads = cell.threads.clone();
    cell.tasks(move |request| {
        let threads = threads.clone();
        async move {
            let Request { epoch, work, .. } = &request;
            let launches = || {
                threads.watch_this_one();
                work.launch();
                work.launch();
            };
            std::thread::scope(|scope| {
                let spawned = [(); 2].map(|()| {
                    if request.forgotten {
                        scope.spawn(launches)
                    } else {
                        epoch.run(|| scope.spawn_carried(launches))
                    }
                });
                // A scope waits for closures, not for the end of their threads.
                for thread in spawned {
                    thread.join().expect("the thread does not panic");
                }
            });
        }
    });
}
