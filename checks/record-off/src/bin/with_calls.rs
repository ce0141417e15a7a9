//! The loop with every call of the interface in it.

use lineage_core::carrier::{Carrier, Resumable, carried_fn, carried_fn_mut};
use lineage_core::observation::{CarrierKind, Mark};
use lineage_core::{Captured, Epoch};

macro_rules! calls {
    ($($call:tt)*) => { $($call)* };
}

macro_rules! within {
    ($object:ident.$scope:ident, $work:expr) => {
        $object.$scope(|| $work)
    };
    ($scope:path, $work:expr) => {
        $scope(|| $work)
    };
    ($scope:path as $reason:literal, $work:expr) => {
        $scope($reason, || $work)
    };
}

macro_rules! called {
    ($carry:ident, $work:expr) => {
        $carry(move || $work)()
    };
}

include!("../measured.rs");
