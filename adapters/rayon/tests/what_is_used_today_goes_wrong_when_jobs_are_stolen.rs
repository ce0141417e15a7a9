//! The same certain steal, with what programs use today. Each of these is wrong, which is why this
//! crate asks neither the current span nor a thread-local that jobs set.

mod common;

use std::cell::Cell;
use std::sync::{Arc, Mutex, Once};

use common::{Waits, in_the_midst, keep_one_busy, pool};
use tracing::Span;

/// A launch: whose it really was, and what it saw.
type Launch = (&'static str, Option<&'static str>);

#[derive(Clone, Default)]
struct Launches(Arc<Mutex<Vec<Launch>>>);

impl Launches {
    fn add(&self, request: &'static str, seen: Option<&'static str>) {
        self.0.lock().expect("no panic").push((request, seen));
    }

    fn take(&self) -> Vec<Launch> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

fn subscribe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let registry = tracing_subscriber::registry();
        tracing::subscriber::set_global_default(registry).expect("the only one");
    });
}

fn request_of_current_span() -> Option<&'static str> {
    Span::current().metadata().map(|metadata| metadata.name())
}

#[test]
fn the_current_span_at_launch_is_the_waiting_requests() {
    subscribe();
    let launches = Launches::default();
    let seen = launches.clone();
    pool(2).install(|| {
        tracing::info_span!("request a").in_scope(|| {
            in_the_midst(Waits::InRayon, |done| {
                rayon::spawn(move || {
                    seen.add("request b", request_of_current_span());
                    done.send(()).expect("the thief waits");
                })
            });
        })
    });
    assert_eq!(launches.take(), [("request b", Some("request a"))]);
}

/// A span that is entered again, while another is entered above it, does not become current: the
/// registry takes it for the same entry.
#[test]
fn a_captured_span_that_is_entered_in_the_job_may_not_be_current_there() {
    subscribe();
    let launches = Launches::default();
    let (outer, middle, inner) = (launches.clone(), launches.clone(), launches.clone());
    let (a, b) = (
        tracing::info_span!("request a"),
        tracing::info_span!("request b"),
    );
    let a_again = a.clone();
    let pool = pool(3);
    let third = keep_one_busy(&pool);
    pool.install(|| {
        a.in_scope(|| {
            outer.add("request a", request_of_current_span());
            in_the_midst(Waits::InRayon, |done| {
                rayon::spawn(move || {
                    b.in_scope(|| {
                        middle.add("request b", request_of_current_span());
                        third.send(()).expect("it waits");
                        in_the_midst(Waits::InRayon, |done| {
                            rayon::spawn(move || {
                                a_again.in_scope(|| {
                                    inner.add("request a", request_of_current_span());
                                });
                                done.send(()).expect("the thief waits");
                            })
                        });
                    });
                    done.send(()).expect("the thief waits");
                })
            });
        })
    });
    assert_eq!(
        launches.take(),
        [
            ("request a", Some("request a")),
            ("request b", Some("request b")),
            ("request a", Some("request b")),
        ]
    );
}

#[test]
fn a_thread_local_that_every_job_sets_is_the_stolen_jobs_afterwards() {
    thread_local! {
        static REQUEST: Cell<Option<&'static str>> = const { Cell::new(None) };
    }
    let launches = Launches::default();
    let (outer, inner) = (launches.clone(), launches.clone());
    pool(2).install(|| {
        REQUEST.set(Some("request a"));
        in_the_midst(Waits::InRayon, |done| {
            rayon::spawn(move || {
                REQUEST.set(Some("request b"));
                inner.add("request b", REQUEST.get());
                done.send(()).expect("the thief waits");
            })
        });
        outer.add("request a", REQUEST.get());
    });
    assert_eq!(
        launches.take(),
        [
            ("request b", Some("request b")),
            ("request a", Some("request b")),
        ]
    );
}
