//! The loop alone.

macro_rules! calls {
    ($($call:tt)*) => {};
}

macro_rules! within {
    ($object:ident.$scope:ident, $work:expr) => {
        $work
    };
    ($scope:path, $work:expr) => {
        $work
    };
    ($scope:path as $reason:literal, $work:expr) => {
        $work
    };
}

macro_rules! called {
    ($carry:ident, $work:expr) => {
        $work
    };
}

include!("../measured.rs");
