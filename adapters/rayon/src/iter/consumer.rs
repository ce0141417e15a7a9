//! The consuming side: what follows the adaptor, piece by piece.

use lineage_core::carrier::Carrier;
use lineage_core::{Captured, Scope};
use rayon::iter::plumbing::{Consumer, Folder, Reducer, UnindexedConsumer};

/// A consumer whose every piece is worked on in the epoch. A piece that is split off is one more
/// handoff.
pub(super) struct EpochConsumer<'c, C> {
    base: C,
    captured: &'c Captured,
    carrier: Carrier,
}

impl<'c, C> EpochConsumer<'c, C> {
    pub(super) fn new(base: C, captured: &'c Captured, carrier: Carrier) -> Self {
        Self {
            base,
            captured,
            carrier,
        }
    }

    fn reducer<R>(&self, base: R) -> EpochReducer<'c, R> {
        let captured = self.captured;
        EpochReducer { base, captured }
    }
}

impl<'c, T, C: Consumer<T>> Consumer<T> for EpochConsumer<'c, C> {
    type Folder = EpochFolder<'c, C::Folder>;
    type Reducer = EpochReducer<'c, C::Reducer>;
    type Result = C::Result;

    fn split_at(self, index: usize) -> (Self, Self, Self::Reducer) {
        let (captured, carrier) = (self.captured, self.carrier);
        let (left, right, reducer) = self.base.split_at(index);
        let one_more = carrier.clone();
        let left = Self::new(left, captured, carrier);
        let right = Self::new(right, captured, one_more);
        let reducer = left.reducer(reducer);
        (left, right, reducer)
    }

    fn into_folder(self) -> Self::Folder {
        // This is the thread on which the piece is worked on.
        drop(self.carrier.open());
        let scope = self.captured.enter();
        EpochFolder {
            base: self.base.into_folder(),
            scope,
        }
    }

    fn full(&self) -> bool {
        self.base.full()
    }
}

impl<T, C: UnindexedConsumer<T>> UnindexedConsumer<T> for EpochConsumer<'_, C> {
    fn split_off_left(&self) -> Self {
        Self::new(
            self.base.split_off_left(),
            self.captured,
            self.carrier.clone(),
        )
    }

    fn to_reducer(&self) -> Self::Reducer {
        self.reducer(self.base.to_reducer())
    }
}

/// A piece that is being worked on. The scope ends with it, also when it unwinds.
pub(super) struct EpochFolder<'c, F> {
    // Dropped in this order: what the piece holds is dropped in the epoch.
    base: F,
    scope: Scope<'c>,
}

impl<T, F: Folder<T>> Folder<T> for EpochFolder<'_, F> {
    type Result = F::Result;

    fn consume(self, item: T) -> Self {
        let Self { base, scope } = self;
        let base = base.consume(item);
        Self { base, scope }
    }

    fn consume_iter<I>(self, items: I) -> Self
    where
        I: IntoIterator<Item = T>,
    {
        let Self { base, scope } = self;
        let base = base.consume_iter(items);
        Self { base, scope }
    }

    fn complete(self) -> Self::Result {
        let Self { base, scope } = self;
        let result = base.complete();
        drop(scope);
        result
    }

    fn full(&self) -> bool {
        self.base.full()
    }
}

/// Puts two pieces' results together, on a thread that worked on one of them.
pub(super) struct EpochReducer<'c, R> {
    base: R,
    captured: &'c Captured,
}

impl<T, R: Reducer<T>> Reducer<T> for EpochReducer<'_, R> {
    fn reduce(self, left: T, right: T) -> T {
        self.captured.run(|| self.base.reduce(left, right))
    }
}
