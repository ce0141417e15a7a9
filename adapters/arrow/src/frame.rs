//! Some rows of a table in memory, column by column, with the values as they are.

use crate::column::{Coding, Column, Kind};

/// Some rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) columns: Vec<Cells>,
    pub(crate) rows: usize,
    /// Bytes of texts in it.
    pub(crate) text_bytes: usize,
}

/// The cells of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cells {
    Numbers(Numbers),
    Texts(Texts),
}

/// Numbers, names' places and truth values alike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Numbers {
    /// 0 where there is none.
    pub(crate) values: Vec<u64>,
    pub(crate) valid: Vec<bool>,
}

/// Texts, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Texts {
    pub(crate) bytes: String,
    /// Where each ends.
    pub(crate) ends: Vec<u32>,
    pub(crate) valid: Vec<bool>,
}

impl Numbers {
    pub(crate) fn push(&mut self, value: Option<u64>) {
        self.values.push(value.unwrap_or(0));
        self.valid.push(value.is_some());
    }

    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        match (self.valid.get(row), self.values.get(row)) {
            (Some(true), Some(value)) => Some(*value),
            _ => None,
        }
    }

    fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.valid.truncate(rows);
    }
}

impl Texts {
    pub(crate) fn push(&mut self, text: Option<&str>) {
        self.bytes.push_str(text.unwrap_or_default());
        // A frame is given away long before it has 4 GiB of text.
        self.ends
            .push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        self.valid.push(text.is_some());
    }

    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        if !*self.valid.get(row)? {
            return None;
        }
        let start = match row {
            0 => 0,
            _ => *self.ends.get(row - 1)?,
        };
        self.bytes
            .get(start as usize..*self.ends.get(row)? as usize)
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.valid.truncate(rows);
        self.bytes
            .truncate(self.ends.last().map_or(0, |end| *end as usize));
    }
}

impl Frame {
    /// No rows of a table with these columns.
    pub(crate) fn new(columns: &[Column]) -> Self {
        let columns = columns.iter().map(|column| match column.kind {
            Kind::Text => Cells::Texts(Texts::default()),
            _ => Cells::Numbers(Numbers::default()),
        });
        Self {
            columns: columns.collect(),
            rows: 0,
            text_bytes: 0,
        }
    }

    /// Keeps the first rows, whole.
    pub(crate) fn truncate(&mut self, rows: usize) {
        for cells in &mut self.columns {
            match cells {
                Cells::Numbers(numbers) => numbers.truncate(rows),
                Cells::Texts(texts) => texts.truncate(rows),
            }
        }
        self.rows = rows;
        let texts = self.columns.iter().map(|cells| match cells {
            Cells::Numbers(_) => 0,
            Cells::Texts(texts) => texts.bytes.len(),
        });
        self.text_bytes = texts.sum();
    }
}

/// Where the value that `After` counts from is to be found.
pub(crate) fn position(columns: &[Column], name: &str) -> Option<usize> {
    columns.iter().position(|column| column.name == name)
}

/// The values of a column as they are coded on disk; 0 where there is none.
pub(crate) fn coded(column: Column, numbers: &Numbers, other: Option<&Numbers>) -> Vec<u64> {
    code(column, numbers, other, u64::wrapping_sub)
}

/// The values of a column from how they are coded on disk. `other` holds values.
pub(crate) fn decoded(column: Column, numbers: &Numbers, other: Option<&Numbers>) -> Vec<u64> {
    code(column, numbers, other, u64::wrapping_add)
}

fn code(
    column: Column,
    numbers: &Numbers,
    other: Option<&Numbers>,
    combine: fn(u64, u64) -> u64,
) -> Vec<u64> {
    let mut base = 0_u64;
    let mut out = Vec::with_capacity(numbers.values.len());
    // A difference is taken from the value before; a sum is the value.
    let adds = combine(0, 1) == 1;
    for row in 0..numbers.values.len() {
        if let (Coding::After(_), Some(value)) = (column.coding, other.and_then(|of| of.get(row))) {
            base = value;
        }
        let Some(value) = numbers.get(row) else {
            out.push(0);
            continue;
        };
        let result = match column.coding {
            Coding::Plain => value,
            Coding::Delta | Coding::After(_) => combine(value, base),
        };
        if column.coding == Coding::Delta {
            base = if adds { result } else { value };
        }
        out.push(result);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[Option<u64>]) -> Numbers {
        let mut numbers = Numbers::default();
        values.iter().for_each(|value| numbers.push(*value));
        numbers
    }

    #[test]
    fn a_delta_is_from_the_value_before_and_a_null_has_no_part_in_it() {
        let values = numbers(&[Some(100), None, Some(103), Some(99), Some(u64::MAX)]);
        let column = Column::delta("at_ns");
        let on_disk = coded(column, &values, None);
        let minus_four = 4_u64.wrapping_neg();
        assert_eq!(on_disk, [100, 0, 3, minus_four, u64::MAX - 99]);
        let read = Numbers {
            values: on_disk,
            valid: values.valid.clone(),
        };
        assert_eq!(decoded(column, &read, None), values.values);
    }

    #[test]
    fn a_time_after_another_is_from_the_others_last_value() {
        let start = numbers(&[None, Some(50), None, Some(70)]);
        let end = numbers(&[Some(7), Some(55), Some(52), None]);
        let column = Column::after("end_ns", "start_ns");
        let on_disk = coded(column, &end, Some(&start));
        assert_eq!(on_disk, [7, 5, 2, 0]);
        let read = Numbers {
            values: on_disk,
            valid: end.valid.clone(),
        };
        assert_eq!(decoded(column, &read, Some(&start)), end.values);
    }

    #[test]
    fn a_row_that_was_begun_can_be_taken_back() {
        let mut texts = Texts::default();
        texts.push(Some("ab"));
        texts.push(None);
        texts.push(Some("c"));
        texts.truncate(2);
        assert_eq!(
            (texts.get(0), texts.get(1), texts.get(2)),
            (Some("ab"), None, None)
        );
        assert_eq!(texts.bytes, "ab");
    }
}
