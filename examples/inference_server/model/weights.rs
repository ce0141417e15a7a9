//! The weights: a seeded embedding, and an output matrix that is taught one passage.

use super::{DIMENSION, VOCABULARY};

/// What the model has read. It goes on from any part of it, and then round again.
pub const PASSAGE: &str = "a kernel starts late. whose request was it? the server hands each launch an epoch, \
                           and every join is checked. ";

/// By how much the right token must win over every other before the teaching ends.
const MARGIN: f32 = 32.0;
/// The passage is learnt after 60 rounds; this only bounds the loop.
const MAX_ROUNDS: usize = 1_000;

/// Small integers, kept as `f32`.
pub struct Weights {
    /// `[token][dimension]`.
    pub embedding: Vec<f32>,
    /// `[dimension][token]`.
    pub output: Vec<f32>,
}

impl Weights {
    /// The same on every machine.
    pub fn new() -> Self {
        let mut generator = Generator::new(0x9e37_79b9_7f4a_7c15);
        let embedding = (0..VOCABULARY * DIMENSION)
            .map(|_| generator.below(17) as f32 - 8.0)
            .collect();
        let mut weights = Self {
            embedding,
            output: vec![0.0; DIMENSION * VOCABULARY],
        };
        weights.learn(PASSAGE.as_bytes());
        weights
    }

    /// Folds one token into a state.
    pub fn embed(&self, state: &mut [f32], token: u8) {
        let row = &self.embedding[usize::from(token) * DIMENSION..][..DIMENSION];
        for (number, embedded) in state.iter_mut().zip(row) {
            *number = (*number / 2.0).floor() + embedded;
        }
    }

    /// The weights as the device holds them: label 0 (no request's work), embedding, output.
    pub fn image(&self) -> Vec<u8> {
        let numbers = self.embedding.iter().chain(&self.output);
        0_u64
            .to_le_bytes()
            .into_iter()
            .chain(numbers.flat_map(|number| number.to_le_bytes()))
            .collect()
    }

    /// The perceptron rule: where the wrong token wins, its weights lose the state and the right
    /// token's weights gain it.
    fn learn(&mut self, passage: &[u8]) {
        let states = self.states(passage);
        let mut learnt = [[0.0_f32; DIMENSION]; VOCABULARY];
        let mut tokens: Vec<usize> = passage.iter().copied().map(usize::from).collect();
        tokens.sort_unstable();
        tokens.dedup();
        for _ in 0..MAX_ROUNDS {
            let mut mistakes = 0;
            for (state, next) in &states {
                let (mut rival, mut score) = (0, f32::MIN);
                for token in tokens.iter().filter(|token| *token != next) {
                    let this = dot(state, &learnt[*token]);
                    if this > score {
                        (rival, score) = (*token, this);
                    }
                }
                if dot(state, &learnt[*next]) <= score + MARGIN {
                    mistakes += 1;
                    for (dimension, number) in state.iter().enumerate() {
                        learnt[*next][dimension] += number;
                        learnt[rival][dimension] -= number;
                    }
                }
            }
            if mistakes == 0 {
                break;
            }
        }
        for (token, row) in learnt.iter().enumerate() {
            for (dimension, weight) in row.iter().enumerate() {
                self.output[dimension * VOCABULARY + token] = *weight;
            }
        }
    }

    /// The rectified state before each token of the passage, read round and round.
    fn states(&self, passage: &[u8]) -> Vec<([f32; DIMENSION], usize)> {
        let mut state = [0.0; DIMENSION];
        for token in passage {
            self.embed(&mut state, *token);
        }
        passage
            .iter()
            .map(|next| {
                let before = state.map(|number| number.max(0.0));
                self.embed(&mut state, *next);
                (before, usize::from(*next))
            })
            .collect()
    }
}

fn dot(state: &[f32; DIMENSION], weights: &[f32; DIMENSION]) -> f32 {
    let mut sum = 0.0;
    for dimension in 0..DIMENSION {
        sum += state[dimension] * weights[dimension];
    }
    sum
}

/// Numbers that look random and are the same in every run: xorshift64.
pub struct Generator(u64);

impl Generator {
    /// A generator from a seed other than 0.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % bound
    }
}
