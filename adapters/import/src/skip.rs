//! Why a record could not be used.

use std::fmt;

macro_rules! skips {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal $loss:literal),+ $(,)?) => {
        /// Why a record, or a part of one, could not be used. Every one is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Skip {
            $($(#[doc = $doc])+ $name),+
        }

        impl Skip {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// A stable name for machines, in snake case.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// Whether a record of a call or an operation is missing for it: then joins may be lost
            /// that were in the file.
            pub const fn is_loss(self) -> bool {
                match self { $(Self::$name => $loss),+ }
            }
        }
    };
}

skips! {
    /// A record that must have a time has none.
    NoTime "no_time" true,
    /// A time before the clock's beginning.
    NegativeTime "negative_time" true,
    /// Something that is no number where a number must be.
    BadNumber "bad_number" true,
    /// A value of another type than it must be.
    WrongType "wrong_type" true,
    /// A correlation id of more than 32 bits, which CUPTI and HIP do not give.
    IdTooLarge "id_too_large" true,
    /// A record that cannot be given to one of several processes.
    NoProcess "no_process" true,
    /// A record without a field that it must have.
    MissingField "missing_field" true,
    /// A record that is not well formed.
    Malformed "malformed" true,
    /// A record that is nested too deeply.
    TooDeep "too_deep" true,
    /// A record that is too long.
    TooLong "too_long" true,
    /// A record that was cut off by the end of the file.
    Truncated "truncated" true,
    /// A range without an end, or an end without a beginning.
    UnclosedRange "unclosed_range" false,
    /// A name that the file refers to and does not have.
    UnknownName "unknown_name" false,
    /// A name that was cut, or not kept, for want of room.
    NameNotKept "name_not_kept" false,
    /// A field that could not be used, of a record that could.
    Field "field" false,
    /// A record about something else than calls and operations.
    OtherRecord "other_record" false,
}

/// The name in words, for example `no time`.
impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().replace('_', " "))
    }
}
