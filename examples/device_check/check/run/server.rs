//! The inference server of this repository, run on the same GPU with the same CUPTI.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Asker, no_time};
use crate::check::options::name;

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(90);
/// What of its summary holds on every run; the rest is measured.
const SAME_EACH_TIME: [&str; 5] = ["requests", "lost", "wrong", "faults", "judged_by"];

pub(super) fn ask(asker: &Asker<'_>) -> Value {
    let program = asker.program.with_file_name("inference_server");
    if !program.is_file() {
        return json!({ "status": "skipped", "error": "there is no program inference_server beside this one" });
    }
    let Some(limit) = asker.limit(LIMIT) else {
        return no_time();
    };
    let of = &asker.run.of;
    let folder = asker.run.out.join("inference_server");
    let file = folder.join("server.json");
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return json!({ "status": "failed", "error": format!("{} cannot be made: {error}", folder.display()) });
    }
    // One that is left over would be taken for this run's.
    let _ = std::fs::remove_file(&file);
    let mut command = asker.command(&program);
    command.arg("--gpu").arg(name(&of.gpu));
    command.arg(format!("--requests={}", asker.run.requests));
    command.arg("--out").arg(&folder).arg("--json").arg(&file);
    if of.is_simulated() {
        command.arg(format!(
            "--sim-push-inside-enter={}",
            of.sim_push_inside_enter
        ));
        command.arg(format!(
            "--sim-runtime-calls={}",
            name(&of.sim_runtime_calls)
        ));
        command.arg(format!("--sim-cupti={}", name(&of.sim_cupti)));
    }
    let outcome = asker.run_child(command, limit);
    let summary: Option<Map<String, Value>> = std::fs::read(&file)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    match (summary, outcome) {
        // Status 1 comes with a summary: a lost or wrong join is an answer, not a failure to ask.
        (Some(summary), outcome) => {
            let (answer, measured): (Map<_, _>, Map<_, _>) = summary
                .into_iter()
                .partition(|(key, _)| SAME_EACH_TIME.contains(&key.as_str()));
            let error = outcome.err().map(|problem| problem["error"].clone());
            json!({ "status": "answered", "error": error, "answer": answer, "measured": measured })
        }
        (None, Err(problem)) => problem,
        (None, Ok(())) => json!({ "status": "failed", "error": "it wrote no summary" }),
    }
}
