//! A thread that waits in the midst of one request's job and takes up another's: the other sees its
//! own epoch, and the first sees its own again. Whose a launch really is, is carried by data: each
//! job knows its request's number.
#![cfg(feature = "record")]

mod common;

use std::sync::Mutex;
use std::thread;

use common::{Waits, current, in_the_midst, keep_one_busy, pool, recorded};
use lineage_core::{Attribution, Captured, Epoch, detached};
use lineage_rayon::ThreadPoolExt as _;

/// What launches saw, beside whose they were.
static LAUNCHES: Mutex<Vec<(u32, Option<u32>)>> = Mutex::new(Vec::new());

/// A launch for this request, which the epochs say is another's if they are wrong.
fn launch(request: u32, epochs: &[Epoch]) {
    let seen = current().map(|id| {
        let number = epochs.iter().position(|epoch| epoch.id() == Some(id));
        number.expect("one of the requests") as u32
    });
    LAUNCHES.lock().expect("no panic").push((request, seen));
}

fn take_launches() -> Vec<(u32, Option<u32>)> {
    std::mem::take(&mut *LAUNCHES.lock().expect("no panic"))
}

fn requests() -> Vec<Epoch> {
    vec![Epoch::declare("request 0"), Epoch::declare("request 1")]
}

#[test]
fn and_the_waiting_job_sees_its_own_again() {
    for waits in [Waits::InRayon, Waits::InLineage] {
        let (launches, _) = recorded(|| {
            let epochs = requests();
            let pool = pool(2);
            epochs[0].run(|| {
                pool.install_in_epoch(|| {
                    launch(0, &epochs);
                    let (waiting, epochs_too) = (thread::current().id(), epochs.clone());
                    in_the_midst(waits, |done| {
                        let other = epochs_too[1].clone();
                        other.run(|| {
                            lineage_rayon::spawn(move || {
                                assert_eq!(thread::current().id(), waiting);
                                launch(1, &epochs_too);
                                drop(epochs_too);
                                done.send(()).expect("the thief waits");
                            })
                        });
                    });
                    launch(0, &epochs);
                })
            });
            common::assert_nothing_is_current_on(&pool);
            take_launches()
        });
        assert_eq!(launches, [(0, Some(0)), (1, Some(1)), (0, Some(0))]);
    }
}

#[test]
fn also_where_a_request_is_stolen_into_another_that_was_stolen_into_it() {
    let (launches, _) = recorded(|| {
        let epochs = requests();
        let pool = pool(3);
        let third = keep_one_busy(&pool);
        epochs[0].run(|| {
            pool.install_in_epoch(|| {
                launch(0, &epochs);
                let thread_is = thread::current().id();
                let (one, two) = (epochs.clone(), epochs.clone());
                in_the_midst(Waits::InRayon, |done| {
                    one[1].clone().run(|| {
                        lineage_rayon::spawn(move || {
                            launch(1, &one);
                            third.send(()).expect("it waits");
                            in_the_midst(Waits::InRayon, |done| {
                                two[0].clone().run(|| {
                                    lineage_rayon::spawn(move || {
                                        assert_eq!(thread::current().id(), thread_is);
                                        launch(0, &two);
                                        drop(two);
                                        done.send(()).expect("the thief waits");
                                    })
                                });
                            });
                            launch(1, &one);
                            drop(one);
                            done.send(()).expect("the thief waits");
                        })
                    });
                });
                launch(0, &epochs);
            })
        });
        take_launches()
    });
    let right = [0, 1, 0, 1, 0].map(|request| (request, Some(request)));
    assert_eq!(launches, right);
}

#[test]
fn a_job_that_was_made_without_an_epoch_has_none() {
    let (seen, _) = recorded(|| {
        let epoch = Epoch::declare("request");
        let pool = pool(2);
        let seen = epoch.run(|| {
            pool.install_in_epoch(|| {
                let (answer, seen) = std::sync::mpsc::channel();
                in_the_midst(Waits::InRayon, move |done| {
                    // The thief is in the request's second closure, so first of all nothing.
                    Captured::nothing().run(|| {
                        lineage_rayon::spawn(move || {
                            answer.send(lineage_core::current()).expect("it waits");
                            done.send(()).expect("the thief waits");
                        })
                    });
                });
                (
                    seen.recv().expect("it was run"),
                    lineage_core::current().epoch() == epoch.id(),
                )
            })
        });
        common::assert_nothing_is_current_on(&pool);
        seen
    });
    assert_eq!(seen, (Attribution::None, true));
}

#[test]
fn a_job_that_was_made_in_detached_work_is_detached() {
    let (seen, _) = recorded(|| {
        let epoch = Epoch::declare("request");
        let pool = pool(2);
        epoch.run(|| {
            pool.install_in_epoch(|| {
                let (answer, seen) = std::sync::mpsc::channel();
                in_the_midst(Waits::InRayon, move |done| {
                    detached("weights", || {
                        lineage_rayon::spawn(move || {
                            answer.send(lineage_core::current()).expect("it waits");
                            done.send(()).expect("the thief waits");
                        })
                    });
                });
                seen.recv().expect("it was run")
            })
        })
    });
    assert!(matches!(seen, Attribution::Detached(_)), "{seen:?}");
}

/// A job that was made by rayon's own function carries nothing. Where the thread waits in this
/// crate's functions, the job has no epoch: it is lost, and seen to be. Where it waits in rayon's,
/// the job sees what is current there, which is the limit that the documentation states.
#[test]
fn a_plain_job_is_lost_rather_than_wrong() {
    for waits in [Waits::InRayon, Waits::InLineage] {
        let (launches, _) = recorded(|| {
            let epochs = requests();
            let pool = pool(2);
            epochs[0].run(|| {
                pool.install_in_epoch(|| {
                    let epochs = epochs.clone();
                    in_the_midst(waits, |done| {
                        rayon::spawn(move || {
                            launch(1, &epochs);
                            drop(epochs);
                            done.send(()).expect("the thief waits");
                        })
                    });
                })
            });
            take_launches()
        });
        let seen = match waits {
            Waits::InRayon => Some(0),
            Waits::InLineage => None,
        };
        assert_eq!(launches, [(1, seen)]);
    }
}
