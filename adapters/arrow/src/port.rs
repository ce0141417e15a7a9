//! One description of each table's rows for three uses: which columns there are, how a row is put
//! into them, and how it is read back.
//!
//! The description of a row visits its columns one after the other, always all of them and in the
//! same order. Each visit takes the value, where there is one to write, and gives the value that is
//! there.

use std::fmt;
use std::sync::Arc;

use lineage_core::id::{Attribution, HostNanos, LaunchEpoch, PackedEpoch, TaskId, ThreadKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as TextError, StrDeserializer};

use crate::column::{Column, Kind};
use crate::frame::{Cells, Frame};
use crate::how::{self, Hows};
use crate::limits::MAX_TEXT;
use crate::names::{MAX_NAME, Names};

/// Why a row cannot be written into its table's columns, or read from them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Bad {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` is out of range")]
    Range(&'static str),
    #[error("`{0}` is a name that the segment does not have")]
    NoName(&'static str),
    /// A newer writer's value.
    #[error("`{0}` is {1:?}, which this build does not know")]
    Unknown(&'static str, String),
}

/// A unit-like enumeration, told by its name as in the JSON-lines ledger.
pub(crate) trait Variant: Copy + Serialize + DeserializeOwned {}
impl<T: Copy + Serialize + DeserializeOwned> Variant for T {}

/// What visits the columns of a row.
pub(crate) trait Port {
    fn number(&mut self, column: Column, given: Option<u64>) -> Result<Option<u64>, Bad>;
    fn name(&mut self, column: Column, given: Option<&Arc<str>>) -> Result<Option<Arc<str>>, Bad>;
    fn text(&mut self, column: Column, given: Option<&str>) -> Result<Option<String>, Bad>;
    fn variant<T: Variant>(&mut self, column: Column, given: Option<T>) -> Result<Option<T>, Bad>;
    fn how(&mut self, column: Column, given: Option<Hows>) -> Result<Option<Hows>, Bad>;
}

pub(crate) fn need<T>(column: &'static str, value: Option<T>) -> Result<T, Bad> {
    value.ok_or(Bad::Missing(column))
}

pub(crate) fn u32<P: Port>(
    port: &mut P,
    column: Column,
    given: Option<u32>,
) -> Result<Option<u32>, Bad> {
    match port.number(column, given.map(u64::from))? {
        None => Ok(None),
        Some(number) => match u32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Bad::Range(column.name)),
        },
    }
}

pub(crate) fn bool<P: Port>(
    port: &mut P,
    name: &'static str,
    given: Option<bool>,
) -> Result<Option<bool>, Bad> {
    let number = port.number(Column::bool(name), given.map(u64::from))?;
    Ok(number.map(|number| number != 0))
}

pub(crate) fn time<P: Port>(
    port: &mut P,
    column: Column,
    given: Option<HostNanos>,
) -> Result<Option<HostNanos>, Bad> {
    let number = port.number(column, given.map(|at| at.0))?;
    Ok(number.map(HostNanos))
}

pub(crate) fn task<P: Port>(port: &mut P, given: Option<TaskId>) -> Result<Option<TaskId>, Bad> {
    let number = port.number(Column::delta("task"), given.map(|task| task.0))?;
    Ok(number.map(TaskId))
}

/// A thread, in the columns `tid` and `thread_generation`.
pub(crate) fn thread<P: Port>(
    port: &mut P,
    given: Option<ThreadKey>,
) -> Result<Option<ThreadKey>, Bad> {
    let tid = port.number(Column::u64("tid"), given.map(|it| it.tid))?;
    let generation = u32(
        port,
        Column::u32("thread_generation"),
        given.map(|it| it.generation),
    )?;
    Ok(match (tid, generation) {
        (Some(tid), Some(generation)) => Some(ThreadKey { tid, generation }),
        _ => None,
    })
}

/// An epoch, in its packed form.
pub(crate) fn epoch<P: Port>(
    port: &mut P,
    column: Column,
    given: Option<LaunchEpoch>,
) -> Result<Option<LaunchEpoch>, Bad> {
    match port.number(column, given.map(|epoch| epoch.pack().bits()))? {
        None => Ok(None),
        Some(bits) => match PackedEpoch::from_bits(bits).unpack() {
            Attribution::Epoch(epoch) => Ok(Some(epoch)),
            _ => Err(Bad::Range(column.name)),
        },
    }
}

/// An attribution, in its packed form. Those that have none of their own are out of range.
pub(crate) fn attribution<P: Port>(
    port: &mut P,
    column: Column,
    given: Option<Attribution>,
) -> Result<Option<Attribution>, Bad> {
    let bits = match given {
        None => None,
        Some(attribution) => {
            let packed = PackedEpoch::from(attribution);
            if packed.unpack() != attribution {
                return Err(Bad::Range(column.name));
            }
            Some(packed.bits())
        }
    };
    let bits = port.number(column, bits)?;
    Ok(bits.map(|bits| PackedEpoch::from_bits(bits).unpack()))
}

/// Writes an enumeration's value by its name.
struct ByName<'a, T>(&'a T);

impl<T: Serialize> fmt::Display for ByName<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

/// The name of an enumeration's value.
pub(crate) fn variant_name<T: Serialize>(value: &T) -> String {
    ByName(value).to_string()
}

/// The value of an enumeration with this name.
pub(crate) fn variant_of<T: DeserializeOwned>(name: &str) -> Option<T> {
    let text: StrDeserializer<'_, TextError> = name.into_deserializer();
    T::deserialize(text).ok()
}

/// Learns which columns there are.
#[derive(Default)]
pub(crate) struct Describing {
    pub(crate) columns: Vec<Column>,
}

