//! Asks all questions, one after the other, and writes what came of each as soon as it is there.

mod loops;
mod server;
mod written;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::machine;
use super::options::{Of, Run};
use super::process;
use super::questions::{self, Question};
use super::scenarios::{self, SCENARIOS};
use written::Written;

/// How much of what a child said on its error stream is kept where it failed.
const SAID_BYTES: usize = 2_000;
/// The question that runs the inference server, and the one that runs the launch loops.
const SERVER: &str = "inference_server";
const LOOP: &str = "launch_loop";

/// Runs children for one run's questions.
struct Asker<'a> {
    run: &'a Run,
    program: PathBuf,
    deadline: Instant,
    cupti: Option<OsString>,
    cudart: Option<PathBuf>,
}

/// Everything: status 0 if each question was answered or rightly skipped, 1 if one failed.
pub fn all(run: &Run) -> Result<ExitCode, String> {
    let start = Instant::now();
    let mut asker = Asker {
        run,
        program: std::env::current_exe()
            .map_err(|error| format!("this program has no path: {error}"))?,
        deadline: start + Duration::from_secs(run.within),
        cupti: None,
        cudart: None,
    };
    for name in run.only.iter().chain(&run.skip) {
        if !names().any(|known| is_meant(name, known)) {
            return Err(format!(
                "there is no question {name}: `device_check questions` lists them"
            ));
        }
    }
    let mut written = Written::new(&run.out, run.of.switches(), name_of(&run.of))?;
    let machine = asker.look_around();
    let obstacle = obstacle(&machine, &run.of);
    written.machine(machine)?;

    for question in questions::QUESTIONS.iter().chain(SCENARIOS) {
        asker.record(
            &mut written,
            question.name,
            question.asks,
            obstacle.as_ref(),
            |asker| asker.ask(question, &run.of),
        )?;
    }
    let asks =
        "whether the inference server's joins are right on this device, and what lineage costs it";
    asker.record(&mut written, SERVER, asks, obstacle.as_ref(), server::ask)?;
    let asks = "what a launch costs without CUPTI, with CUPTI, and with CUPTI and lineage";
    asker.record(&mut written, LOOP, asks, obstacle.as_ref(), loops::ask)?;

    let failed = written.finish(start.elapsed())?;
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn names() -> impl Iterator<Item = &'static str> {
    questions::QUESTIONS
        .iter()
        .chain(SCENARIOS)
        .map(|question| question.name)
        .chain([SERVER, LOOP])
}

/// Whether a word of the command line means this question: its name, or `scenarios` for all of these.
fn is_meant(word: &str, name: &str) -> bool {
    word == name || (word == "scenarios" && name.starts_with(scenarios::PREFIX))
}

fn name_of(of: &Of) -> &'static str {
    if of.is_simulated() { "sim" } else { "real" }
}

/// The outcome of every question where none can be asked: what a real machine lacks is skipped, a simulator that does
/// not start is a failure.
fn obstacle(machine: &Value, of: &Of) -> Option<Value> {
    let chosen = &machine["cupti"];
    if chosen.is_null() {
        let candidates = machine["cupti_candidates"].as_array();
        let candidates = candidates.map_or(&[][..], Vec::as_slice);
        let field =
            |candidate: &Value, key| candidate[key].as_str().unwrap_or("unknown").to_owned();
        let why = match candidates {
            [one] => field(one, "error"),
            all => {
                let tried: Vec<_> = all.iter().map(|one| field(one, "tried")).collect();
                format!(
                    "no libcupti: none of these can be used: {}",
                    tried.join(", ")
                )
            }
        };
        return Some(if of.is_simulated() {
            json!({ "status": "failed", "error": why })
        } else if why.starts_with("no libcupti") {
            json!({ "status": "skipped", "error": why })
        } else {
            json!({ "status": "skipped", "error": format!("no libcupti: {why}") })
        });
    }
    // A library that loads and refuses a subscriber can still be asked: each question records its code.
    let works = chosen["device_works"].as_bool() == Some(true);
    (!works).then(|| {
        let why = chosen["device_error"].as_str().unwrap_or("unknown");
        json!({ "status": "skipped", "error": format!("no usable device: {why}") })
    })
}

