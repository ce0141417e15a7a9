//! The outermost shape of a trace: an object with a list of events among its members, or that
//! list alone ("JSON Object Format" and "JSON Array Format" of the Trace Event Format).

use crate::window::{Passed, Stopped, Window};

/// An event may have this many bytes of text.
pub(crate) const LONGEST_EVENT: usize = 16 * 1024 * 1024;
/// A member that describes the recording may have this many. Others are stepped over.
const LONGEST_MEMBER: usize = 1024 * 1024;
/// A member's name may have this many.
const LONGEST_KEY: usize = 64 * 1024;
/// The member that is the list of events.
const EVENTS: &[u8] = b"traceEvents";

/// The next part of a trace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// An element of the list of events: the window stands at its first byte. Step over it with
    /// [`Document::step_over`] or [`Document::whole_element`].
    Element,
    /// Another member of the trace: its name, and its value.
    Member(&'t [u8], &'t [u8]),
    /// Another member, by its name, that is too long or nested too deeply to be read.
    UnreadMember(&'t [u8]),
    /// The trace is complete.
    End,
}

/// An element of the list of events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Element<'t> {
    /// An object.
    Event(&'t [u8]),
    /// Something else.
    NoEvent,
    /// An object of more than [`LONGEST_EVENT`] bytes.
    LongEvent,
    /// An object that is nested more deeply than allowed.
    DeepEvent,
}

/// Why the trace cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The text ends before the trace does.
    Cut,
    /// This is no JSON.
    Malformed(&'static str),
    /// This is JSON and no trace.
    NoTrace,
}

impl From<Stopped> for Broken {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::AtTheEnd => Self::Cut,
            Stopped::NoValue => Self::Malformed("a value was expected"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// In the outermost object; whether its first member is yet to come.
    Object {
        first: bool,
    },
    /// In the list of events; whether its first is yet to come.
    Events {
        first: bool,
    },
    AfterTheEnd,
}

/// Steps through the parts of a trace.
pub(crate) struct Document<'scope> {
    window: Window<'scope>,
    place: Place,
    /// The list is the whole trace, with no object around it.
    bare: bool,
    events_found: bool,
    /// The name of the member last read.
    key: Vec<u8>,
}

impl<'scope> Document<'scope> {
    /// The trace in this window.
    pub(crate) const fn new(window: Window<'scope>) -> Self {
        Self {
            window,
            place: Place::Start,
            bare: false,
            events_found: false,
            key: Vec::new(),
        }
    }

    /// The window it is read through.
    pub(crate) const fn window(&mut self) -> &mut Window<'scope> {
        &mut self.window
    }

    /// Whether a list of events was found.
    pub(crate) const fn events_found(&self) -> bool {
        self.events_found
    }

    /// The text from the element that comes next on, as far as it is held: most elements are whole
    /// in it, and need not be looked at twice.
    pub(crate) fn element_and_more(&self) -> &[u8] {
        self.window.rest()
    }

    /// Steps over an element of so many bytes.
    pub(crate) const fn step_over(&mut self, length: usize) {
        self.window.step(length);
    }

    /// Steps over the element that comes next, and gives it, wherever its end is.
    pub(crate) fn whole_element(&mut self) -> Result<Element<'_>, Broken> {
        let is_object = self.window.rest().first() == Some(&b'{');
        Ok(match self.window.value(LONGEST_EVENT)? {
            Passed::Whole(event) if is_object => Element::Event(&self.window.text()[event]),
            Passed::TooLong if is_object => Element::LongEvent,
            Passed::TooDeep if is_object => Element::DeepEvent,
            _ => Element::NoEvent,
        })
    }

    /// The next part.
    pub(crate) fn next_part(&mut self) -> Result<Part<'_>, Broken> {
        loop {
            match self.place {
                Place::Start => self.start()?,
                Place::Object { first } => {
                    if !self.more(b'}', first)? {
                        self.place = Place::AfterTheEnd;
                        continue;
                    }
                    self.place = Place::Object { first: false };
                    self.key()?;
                    if self.key == EVENTS && self.window.peek() == Some(b'[') {
                        self.window.step(1);
                        self.events_found = true;
                        self.place = Place::Events { first: true };
                        continue;
                    }
                    return Ok(match self.window.value(LONGEST_MEMBER)? {
                        Passed::Whole(value) => Part::Member(&self.key, &self.window.text()[value]),
                        Passed::TooLong | Passed::TooDeep => Part::UnreadMember(&self.key),
                    });
                }
                Place::Events { first } => {
                    if !self.more(b']', first)? {
                        self.place = if self.bare {
                            Place::AfterTheEnd
                        } else {
                            Place::Object { first: false }
                        };
                        continue;
                    }
                    self.place = Place::Events { first: false };
                    self.window.peek().ok_or(Broken::Cut)?;
                    return Ok(Part::Element);
                }
                Place::AfterTheEnd => {
                    return match self.window.peek() {
                        None => Ok(Part::End),
                        Some(_) => Err(Broken::Malformed("the trace had ended before this")),
                    };
                }
            }
        }
    }

    fn start(&mut self) -> Result<(), Broken> {
        self.window.skip_byte_order_mark();
        self.place = match self.window.peek() {
            Some(b'{') => Place::Object { first: true },
            Some(b'[') => {
                self.bare = true;
                self.events_found = true;
                Place::Events { first: true }
            }
            _ => return Err(Broken::NoTrace),
        };
        self.window.step(1);
        Ok(())
    }

    /// Goes to the next member or element: `false` if the closing bracket came instead.
    fn more(&mut self, close: u8, first: bool) -> Result<bool, Broken> {
        match self.window.peek().ok_or(Broken::Cut)? {
            byte if byte == close => {
                self.window.step(1);
                Ok(false)
            }
            _ if first => Ok(true),
            b',' => {
                self.window.step(1);
                Ok(true)
            }
            _ => Err(Broken::Malformed(
                "a comma or a closing bracket was expected",
            )),
        }
    }

    /// Reads a member's name, and steps over the colon.
    fn key(&mut self) -> Result<(), Broken> {
        self.key.clear();
        if self.window.peek().ok_or(Broken::Cut)? != b'"' {
            return Err(Broken::Malformed("a member's name was expected"));
        }
        let Passed::Whole(key) = self.window.value(LONGEST_KEY)? else {
            return Err(Broken::Malformed("a member's name is too long"));
        };
        let quoted = &self.window.text()[key];
        self.key.extend_from_slice(&quoted[1..quoted.len() - 1]);
        if self.window.peek().ok_or(Broken::Cut)? != b':' {
            return Err(Broken::Malformed("a colon was expected"));
        }
        self.window.step(1);
        Ok(())
    }
}
