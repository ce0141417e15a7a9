//! Stored values as the numbers that a record needs.

use lineage_import::Skip;

use crate::tables::Value;

/// What CUPTI writes where an id does not apply.
const NOT_APPLICABLE: u64 = u32::MAX as u64;

impl Value<'_> {
    /// Whether nothing is stored.
    pub(crate) fn is_absent(self) -> bool {
        self == Self::Absent
    }

    /// An integer, if there is a value.
    pub(crate) fn integer(self) -> Result<Option<i64>, Skip> {
        match self {
            Self::Absent => Ok(None),
            Self::Integer(number) => Ok(Some(number)),
            Self::Text(_) | Self::Other => Err(Skip::WrongType),
        }
    }

    /// A number that is not negative, of the type that the record has.
    pub(crate) fn number<T: TryFrom<i64>>(self) -> Result<Option<T>, Skip> {
        self.integer()?
            .map(|number| T::try_from(number).map_err(|_| Skip::BadNumber))
            .transpose()
    }

    /// An id of 64 bits, which SQLite stores as a signed number.
    pub(crate) fn bits(self) -> Result<Option<u64>, Skip> {
        Ok(self.integer()?.map(i64::cast_unsigned))
    }

    /// Nanoseconds from the begin of the capture.
    pub(crate) fn time_ns(self) -> Result<Option<u64>, Skip> {
        self.integer()?
            .map(|ns| u64::try_from(ns).map_err(|_| Skip::NegativeTime))
            .transpose()
    }

    /// A correlation id; 0 where there is none, as CUPTI has it.
    pub(crate) fn correlation(self) -> Result<u64, Skip> {
        Ok(self.number()?.unwrap_or(0))
    }

    /// The result of a call. Driver and runtime number their errors from 1; what does not fit in
    /// 32 bits keeps being an error.
    pub(crate) fn result(self) -> Result<u32, Skip> {
        let result = self.integer()?.unwrap_or(0);
        Ok(u32::try_from(result).unwrap_or(u32::MAX))
    }

    /// An id that is `None` where it does not apply.
    pub(crate) fn id(self) -> Result<Option<u32>, Skip> {
        Ok(self.number()?.filter(|&id| u64::from(id) != NOT_APPLICABLE))
    }

    /// `eventSyncId`, which is counted from 1: older and newer exports write 0 or all ones where it
    /// does not apply.
    pub(crate) fn event_sync(self) -> Result<Option<u64>, Skip> {
        Ok(self.number()?.filter(|&id| id != 0 && id != NOT_APPLICABLE))
    }
}

/// Start and end of something on the device. CUPTI writes 0 for both where the times were not
/// collected, and for the end alone where the record was handed over unfinished.
pub(crate) fn device_times(
    start_ns: Option<u64>,
    end_ns: Option<u64>,
) -> (Option<u64>, Option<u64>) {
    match (start_ns, end_ns) {
        (Some(0), Some(0)) => (None, None),
        (start_ns, Some(0)) => (start_ns, None),
        times => times,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_as_they_are_or_not_at_all() {
        assert_eq!(Value::Integer(7).number::<u32>(), Ok(Some(7)));
        assert_eq!(Value::Absent.number::<u32>(), Ok(None));
        assert_eq!(Value::Integer(-1).number::<u32>(), Err(Skip::BadNumber));
        assert_eq!(
            Value::Integer(1 << 32).number::<u32>(),
            Err(Skip::BadNumber)
        );
        assert_eq!(Value::Text(b"7").number::<u32>(), Err(Skip::WrongType));
        assert_eq!(Value::Other.integer(), Err(Skip::WrongType));
    }

    #[test]
    fn an_id_of_all_ones_does_not_apply() {
        assert_eq!(Value::Integer(4_294_967_295).id(), Ok(None));
        assert_eq!(Value::Integer(0).id(), Ok(Some(0)));
        assert_eq!(Value::Integer(4_294_967_295).event_sync(), Ok(None));
        assert_eq!(Value::Integer(0).event_sync(), Ok(None));
        assert_eq!(Value::Integer(16_836).event_sync(), Ok(Some(16_836)));
    }

    #[test]
    fn an_error_stays_an_error_whatever_its_size() {
        assert_eq!(Value::Absent.result(), Ok(0));
        assert_eq!(Value::Integer(222).result(), Ok(222));
        assert_eq!(Value::Integer(-1).result(), Ok(u32::MAX));
        assert_eq!(Value::Integer(1 << 32).result(), Ok(u32::MAX));
    }

    #[test]
    fn zero_times_are_unknown_ones() {
        assert_eq!(device_times(Some(0), Some(0)), (None, None));
        assert_eq!(device_times(Some(9), Some(0)), (Some(9), None));
        assert_eq!(device_times(Some(0), Some(9)), (Some(0), Some(9)));
        assert_eq!(device_times(None, Some(9)), (None, Some(9)));
        assert_eq!(Value::Integer(-5).time_ns(), Err(Skip::NegativeTime));
    }

    #[test]
    fn ids_of_64_bits_keep_their_bits() {
        assert_eq!(Value::Integer(-1).bits(), Ok(Some(u64::MAX)));
    }
}
