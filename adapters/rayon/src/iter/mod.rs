//! Parallel iterators whose closures run in an epoch.
//!
//! rayon splits an iterator into pieces and runs each piece on one thread, from its folder's
//! creation to its completion. A piece is a job: it is entered once, and what was current before is
//! restored at its end. In between, the thread leaves the piece only for jobs that it steals while
//! an item's closure waits; those are nested in it and restore it when they end.

mod consumer;
mod producer;

use lineage_core::{Captured, Epoch};
use rayon::iter::plumbing::{Consumer, ProducerCallback, UnindexedConsumer};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};

use crate::job::{Job, waiting};
use consumer::EpochConsumer;
use producer::EpochCallback;

/// Gives epochs to parallel iterators.
pub trait ParallelIteratorExt: ParallelIterator {
    /// Takes the epoch along that is current here: it is current in all that **follows**, on
    /// whichever thread.
    ///
    /// Put it right before the closures that launch. What comes before it (the `map` of
    /// `.map(…).in_current_epoch()`) is in the epoch as well where rayon works on the two together,
    /// but need not be. These follow it badly, since they hide it:
    ///
    /// * `flat_map`, and whatever makes parallel iterators inside a closure: each of those needs an
    ///   `in_current_epoch()` of its own.
    /// * `chunks` and `fold_chunks`: put it after them.
    /// * `zip`, `enumerate`, `rev`, `skip`, `take`, `step_by`, `interleave`: items are in the epoch,
    ///   but what happens once for each piece, as `reduce` does, is not. Put it after them.
    ///
    /// # Example
    ///
    /// ```
    /// use lineage_core::{Epoch, Lineage, current};
    /// use lineage_rayon::ParallelIteratorExt as _;
    /// use rayon::prelude::*;
    ///
    /// let lineage = Lineage::builder().start()?;
    /// let request = Epoch::declare("request");
    /// request.run(|| {
    ///     (0..100)
    ///         .into_par_iter()
    ///         .enumerate()
    ///         .in_current_epoch()
    ///         .for_each(|_| assert_eq!(current().epoch(), request.id()))
    /// });
    /// # Ok::<(), lineage_core::StartError>(())
    /// ```
    #[track_caller]
    fn in_current_epoch(self) -> InEpoch<Self> {
        InEpoch {
            base: self,
            job: Job::sent(),
        }
    }

    /// Like [`in_current_epoch`](Self::in_current_epoch), for this epoch. An inert one leaves
    /// nothing current.
    #[track_caller]
    fn in_epoch(self, epoch: &Epoch) -> InEpoch<Self> {
        InEpoch {
            base: self,
            job: Job::sent_for(Captured::of(epoch)),
        }
    }
}

impl<I: ParallelIterator> ParallelIteratorExt for I {}

/// A parallel iterator with an epoch. Made by [`ParallelIteratorExt`].
#[must_use = "iterator adaptors are lazy and do nothing unless they are consumed"]
pub struct InEpoch<I> {
    base: I,
    job: Job,
}

impl<I> std::fmt::Debug for InEpoch<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InEpoch").finish_non_exhaustive()
    }
}

impl<I: ParallelIterator> ParallelIterator for InEpoch<I> {
    type Item = I::Item;

    fn drive_unindexed<C>(self, consumer: C) -> C::Result
    where
        C: UnindexedConsumer<Self::Item>,
    {
        let (captured, carrier) = self.job.into_parts();
        let consumer = EpochConsumer::new(consumer, &captured, carrier);
        waiting(|| self.base.drive_unindexed(consumer))
    }

    fn opt_len(&self) -> Option<usize> {
        self.base.opt_len()
    }
}

impl<I: IndexedParallelIterator> IndexedParallelIterator for InEpoch<I> {
    fn drive<C>(self, consumer: C) -> C::Result
    where
        C: Consumer<Self::Item>,
    {
        let (captured, carrier) = self.job.into_parts();
        let consumer = EpochConsumer::new(consumer, &captured, carrier);
        waiting(|| self.base.drive(consumer))
    }

    fn len(&self) -> usize {
        self.base.len()
    }

    fn with_producer<CB>(self, callback: CB) -> CB::Output
    where
        CB: ProducerCallback<Self::Item>,
    {
        let (captured, carrier) = self.job.into_parts();
        let callback = EpochCallback::new(callback, &captured, carrier);
        waiting(|| self.base.with_producer(callback))
    }
}
