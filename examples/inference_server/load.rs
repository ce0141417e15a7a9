//! The load: an HTTP client that sends prompts and checks every answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use indicatif::ProgressBar;
use serde::Deserialize;

use crate::model::reference::{self, Token};
use crate::model::weights::{Generator, PASSAGE, Weights};

/// How far a probability may be from the reference: a device rounds powers of two in its own way.
const TOLERANCE: f32 = 1e-4;

/// A prompt, and what the answer must be.
pub struct Question {
    prompt: String,
    answer: Vec<Token>,
}

impl Question {
    /// As many questions as asked for, the same in every run: parts of the passage, to go on from.
    pub fn list(weights: &Weights, count: u32) -> Arc<[Self]> {
        let text = PASSAGE.repeat(2);
        let mut generator = Generator::new(0x5851_f42d_4c95_7f2d);
        (0..count)
            .map(|_| {
                let start = generator.below(PASSAGE.len() as u64) as usize;
                let length = 8 + generator.below(25) as usize;
                let tokens = 4 + generator.below(21) as usize;
                let prompt = text[start..start + length].to_owned();
                let answer = reference::answer(weights, prompt.as_bytes(), tokens);
                Self { prompt, answer }
            })
            .collect()
    }
}

/// Why a load could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The request failed.
    #[error("a request failed: {0}")]
    Http(#[from] reqwest::Error),
    /// A line of the answer is no token.
    #[error("the server answered with {line:?}")]
    Line {
        /// The line.
        line: String,
    },
    /// The answer is not the model's.
    #[error("wrong answer to {prompt:?}: token {at} is {found:?}, the reference has {expected:?}")]
    Answer {
        /// The prompt.
        prompt: String,
        /// Which token, from 0.
        at: usize,
        /// What came; `None` where the answer ended before it.
        found: Option<Token>,
        /// What should have come; `None` where the answer should have ended before it.
        expected: Option<Token>,
    },
}

/// How a load went.
#[derive(Debug, Clone, Copy)]
pub struct Loaded {
    /// Requests that were answered rightly: all of them.
    pub requests: u64,
    /// Tokens in their answers.
    pub tokens: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

impl Loaded {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }
}

/// Asks all the questions, so many at once, and checks every answer.
pub async fn run(
    url: &str,
    questions: &[Question],
    concurrency: usize,
    progress: &ProgressBar,
) -> Result<Loaded, LoadError> {
    // No proxy of the environment's between this client and its own loopback.
    let client = reqwest::Client::builder().no_proxy().build()?;
    let start = Instant::now();
    let tokens = stream::iter(questions)
        .map(|question| ask(&client, url, question))
        .buffer_unordered(concurrency)
        .inspect_ok(|_| progress.inc(1))
        .try_fold(0, async |sum, tokens| Ok(sum + tokens))
        .await?;
    Ok(Loaded {
        requests: questions.len() as u64,
        tokens,
        elapsed: start.elapsed(),
    })
}

/// What a line of the answer holds.
#[derive(Deserialize)]
struct Line {
    token: u8,
    probability: f32,
}

async fn ask(client: &reqwest::Client, url: &str, question: &Question) -> Result<u64, LoadError> {
    let body =
        serde_json::json!({ "prompt": question.prompt, "max_tokens": question.answer.len() });
    let response = client
        .post(url)
        .json(&body)
        .send()
        .await?
        .error_for_status()?;
    let mut chunks = response.bytes_stream();
    let mut buffered = Vec::new();
    let mut answer = Vec::with_capacity(question.answer.len());
    while let Some(chunk) = chunks.try_next().await? {
        buffered.extend_from_slice(&chunk);
        while let Some(end) = buffered.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffered.drain(..=end).collect();
            answer.push(read(&line)?);
        }
    }
    question.check(&answer)?;
    Ok(answer.len() as u64)
}

fn read(line: &[u8]) -> Result<Token, LoadError> {
    let line: Line = serde_json::from_slice(line).map_err(|_| LoadError::Line {
        line: String::from_utf8_lossy(line).trim_end().to_owned(),
    })?;
    Ok(Token {
        byte: line.token,
        probability: line.probability,
    })
}

impl Question {
    fn check(&self, answer: &[Token]) -> Result<(), LoadError> {
        let equal = |found: &Token, expected: &Token| {
            found.byte == expected.byte
                && (found.probability - expected.probability).abs() <= TOLERANCE
        };
        let longest = answer.len().max(self.answer.len());
        let differs = (0..longest).find(|at| match (answer.get(*at), self.answer.get(*at)) {
            (Some(found), Some(expected)) => !equal(found, expected),
            _ => true,
        });
        match differs {
            None => Ok(()),
            Some(at) => Err(LoadError::Answer {
                prompt: self.prompt.clone(),
                at,
                found: answer.get(at).copied(),
                expected: self.answer.get(at).copied(),
            }),
        }
    }
}
