//! `if let` guards came with 1.95.
pub fn guarded(a: u32, b: Option<u32>) -> u32 {
    match a {
        0 if let Some(b) = b => b,
        _ => a,
    }
}