impl Port for Describing {
    fn number(&mut self, column: Column, given: Option<u64>) -> Result<Option<u64>, Bad> {
        self.columns.push(column);
        Ok(given)
    }

    fn name(&mut self, column: Column, given: Option<&Arc<str>>) -> Result<Option<Arc<str>>, Bad> {
        self.columns.push(column);
        Ok(given.cloned())
    }

    fn text(&mut self, column: Column, given: Option<&str>) -> Result<Option<String>, Bad> {
        self.columns.push(column);
        Ok(given.map(str::to_owned))
    }

    fn variant<T: Variant>(&mut self, column: Column, given: Option<T>) -> Result<Option<T>, Bad> {
        self.columns.push(column);
        Ok(given)
    }

    fn how(&mut self, column: Column, given: Option<Hows>) -> Result<Option<Hows>, Bad> {
        self.columns.push(column);
        Ok(given)
    }
}

/// Puts a row at the end of a frame.
pub(crate) struct Writing<'a> {
    frame: &'a mut Frame,
    names: &'a mut Names,
    scratch: &'a mut String,
    at: usize,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(frame: &'a mut Frame, names: &'a mut Names, scratch: &'a mut String) -> Self {
        Self {
            frame,
            names,
            scratch,
            at: 0,
        }
    }

    fn push(&mut self, value: Option<u64>) {
        if let Some(Cells::Numbers(numbers)) = self.frame.columns.get_mut(self.at) {
            numbers.push(value);
        }
        self.at += 1;
    }
}

impl Port for Writing<'_> {
    fn number(&mut self, _: Column, given: Option<u64>) -> Result<Option<u64>, Bad> {
        self.push(given);
        Ok(given)
    }

    fn name(&mut self, column: Column, given: Option<&Arc<str>>) -> Result<Option<Arc<str>>, Bad> {
        if given.is_some_and(|name| name.len() > MAX_NAME) {
            return Err(Bad::Range(column.name));
        }
        let place = given.map(|name| u64::from(self.names.place(name)));
        self.push(place);
        Ok(given.cloned())
    }

    fn text(&mut self, column: Column, given: Option<&str>) -> Result<Option<String>, Bad> {
        let bytes = given.map_or(0, str::len);
        if bytes > MAX_TEXT {
            return Err(Bad::Range(column.name));
        }
        self.frame.text_bytes += bytes;
        if let Some(Cells::Texts(texts)) = self.frame.columns.get_mut(self.at) {
            texts.push(given);
        }
        self.at += 1;
        Ok(given.map(str::to_owned))
    }

    fn variant<T: Variant>(&mut self, column: Column, given: Option<T>) -> Result<Option<T>, Bad> {
        use fmt::Write as _;
        let place = match given {
            None => None,
            Some(value) => {
                self.scratch.clear();
                if write!(self.scratch, "{}", ByName(&value)).is_err() {
                    // It has fields, and so no name alone.
                    return Err(Bad::Range(column.name));
                }
                Some(u64::from(self.names.place_of(self.scratch)))
            }
        };
        self.push(place);
        Ok(given)
    }

    fn how(&mut self, _: Column, given: Option<Hows>) -> Result<Option<Hows>, Bad> {
        let place = given.map(|hows| u64::from(self.names.place_of_hows(&hows)));
        self.push(place);
        Ok(given)
    }
}

/// Reads a row of a frame.
pub(crate) struct Reading<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) names: &'a [Arc<str>],
    pub(crate) row: usize,
    at: usize,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(frame: &'a Frame, names: &'a [Arc<str>], row: usize) -> Self {
        Self {
            frame,
            names,
            row,
            at: 0,
        }
    }

    fn take(&mut self) -> Option<u64> {
        let cells = self.frame.columns.get(self.at);
        self.at += 1;
        match cells {
            Some(Cells::Numbers(numbers)) => numbers.get(self.row),
            _ => None,
        }
    }

    fn take_name(&mut self, column: Column) -> Result<Option<&'a Arc<str>>, Bad> {
        match self.take() {
            None => Ok(None),
            Some(place) => usize::try_from(place)
                .ok()
                .and_then(|place| self.names.get(place))
                .map(Some)
                .ok_or(Bad::NoName(column.name)),
        }
    }
}

impl Port for Reading<'_> {
    fn number(&mut self, column: Column, _: Option<u64>) -> Result<Option<u64>, Bad> {
        debug_assert!(column.kind != Kind::Text && column.kind != Kind::Name);
        Ok(self.take())
    }

    fn name(&mut self, column: Column, _: Option<&Arc<str>>) -> Result<Option<Arc<str>>, Bad> {
        Ok(self.take_name(column)?.cloned())
    }

    fn text(&mut self, _: Column, _: Option<&str>) -> Result<Option<String>, Bad> {
        let cells = self.frame.columns.get(self.at);
        self.at += 1;
        Ok(match cells {
            Some(Cells::Texts(texts)) => texts.get(self.row).map(str::to_owned),
            _ => None,
        })
    }

    fn variant<T: Variant>(&mut self, column: Column, _: Option<T>) -> Result<Option<T>, Bad> {
        match self.take_name(column)? {
            None => Ok(None),
            Some(name) => match variant_of(name) {
                Some(value) => Ok(Some(value)),
                None => Err(Bad::Unknown(column.name, name.to_string())),
            },
        }
    }

    fn how(&mut self, column: Column, _: Option<Hows>) -> Result<Option<Hows>, Bad> {
        match self.take_name(column)? {
            None => Ok(None),
            Some(text) => match how::from_text(text) {
                Some(hows) => Ok(Some(hows)),
                None => Err(Bad::Unknown(column.name, text.to_string())),
            },
        }
    }
}
