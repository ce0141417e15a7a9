//! Let chains came with 1.88, trait upcasting with 1.86.
pub fn both(a: Option<u32>, b: Option<u32>) -> u32 {
    if let Some(a) = a
        && let Some(b) = b
    {
        a + b
    } else {
        0
    }
}

pub trait Above {}
pub trait Below: Above {}

pub fn up(below: &dyn Below) -> &dyn Above {
    below
}
