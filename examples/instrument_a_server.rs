//! Twenty lines that instrument an HTTP server.
//!
//! ```text
//! cargo run --example instrument_a_server
//! ```
//!
//! The lines of lineage are numbered. The rest is a server as it would be without: handlers put
//! jobs into a channel, and the engine's own thread takes as many as there are and works on them as
//! one batch. Where kernels would be launched, this one counts words, so it runs anywhere.

use std::time::Duration;

use axum::{Router, extract::State, routing::post};
use launch_lineage::prelude::*;
use tokio::sync::{mpsc, oneshot};
use tracing_subscriber::prelude::*;

struct Job {
    prompt: String,
    answer: oneshot::Sender<String>,
}

type Queue = mpsc::Sender<Carried<Job>>; // 1: what goes through the channel is an envelope

#[tracing::instrument(skip_all, fields(launch_epoch))] // 2: each request declares an epoch
async fn generate(State(queue): State<Queue>, prompt: String) -> Result<String, &'static str> {
    let (answer, answered) = oneshot::channel();
    let job = carried(Job { prompt, answer }); // 3: the envelope takes it along
    queue.send(job).await.map_err(|_| "the engine is gone")?;
    answered.await.map_err(|_| "the engine gave no answer")
}

fn engine(mut jobs: mpsc::Receiver<Carried<Job>>) {
    let mut batch = Vec::new();
    while jobs.blocking_recv_many(&mut batch, 8) > 0 {
        let answers = Epoch::merge(&batch).launch(|| decode(&batch)); // 4: N requests, one batch
        for (job, answer) in batch.drain(..).zip(answers) {
            let (job, _request) = job.open(); // 5: the job has arrived
            let _ = job.answer.send(answer); // its client may have gone: no matter
        }
    }
}

/// Launches the batch's kernels, in a real engine.
fn decode(batch: &[Carried<Job>]) -> Vec<String> {
    let words = |job: &Carried<Job>| job.payload().prompt.split_whitespace().count();
    batch
        .iter()
        .map(|job| format!("{} words", words(job)))
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Cupti::new(); // 6: where the GPU's records come from, if there is one
    let lineage = Lineage::builder().service("words").device(device).start()?; // 7: record
    tracing_subscriber::registry().with(lineage.layer()).init(); // 8: let spans declare

    let (queue, jobs) = mpsc::channel(64);
    let engine = std::thread::spawn(|| engine(jobs));
    let server = Router::new()
        .route("/generate", post(generate))
        .with_state(queue);
    tokio::runtime::Runtime::new()?.block_on(serve_three_requests(server))?;
    engine.join().map_err(|_| "the engine panicked")?;

    let report = lineage.shutdown(Duration::from_secs(5)); // 9: what was seen
    println!("{report}");
    Ok(())
}

async fn serve_three_requests(server: Router) -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/generate", listener.local_addr()?);
    let clients = async {
        let client = reqwest::Client::new();
        for prompt in ["one", "one two", "one two three"] {
            let answer = client.post(&url).body(prompt).send().await?;
            println!("{prompt:?}: {}", answer.error_for_status()?.text().await?);
        }
        Ok(())
    };
    tokio::select! {
        served = axum::serve(listener, server) => Ok(served?),
        answered = clients => answered,
    }
}
