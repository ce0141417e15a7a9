//! The questions, and how one of them is asked.
//!
//! An answer has two parts. `answer` holds what one machine answers the same way each time: whether,
//! how often, in which order, with which code. `measured` holds times and counts that differ from run to run.

mod buffers;
mod calls;
mod clocks;
mod cost;
mod external;
mod machine;
mod subscriber;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::cupti::{Client, Setup};
use super::failure::Failure;
use super::options::{Ask, Of};
use super::process;
use super::program::{self, Program};
use super::record::Record;
use super::scenarios::{self, SCENARIOS, Stage};

/// More records than this are not written, but counted.
const RECORDS_WRITTEN: usize = 2_000;

/// A question, asked in a process of its own.
pub struct Question {
    pub name: &'static str,
    /// What it asks.
    pub asks: &'static str,
    /// How long the process may take.
    pub limit: Duration,
    ask: Way,
}

/// How a question is asked.
enum Way {
    /// By a function that makes the answer.
    Asked(fn(&Arm) -> Result<Answer, Failure>),
    /// By work whose records are the answer.
    Run(fn(&Stage) -> Result<(), Failure>),
}

/// A question that is a scenario.
pub const fn scenario(
    name: &'static str,
    asks: &'static str,
    run: fn(&Stage) -> Result<(), Failure>,
) -> Question {
    Question {
        name,
        asks,
        limit: Duration::from_secs(15),
        ask: Way::Run(run),
    }
}

const fn question(
    name: &'static str,
    asks: &'static str,
    ask: fn(&Arm) -> Result<Answer, Failure>,
) -> Question {
    Question {
        name,
        asks,
        limit: Duration::from_secs(25),
        ask: Way::Asked(ask),
    }
}

/// What the machine itself is asked, for each CUPTI that is found; no question of the list.
pub const MACHINE: Question = question(
    "machine",
    "which driver, device and CUPTI there are",
    machine::ask,
);

/// All questions, in the order in which they are asked: what decides joins first, what takes long last.
pub const QUESTIONS: &[Question] = &[
    question(
        "external_records",
        "how many external correlation records a call has that is made under one pushed id",
        external::records_per_call,
    ),
    question(
        "push_inside_enter",
        "whether an id that is pushed inside the API-enter callback counts for that very call",
        external::push_inside_enter,
    ),
    question(
        "per_id_enabling",
        "whether calls that are chosen one by one have external correlation records",
        external::per_id_enabling,
    ),
    question(
        "nested_ids",
        "whether a runtime call and the driver call inside it have one correlation id",
        calls::nested_ids,
    ),
    question(
        "correlation_ids",
        "by how much correlation ids rise from call to call",
        calls::correlation_ids,
    ),
    question(
        "empty_work",
        "which records a set and a copy of zero bytes have",
        calls::empty_work,
    ),
    question(
        "thread_ids",
        "what the thread id of a call's record is",
        calls::thread_ids,
    ),
    question(
        "graph_callbacks",
        "which callbacks come when graphs are captured, built, copied, instantiated, updated and destroyed, and what they name",
        scenarios::graph_callbacks::ask,
    ),
    question(
        "record_order",
        "in which order the records of calls, ids and operations are in a buffer",
        buffers::record_order,
    ),
    question(
        "buffers_by_thread",
        "whether each thread has buffers of its own",
        buffers::by_thread,
    ),
    question(
        "flush_while_running",
        "what a flush without force gives back while a kernel runs",
        buffers::flush_while_running,
    ),
    question(
        "dropped_records",
        "for which scope dropped records are counted, and whether reading resets the count",
        buffers::dropped_records,
    ),
    question(
        "second_subscriber",
        "what a second subscriber is answered",
        subscriber::second,
    ),
    question(
        "resubscribe",
        "what stays when a subscriber leaves and comes again",
        subscriber::again,
    ),
    question(
        "latency_timestamps_off",
        "whether kernels have queued and submitted times by default",
        clocks::latency_timestamps_off,
    ),
    question(
        "latency_timestamps_on",
        "whether kernels have queued and submitted times where they are asked for",
        clocks::latency_timestamps_on,
    ),
    question(
        "clock",
        "whether records keep to a monotonic clock that CUPTI is given",
        clocks::with_callback,
    ),
    question(
        "clock_of_cupti",
        "on which clock records are where CUPTI is given none",
        clocks::without_callback,
    ),
    question(
        "push_and_pop_cost",
        "what a push and a pop take",
        cost::push_and_pop,
    ),
];

