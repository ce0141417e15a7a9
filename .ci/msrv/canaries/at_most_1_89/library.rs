//! `File::lock` and `Result::flatten` came with 1.89, `as_chunks` with 1.88, `Vec::pop_if` with 1.86.
pub fn lock(file: &std::fs::File) -> std::io::Result<()> {
    file.lock()
}

pub fn flat(result: Result<Result<u32, ()>, ()>) -> Result<u32, ()> {
    result.flatten()
}

pub fn chunks(bytes: &[u8]) -> usize {
    bytes.as_chunks::<4>().0.len()
}

pub fn pop(numbers: &mut Vec<u32>) -> Option<u32> {
    numbers.pop_if(|number| *number > 1)
}
