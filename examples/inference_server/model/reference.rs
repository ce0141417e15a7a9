//! The model in plain Rust: what every answer of the server is checked against.

use super::weights::Weights;
use super::{DIMENSION, LOGITS_PER_HALVING, VOCABULARY};

/// One token of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Token {
    /// The byte.
    pub byte: u8,
    /// How sure the model is of it, from 0 to 1.
    pub probability: f32,
}

/// The model's answer to a prompt.
pub fn answer(weights: &Weights, prompt: &[u8], tokens: usize) -> Vec<Token> {
    let mut state = vec![0.0; DIMENSION];
    for token in prompt {
        weights.embed(&mut state, *token);
    }
    (0..tokens)
        .map(|_| {
            let token = next(weights, &state);
            weights.embed(&mut state, token.byte);
            token
        })
        .collect()
}

fn next(weights: &Weights, state: &[f32]) -> Token {
    let mut logits = vec![0.0_f32; VOCABULARY];
    for (number, row) in state.iter().zip(weights.output.chunks(VOCABULARY)) {
        for (logit, weight) in logits.iter_mut().zip(row) {
            *logit += number.max(0.0) * weight;
        }
    }
    // The first of the greatest: `max_by` would give the last.
    let greatest =
        (1..VOCABULARY).fold(0, |best, v| if logits[v] > logits[best] { v } else { best });
    let halvings = |logit: &f32| (logit - logits[greatest]) / LOGITS_PER_HALVING;
    let sum: f32 = logits.iter().map(|logit| halvings(logit).exp2()).sum();
    Token {
        byte: greatest as u8,
        probability: 1.0 / sum,
    }
}
