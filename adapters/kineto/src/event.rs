//! One event of a trace, as slices of its text.

use std::borrow::Cow;

use crate::args::Args;
use crate::category::Category;
use crate::fields::{Malformed, Members, Text, Value};

/// What a phase says of an event (`ph` of the Trace Event Format).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// `X`: an interval.
    Complete,
    /// `B`: an interval begins on its thread.
    Begin,
    /// `E`: the interval that began last on its thread ends.
    End,
    /// `M`: about a process or a thread.
    Metadata,
    /// Any other: instants, counters, flows.
    Other,
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event<'t> {
    pub(crate) phase: Phase,
    pub(crate) category: Category,
    /// The category's name as the file has it; empty if it has none.
    pub(crate) category_name: Cow<'t, [u8]>,
    pub(crate) name: Option<Text<'t>>,
    pub(crate) process: Option<Value<'t>>,
    pub(crate) thread: Option<Value<'t>>,
    pub(crate) timestamp: Option<Value<'t>>,
    pub(crate) duration: Option<Value<'t>>,
    pub(crate) args: Args<'t>,
    /// It has no member at all: lists of 2021 end in such an object, as a comma stands after each
    /// event.
    pub(crate) is_empty: bool,
    /// The length of its text.
    pub(crate) length: usize,
}

impl<'t> Event<'t> {
    /// Reads the event that this text starts with. Of one that needs no join only what says so is
    /// read, if that comes first, as it does in Kineto's files.
    pub(crate) fn read(text: &'t [u8]) -> Result<Self, Malformed> {
        let mut event = Self {
            phase: Phase::Other,
            category: Category::Other,
            category_name: Cow::Borrowed(b""),
            name: None,
            process: None,
            thread: None,
            timestamp: None,
            duration: None,
            args: Args::default(),
            is_empty: true,
            length: 0,
        };
        let (mut has_phase, mut has_category) = (false, false);
        let mut early_args = None;
        let mut members = Members::of_object(text);
        while let Some(key) = members.next_key()? {
            event.is_empty = false;
            if key.as_ref() == b"args"
                && let Some(mut inner) = members.enter()
            {
                if has_category || event.phase == Phase::Metadata {
                    event.args = Args::read(&mut inner)?;
                    members.leave(&inner);
                } else {
                    // Whether they are wanted is not known yet.
                    early_args = Some(inner);
                    members.value()?;
                }
                continue;
            }
            match (key.as_ref(), members.value()?) {
                (b"ph", Value::Text(phase)) => {
                    event.phase = match phase.raw() {
                        b"X" => Phase::Complete,
                        b"B" => Phase::Begin,
                        b"E" => Phase::End,
                        b"M" => Phase::Metadata,
                        _ => Phase::Other,
                    };
                    has_phase = true;
                }
                (b"cat", Value::Text(name)) => {
                    event.category_name = name.decode_bytes();
                    event.category = Category::of(&event.category_name);
                    has_category = true;
                }
                (b"name", Value::Text(name)) => event.name = Some(name),
                (b"pid", value) => event.process = Some(value),
                (b"tid", value) => event.thread = Some(value),
                (b"ts", value) => event.timestamp = Some(value),
                (b"dur", value) => event.duration = Some(value),
                _ => {}
            }
            if has_phase && has_category && event.needs_no_join() {
                event.length = members.skip_rest()?;
                return Ok(event);
            }
        }
        event.length = members.length();
        if let Some(mut args) = early_args.filter(|_| !event.needs_no_join()) {
            event.args = Args::read(&mut args)?;
        }
        Ok(event)
    }

    /// Whether nothing but its category's name is of interest.
    pub(crate) fn needs_no_join(&self) -> bool {
        match self.phase {
            Phase::Complete => self.category == Category::Other,
            // The end of a range need not name a category, and closes what began last.
            Phase::Begin | Phase::End | Phase::Metadata => false,
            Phase::Other => true,
        }
    }
}