/// The launch loop in its four forms. Each is run in several rounds, in turn.
pub const LOOPS: &[Question] = &[
    question("off", "a launch loop without CUPTI", cost::loop_off),
    question(
        "cupti",
        "with CUPTI, as lineage sets it up",
        cost::loop_cupti,
    ),
    question(
        "lineage",
        "with lineage, a boundary around each launch",
        cost::loop_lineage,
    ),
    question(
        "lineage_step",
        "with lineage, a boundary around 16 launches",
        cost::loop_lineage_step,
    ),
];

/// Of whom a question is asked, in the process that asks it.
pub struct Arm {
    pub of: Of,
    pub cudart: Option<PathBuf>,
}

impl Arm {
    /// CUPTI first, then CUDA, as lineage does it.
    pub fn open(&self, setup: &Setup) -> Result<(Client, Program), Failure> {
        let client = Client::open(setup)?;
        let program = self.program()?;
        Ok((client, program))
    }

    fn program(&self) -> Result<Program, Failure> {
        Program::open()
    }

    fn cudart(&self) -> Option<&Path> {
        self.cudart.as_deref()
    }
}

/// What a question came to.
#[derive(Default)]
pub struct Answer {
    answer: Map<String, Value>,
    measured: Map<String, Value>,
    records: Vec<Value>,
    records_left_out: usize,
}

impl Answer {
    /// Two objects.
    pub fn new(answer: Value, measured: Value) -> Self {
        let fields = |value| match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            answer: fields(answer),
            measured: fields(measured),
            ..Self::default()
        }
    }

    /// The records it was read from.
    fn with_records(mut self, records: &[Record]) -> Self {
        let room = RECORDS_WRITTEN.saturating_sub(self.records.len());
        let written = records
            .iter()
            .take(room)
            .filter_map(|record| serde_json::to_value(record).ok());
        self.records.extend(written);
        self.records_left_out += records.len().saturating_sub(room);
        self
    }

    fn into_json(self) -> Value {
        json!({
            "status": "answered",
            "answer": self.answer,
            "measured": self.measured,
            "records": self.records,
            "records_left_out": self.records_left_out,
        })
    }
}

/// The child's part: asks one question and writes what came of it. Only a crash leaves no file.
pub fn answer_one(ask: &Ask) -> Result<ExitCode, String> {
    process::end_with_parent();
    let question = std::iter::once(&MACHINE)
        .chain(QUESTIONS)
        .chain(SCENARIOS)
        .chain(LOOPS)
        .find(|question| question.name == ask.name)
        .ok_or_else(|| format!("there is no question {}", ask.name))?;
    let arm = Arm {
        of: ask.of.clone(),
        cudart: ask.cudart.clone(),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        program::prepare(&arm.of)?;
        match question.ask {
            Way::Asked(ask) => ask(&arm),
            Way::Run(run) => scenarios::ask(&arm, run),
        }
    }));
    let value = match outcome {
        Ok(Ok(answer)) => answer.into_json(),
        Ok(Err(failure)) => {
            let status = if matches!(failure, Failure::Skipped(_)) {
                "skipped"
            } else {
                "failed"
            };
            json!({ "status": status, "error": failure.to_string() })
        }
        Err(panic) => {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("without a message");
            json!({ "status": "failed", "error": format!("panic: {message}") })
        }
    };
    std::fs::write(&ask.answer, value.to_string())
        .map_err(|error| format!("{} cannot be written: {error}", ask.answer.display()))?;
    // Not through `main`'s return: the exit handlers of a driver that failed may not come back.
    // SAFETY: all is written; ends the process at once.
    unsafe { libc::_exit(0) }
}