impl Asker<'_> {
    /// Time left for a question that may take so long.
    fn limit(&self, wanted: Duration) -> Option<Duration> {
        let left = self.deadline.checked_duration_since(Instant::now())?;
        (left > Duration::from_secs(2)).then(|| wanted.min(left))
    }

    /// Asks one question unless something is against it, and writes what came of it.
    fn record(
        &self,
        written: &mut Written,
        name: &'static str,
        asks: &'static str,
        obstacle: Option<&Value>,
        ask: impl FnOnce(&Self) -> Value,
    ) -> Result<(), String> {
        let only = &self.run.only;
        if (!only.is_empty() && !only.iter().any(|wanted| is_meant(wanted, name)))
            || self
                .run
                .skip
                .iter()
                .any(|unwanted| is_meant(unwanted, name))
        {
            return Ok(());
        }
        let start = Instant::now();
        let outcome = match obstacle {
            Some(outcome) => outcome.clone(),
            None => ask(self),
        };
        written.question(name, asks, outcome, start.elapsed())
    }

    /// Facts of the machine, and the libraries that are used from here on.
    fn look_around(&mut self) -> Value {
        let mut machine = machine::facts();
        let paths = if self.run.of.is_simulated() {
            vec![PathBuf::new()]
        } else {
            machine::cupti_candidates()
        };
        let mut candidates = Vec::new();
        let mut chosen: Option<(Value, PathBuf)> = None;
        for path in paths {
            self.cupti = (!path.as_os_str().is_empty()).then(|| path.clone().into_os_string());
            let outcome = self.ask(&questions::MACHINE, &self.run.of);
            let name = path.display().to_string();
            let answer = &outcome["answer"];
            candidates.push(json!({
                "tried": if name.is_empty() { "the simulated one" } else { &name },
                "path": answer["cupti_path"],
                "version": answer["cupti_version"],
                "subscribe_code": answer["subscribe_code"],
                "device_works": answer["device_works"],
                "error": outcome["error"],
            }));
            if answer.is_object() {
                let works = answer["device_works"] == true && answer["subscribe_code"] == 0;
                if works || chosen.is_none() {
                    chosen = Some((answer.clone(), path));
                }
                if works {
                    break;
                }
            }
        }
        machine["cupti_candidates"] = candidates.into();
        let Some((answer, path)) = chosen else {
            self.cupti = None;
            machine["cupti"] = Value::Null;
            return machine;
        };
        self.cupti = (!path.as_os_str().is_empty()).then(|| path.into_os_string());
        if !self.run.of.is_simulated() {
            let major = answer["driver"]["cuda_version"]
                .as_u64()
                .map(|version| version / 1000);
            self.cudart = machine::cudart(major);
        }
        machine["cudart"] = json!(self.cudart.as_ref().map(|path| path.display().to_string()));
        machine["gpu"] = answer["driver"]["gpu"].clone();
        machine["cupti"] = answer;
        machine
    }

    /// Asks a question in a child.
    fn ask(&self, question: &Question, of: &Of) -> Value {
        let Some(limit) = self.limit(question.limit) else {
            return no_time();
        };
        let answer = self.run.out.join(".answer");
        // One that is left over would be taken for this question's.
        let _ = std::fs::remove_file(&answer);
        let mut child = self.command(&self.program);
        child
            .args(["ask", question.name, "--answer"])
            .arg(&answer)
            .args(of.arguments());
        if let Some(cudart) = &self.cudart {
            child.arg("--cudart").arg(cudart);
        }
        let outcome = self.run_child(child, limit);
        let said = std::fs::read(&answer)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let _ = std::fs::remove_file(&answer);
        match (said, outcome) {
            // What a child has written counts, however its end was.
            (Some(Value::Object(said)), _) => Value::Object(said),
            (_, Err(problem)) => problem,
            (_, Ok(())) => json!({ "status": "failed", "error": "the process wrote no answer" }),
        }
    }

    /// A child with the chosen CUPTI, whose error stream is kept.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdout(Stdio::null());
        if let Some(path) = &self.cupti {
            command.env(lineage_cupti::sys::LIBRARY_VARIABLE, path);
        }
        command
    }

    /// Runs a child to its end or the end of its time; what is wrong, as an outcome.
    fn run_child(&self, mut command: Command, limit: Duration) -> Result<(), Value> {
        let file = self.run.out.join(".said");
        match std::fs::File::create(&file) {
            Ok(said) => command.stderr(said),
            Err(_) => command.stderr(Stdio::null()),
        };
        let ended = process::run(&mut command, limit);
        let said = std::fs::read(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        let said =
            String::from_utf8_lossy(&said[said.len().saturating_sub(SAID_BYTES)..]).into_owned();
        let (status, error) = match ended {
            Err(error) => (
                "failed",
                format!("the process could not be started: {error}"),
            ),
            Ok(ended) => match ended.problem(limit) {
                None => return Ok(()),
                Some(problem) if matches!(ended, process::Ended::InTime) => ("timed_out", problem),
                Some(problem) => ("failed", problem),
            },
        };
        Err(json!({ "status": status, "error": error, "said": said }))
    }
}

fn no_time() -> Value {
    json!({ "status": "skipped", "error": "no time was left" })
}
