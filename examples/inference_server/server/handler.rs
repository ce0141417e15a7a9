//! `POST /generate`: a prompt in, tokens out, one JSON object to a line.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use launch_lineage::{Epoch, carried};
use lineage_core::observation::Mark;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{Job, Reply, Shared};
use crate::model::{MAX_PROMPT, MAX_TOKENS};

/// The body of a request: checked while it is read, so that one that can never launch is refused
/// before an epoch is declared for it.
#[derive(Deserialize)]
#[serde(try_from = "Fields")]
pub(super) struct Prompt {
    prompt: Vec<u8>,
    tokens: usize,
}

#[derive(Deserialize)]
struct Fields {
    prompt: String,
    #[serde(default = "sixteen")]
    max_tokens: usize,
}

const fn sixteen() -> usize {
    16
}

impl TryFrom<Fields> for Prompt {
    type Error = String;

    fn try_from(body: Fields) -> Result<Self, Self::Error> {
        let prompt = body.prompt.into_bytes();
        if prompt.is_empty() || prompt.len() > MAX_PROMPT {
            return Err(format!(
                "the prompt has {} bytes; 1 to {MAX_PROMPT} are served",
                prompt.len()
            ));
        }
        if body.max_tokens == 0 || body.max_tokens > MAX_TOKENS {
            return Err(format!(
                "max_tokens is {}; 1 to {MAX_TOKENS} are served",
                body.max_tokens
            ));
        }
        Ok(Self {
            prompt,
            tokens: body.max_tokens,
        })
    }
}

/// A line of the answer.
#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Token {
        text: String,
        token: u8,
        probability: f32,
    },
    Failed {
        error: String,
    },
}

/// The field `launch_epoch` declares an epoch for the span of this function: for this request. It
/// is current here, and the envelope takes it along.
#[tracing::instrument(skip_all, fields(launch_epoch))]
pub(super) async fn generate(State(shared): State<Shared>, Json(prompt): Json<Prompt>) -> Response {
    let request = Epoch::current();
    // All that the work needs is there: from here on it waits for others.
    request.mark(Mark::Ready);
    let number = shared.labels.request(&request);
    drop(request);
    let (reply, replies) = mpsc::channel(prompt.tokens);
    let job = Job {
        number,
        prompt: prompt.prompt,
        tokens: prompt.tokens,
        reply,
    };
    if shared.queue.send(carried(job)).await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the engine has stopped\n").into_response();
    }
    let lines = ReceiverStream::new(replies).map(|reply| Ok::<_, Infallible>(line(reply)));
    (
        [(header::CONTENT_TYPE, "application/x-ndjson")],
        Body::from_stream(lines),
    )
        .into_response()
}

fn line(reply: Reply) -> String {
    let line = match reply {
        Reply::Token(token) => Line::Token {
            text: char::from(token.byte).to_string(),
            token: token.byte,
            probability: token.probability,
        },
        Reply::Failed(error) => Line::Failed {
            error: error.to_string(),
        },
    };
    // Text and finite numbers are always JSON; an empty line would be seen by the client's check.
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    text.push('\n');
    text
}
