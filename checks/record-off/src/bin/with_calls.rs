//! The loop with every call of the interface in it.

use lineage_core::Epoch;
use lineage_core::carrier::Carrier;
use lineage_core::observation::{CarrierKind, Mark};

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

include!("../measured.rs");
