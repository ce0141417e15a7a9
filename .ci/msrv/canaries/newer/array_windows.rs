//! `slice::array_windows` came with 1.94.
pub fn windows(numbers: &[u32]) -> usize {
    numbers.array_windows::<2>().count()
}
