//! `u32::checked_sub_signed` came with 1.90.
pub fn less(a: u32, b: i32) -> Option<u32> {
    a.checked_sub_signed(b)
}
