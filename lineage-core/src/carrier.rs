//! Carriers: how an epoch crosses a thread or task boundary.
//!
//! | the work | carrier |
//! | --- | --- |
//! | goes on once: a message, a job | [`Carrier`] |
//! | is resumed again and again: a poll function, a callback | [`Resumable`] |
//! | is a closure | [`carried_fn`], [`carried_fn_mut`] |
//! | is a future, a stream, a body: a value that is polled, and dropped | [`InEpoch`](crate::future::InEpoch) |
//! | is a thread's | [`mod@crate::thread`] |
//!
//! *Carried* means everywhere: the epoch that is current where this is called goes along.

#[cfg(not(feature = "record"))]
#[path = "carrier/passed_through.rs"]
mod handoff;
#[cfg(feature = "record")]
#[path = "carrier/recorded.rs"]
mod handoff;

pub use self::handoff::Carrier;
pub use crate::closure::{carried_fn, carried_fn_mut};
pub use crate::resumable::Resumable;
