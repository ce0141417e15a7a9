//! The producing side, for adaptors that take an iterator apart (`zip`, `enumerate`, `rev`, …): what
//! they make of a piece is made, and dropped, around the iterator over our piece.

use lineage_core::carrier::Carrier;
use lineage_core::{Captured, Scope};
use rayon::iter::plumbing::{Folder, Producer, ProducerCallback};

pub(super) struct EpochCallback<'c, CB> {
    base: CB,
    captured: &'c Captured,
    carrier: Carrier,
}

impl<'c, CB> EpochCallback<'c, CB> {
    pub(super) fn new(base: CB, captured: &'c Captured, carrier: Carrier) -> Self {
        Self {
            base,
            captured,
            carrier,
        }
    }
}

impl<T, CB: ProducerCallback<T>> ProducerCallback<T> for EpochCallback<'_, CB> {
    type Output = CB::Output;

    fn callback<P>(self, producer: P) -> Self::Output
    where
        P: Producer<Item = T>,
    {
        self.base.callback(EpochProducer {
            base: producer,
            captured: self.captured,
            carrier: self.carrier,
        })
    }
}

/// A producer whose every piece is worked on in the epoch. A piece that is split off is one more
/// handoff.
struct EpochProducer<'c, P> {
    base: P,
    captured: &'c Captured,
    carrier: Carrier,
}

impl<'c, P: Producer> Producer for EpochProducer<'c, P> {
    type Item = P::Item;
    type IntoIter = EpochIter<'c, P::IntoIter>;

    fn into_iter(self) -> Self::IntoIter {
        drop(self.carrier.open());
        let scope = self.captured.enter();
        EpochIter {
            base: self.base.into_iter(),
            _scope: scope,
        }
    }

    fn min_len(&self) -> usize {
        self.base.min_len()
    }

    fn max_len(&self) -> usize {
        self.base.max_len()
    }

    fn split_at(self, index: usize) -> (Self, Self) {
        let (captured, carrier) = (self.captured, self.carrier);
        let (left, right) = self.base.split_at(index);
        let of = |base, carrier| Self {
            base,
            captured,
            carrier,
        };
        let one_more = carrier.clone();
        (of(left, carrier), of(right, one_more))
    }

    fn fold_with<F>(self, folder: F) -> F
    where
        F: Folder<Self::Item>,
    {
        drop(self.carrier.open());
        self.captured.run(|| self.base.fold_with(folder))
    }
}

/// The items of a piece. While it lives, the epoch is current on its thread.
struct EpochIter<'c, I> {
    // Dropped in this order: what is left of the piece is dropped in the epoch.
    base: I,
    _scope: Scope<'c>,
}

impl<I: Iterator> Iterator for EpochIter<'_, I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<Self::Item> {
        self.base.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.base.size_hint()
    }
}

impl<I: DoubleEndedIterator> DoubleEndedIterator for EpochIter<'_, I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.base.next_back()
    }
}

impl<I: ExactSizeIterator> ExactSizeIterator for EpochIter<'_, I> {
    fn len(&self) -> usize {
        self.base.len()
    }
}
