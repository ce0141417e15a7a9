//! Writes numbers at offsets.

/// The bytes of one record.
pub(crate) struct Writer<'a>(pub(crate) &'a mut [u8]);

macro_rules! writer {
    ($($name:ident: $type:ty),*) => { $(
        /// A field that this record's structure does not have is left out.
        pub(crate) fn $name(&mut self, offset: usize, value: $type) {
            let bytes = value.to_ne_bytes();
            if let Some(place) = self.0.get_mut(offset..offset + bytes.len()) {
                place.copy_from_slice(&bytes);
            }
        }
    )* };
}

impl Writer<'_> {
    writer!(u8: u8, u16: u16, u32: u32, u64: u64, i32: i32);
}
