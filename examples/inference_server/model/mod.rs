//! A language model small enough to read, with arithmetic that is exact.
//!
//! A request's state is one vector of [`DIMENSION`] numbers. Each token `t`, first of the prompt
//! and then of the answer, is folded into it, and the next token is the likeliest one:
//!
//! ```text
//! embedding       h[d] ← ⌊h[d] / 2⌋ + embedding[t][d]
//! matrix-vector   logit[v] = Σ_d max(h[d], 0) · output[d][v]          summed in the order of d
//! softmax         p[v] = 2^((logit[v] − max) / 32) / Σ_v 2^(…)        summed in the order of v
//! arg-max         the first v with the greatest p[v]
//! ```
//!
//! All weights are small integers, so every sum up to the logits is exact in `f32`, whatever
//! multiplies and adds it. Only the powers of two are rounded, and the greatest of them is 1
//! exactly: an answer is the same on every device, and [`reference`] can be compared token by
//! token.

pub mod host;
pub mod reference;
pub mod weights;

/// Tokens are bytes.
pub const VOCABULARY: usize = 256;
/// Numbers in a request's state.
pub const DIMENSION: usize = 64;
/// Requests that the device serves at once: one slot each.
pub const SLOTS: usize = 8;
/// The longest prompt, in tokens.
pub const MAX_PROMPT: usize = 256;
/// The longest answer, in tokens.
pub const MAX_TOKENS: usize = 256;
/// A difference of this many logits halves the probability.
pub const LOGITS_PER_HALVING: f32 = 32.0;

/// The kernels for a real GPU, by hand. The simulated GPU reads their names and parameters from
/// the same text, and runs the functions of [`host`].
pub const PTX: &str = include_str!("kernels.ptx");

/// What lies where in the buffers that the host and the kernels share, in bytes.
///
/// Each begins with its label: the number of the request or batch that the work is for. A label
/// goes with the data, never with a thread, and is what the joins are scored against.
pub mod layout {
    use super::{DIMENSION, MAX_PROMPT, SLOTS, VOCABULARY};

    /// Weights: label, embedding, output matrix.
    pub const EMBEDDING: usize = 8;
    pub const OUTPUT_MATRIX: usize = EMBEDDING + 4 * VOCABULARY * DIMENSION;
    pub const WEIGHTS_BYTES: usize = OUTPUT_MATRIX + 4 * VOCABULARY * DIMENSION;

    /// Prompt: label, slot, length, tokens.
    pub const PROMPT_SLOT: usize = 8;
    pub const PROMPT_LENGTH: usize = 12;
    pub const PROMPT_TOKENS: usize = 16;
    pub const PROMPT_BYTES: usize = PROMPT_TOKENS + MAX_PROMPT;

    /// Batch: label, then the slot of each member.
    pub const BATCH_SLOTS: usize = 8;
    pub const BATCH_BYTES: usize = BATCH_SLOTS + 4 * SLOTS;

    /// Answer: label, then each member's token, then each member's probability.
    pub const ANSWER_TOKENS: usize = 8;
    pub const ANSWER_PROBABILITIES: usize = ANSWER_TOKENS + 4 * SLOTS;
    pub const ANSWER_BYTES: usize = ANSWER_PROBABILITIES + 4 * SLOTS;
}
