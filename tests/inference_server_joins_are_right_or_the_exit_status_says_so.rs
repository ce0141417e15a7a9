//! The example `inference_server`, run as a program: its exit status, its figures, its messages.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use lineage_core::observation::Event;
use lineage_core::verdict::{Judge, Settings, VerdictKind};
use serde_json::Value;

/// The example's binary. `cargo test` builds examples before it runs tests, into a folder beside
/// this test's own; `cargo test --test …` does not, so what is missing or old is built here.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let test = std::env::current_exe().expect("the test has a path");
        let profile = test
            .ancestors()
            .nth(2)
            .expect("target/<profile>/deps/<test>");
        let program = profile.join("examples").join("inference_server");
        let built = program.metadata().and_then(|file| file.modified()).ok();
        let sources = ["examples/inference_server", "src", "validator/src"];
        let crates = ["core", "tokio", "cupti", "sim"].map(|name| format!("lineage-{name}"));
        let mut folders = sources
            .iter()
            .copied()
            .chain(crates.iter().map(String::as_str));
        if folders.any(|folder| built < newest_source(&root.join(folder))) {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--example", "inference_server", "--manifest-path"]);
            cargo.arg(root.join("Cargo.toml"));
            if !cfg!(debug_assertions) {
                cargo.arg("--release");
            }
            let status = cargo.status().expect("cargo runs");
            assert!(status.success(), "the example does not build");
        }
        program
    })
}

fn newest_source(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).expect("the example's sources are there");
    entries
        .map(|entry| entry.expect("it can be listed").path())
        .filter_map(|path| {
            if path.is_dir() {
                newest_source(&path)
            } else {
                path.metadata().and_then(|file| file.modified()).ok()
            }
        })
        .max()
}

/// A folder of its own for each run, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lineage-inference-server-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What came of a run.
struct Ran {
    status: Option<i32>,
    text: String,
    json: Value,
    folder: Folder,
}

impl Ran {
    fn number(&self, key: &str) -> u64 {
        let value = self.json.pointer(key);
        value
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{key} is {value:?} in {}\n{}", self.json, self.text))
    }

    fn fault(&self, code: &str) -> u64 {
        self.json["faults"]
            .get(code)
            .and_then(Value::as_u64)
            .unwrap_or(0)
    }
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).arg("--out").arg(&folder.0);
    command
}

fn run(arguments: &[&str]) -> Ran {
    let folder = Folder::new();
    let json = folder.0.join("summary.json");
    let output = command(&folder, arguments)
        .arg("--json")
        .arg(&json)
        .output()
        .expect("the example starts");
    let json = std::fs::read(&json).map_or(Value::Null, |text| {
        serde_json::from_slice(&text).expect("valid JSON")
    });
    Ran {
        status: output.status.code(),
        text: text(&output),
        json,
        folder,
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Few requests on the simulated GPU, run once, with lineage on.
fn small(more: &[&str]) -> Ran {
    small_compared("0", more)
}

/// The same, with so many runs more with lineage off and on.
fn small_compared(arms: &str, more: &[&str]) -> Ran {
    let few = ["--gpu", "sim", "--requests", "40", "--concurrency", "12"];
    run(&[&few, ["--arms", arms].as_slice(), more].concat())
}

/// What must hold of every run in which nothing is broken.
fn assert_right(ran: &Ran) {
    assert_eq!(ran.status, Some(0), "{}", ran.text);
    assert_eq!(
        ran.json["judged_by"], "truth carried by data",
        "{}",
        ran.text
    );
    assert_eq!(
        (ran.number("/lost"), ran.number("/wrong")),
        (0, 0),
        "{}",
        ran.text
    );
    assert_eq!(ran.json["faults"], serde_json::json!({}), "{}", ran.text);
    assert_eq!(ran.number("/requests"), 40);

    // By the program's text: a copy and a kernel for each prompt, four kernels and a copy for each step,
    // a copy for each batch; and the weights, which are no request's work.
    let (batches, steps) = (ran.number("/batches"), ran.number("/steps"));
    assert!(
        batches > 1 && steps >= batches,
        "{batches} batches, {steps} steps"
    );
    let bound = 2 * 40 + 5 * steps + batches;
    assert_eq!(ran.number("/operations"), bound + 1);
    assert_eq!(ran.number("/calls"), bound + 1);
    assert_eq!(ran.number("/bound"), bound);
    assert_eq!(ran.number("/unattributed"), 1);
    // All of it is launched inside boundaries, so both observed sources name it.
    assert_eq!(ran.number("/joins/external_and_callback"), bound);
}

#[test]
fn every_join_is_right_whether_or_not_a_push_inside_cuptis_callback_counts() {
    for counts in ["true", "false"] {
        let ran = small_compared("1", &["--sim-push-inside-enter", counts]);
        assert_right(&ran);
        for rate in ["requests_per_second_off", "requests_per_second_on"] {
            assert!(
                ran.json[rate].as_f64().is_some_and(|rate| rate > 0.0),
                "{rate}: {}",
                ran.json
            );
        }
    }
}

#[test]
fn a_replayed_step_is_joined_to_its_batch_and_to_its_capture() {
    for cupti in ["12.9", "13.5"] {
        let ran = small(&["--graphs", "--sim-cupti", cupti]);
        assert_eq!(ran.status, Some(0), "{}", ran.text);
        assert_eq!(
            (ran.number("/lost"), ran.number("/wrong")),
            (0, 0),
            "{}",
            ran.text
        );
        assert_eq!(ran.json["faults"], serde_json::json!({}), "{}", ran.text);
        // By the program's text, as in `assert_right`; a step's four kernels are one call, and what pads
        // batches is set up beside the weights.
        let (batches, steps) = (ran.number("/batches"), ran.number("/steps"));
        let bound = 2 * 40 + 5 * steps + batches;
        assert_eq!(ran.number("/bound"), bound);
        assert_eq!(ran.number("/operations"), bound + 2);
        assert_eq!(ran.number("/calls"), bound + 2 - 3 * steps);
        // Each of the four kernels of each step was compared with the truth of both its owners.
        assert_eq!(ran.number("/graphs/replays"), steps);
        assert_eq!(ran.number("/graphs/judged"), 4 * steps);
        assert_eq!(ran.number("/graphs/known"), 4 * steps);
        let graphs = ran.number("/graphs/executables");
        assert!((2..=4).contains(&graphs), "{graphs} sizes of batch");
    }
}

#[test]
fn runtime_calls_around_the_drivers_are_counted_once_whatever_their_ids_are() {
    for (ids, cupti) in [("same", "12.9"), ("own", "13.5")] {
        assert_right(&small(&["--sim-runtime-calls", ids, "--sim-cupti", cupti]));
    }
}

#[test]
fn a_job_without_its_envelope_is_noticed_at_the_handoff_and_at_its_launches() {
    let ran = small(&["--break", "envelope"]);
    assert_eq!(ran.status, Some(1), "{}", ran.text);
    let broken = ran.number("/broken");
    assert!(broken > 0);
    assert_eq!(ran.fault("L05"), broken, "{}", ran.text);
    // At least the copy and the kernel of each prompt have no epoch.
    assert!(ran.fault("L01") >= 2 * broken, "{}", ran.text);
    assert!(ran.number("/lost") >= 2 * broken, "{}", ran.text);
    assert!(
        ran.text.contains("L05 handoff-not-received"),
        "{}",
        ran.text
    );
}

#[test]
fn swapped_envelopes_are_wrong_against_the_truth_that_the_data_carries() {
    let ran = small(&["--break", "swap"]);
    assert_eq!(ran.status, Some(1), "{}", ran.text);
    // The copy and the kernel of both prompts of each pair went to the other's request.
    assert!(
        ran.number("/wrong") >= 4 * ran.number("/broken"),
        "{}",
        ran.text
    );
    assert!(ran.number("/broken") > 0);
}

#[test]
fn a_scope_that_is_never_left_is_noticed() {
    let ran = small(&["--break", "restore"]);
    assert_eq!(ran.status, Some(1), "{}", ran.text);
    assert!(ran.number("/broken") > 0);
    assert!(ran.fault("W07") > 0, "{}", ran.text);
    assert!(ran.number("/wrong") > 0, "{}", ran.text);
}

#[test]
fn a_real_gpu_that_is_not_there_is_a_clear_message_and_not_a_panic() {
    let ran = run(&["--gpu", "real", "--requests", "8", "--arms", "0"]);
    if ran.status != Some(2) {
        assert!(ran.json["simulated"] == false, "{}", ran.text);
        eprintln!("skipped: this machine has a working gpu");
        return;
    }
    assert!(ran.text.contains("no usable real gpu"), "{}", ran.text);
    assert!(ran.text.contains("next: "), "{}", ran.text);
    assert!(!ran.text.contains("panicked"), "{}", ran.text);
}

/// With the real CUPTI 12.9 and 13.5, with and without a real libcuda, and no device.
#[cfg(target_os = "linux")]
#[test]
fn a_real_cupti_that_cannot_work_is_a_clear_message_and_not_a_panic() {
    let part = |variable: &str| {
        let path = std::env::var_os(variable).filter(|path| !path.is_empty());
        let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
        assert!(
            path.is_some() || !required.split(',').any(|part| part.trim() == "cupti"),
            "{variable} is not set, and LINEAGE_REQUIRE asks for cupti: eval \"$(scripts/fetch-parts)\""
        );
        path.map(PathBuf::from)
    };
    let (Some(cupti_12), Some(cupti_13), Some(libcuda)) = (
        part("LINEAGE_CUPTI_12"),
        part("LINEAGE_CUPTI_13"),
        part("LINEAGE_LIBCUDA"),
    ) else {
        eprintln!("skipped: the real libraries are not there (scripts/fetch-parts fetches them)");
        return;
    };
    for cupti in [&cupti_12, &cupti_13] {
        for libcuda in [None, Some(&libcuda)] {
            let folder = Folder::new();
            let folders = [Some(cupti), libcuda]
                .into_iter()
                .flatten()
                .filter_map(|path| path.parent());
            let path = std::env::join_paths(folders).expect("no colon in a path");
            let output = command(
                &folder,
                &["--gpu", "real", "--requests", "8", "--arms", "0"],
            )
            .env("LD_LIBRARY_PATH", path)
            .env("LINEAGE_CUPTI_LIBRARY", cupti)
            .output()
            .expect("the example starts");
            let text = text(&output);
            if output.status.code() == Some(0) {
                eprintln!("skipped: this machine has a working gpu");
                return;
            }
            assert_eq!(output.status.code(), Some(2), "{text}");
            assert!(text.contains("no usable real gpu"), "{text}");
            assert!(text.contains("no device evidence: "), "{text}");
            assert!(text.contains("next: "), "{text}");
            assert!(!text.contains("panicked"), "{text}");
        }
    }
}

#[test]
fn auto_says_what_it_took_and_why() {
    let ran = run(&["--gpu", "auto", "--requests", "8", "--arms", "0"]);
    assert_eq!(ran.status, Some(0), "{}", ran.text);
    if ran.json["simulated"] == true {
        let why = ran.json["gpu"].as_str().expect("a description");
        assert!(why.contains("CUDA"), "{why}");
        assert!(ran.text.contains(why), "{}", ran.text);
    }
}

#[test]
fn the_ledger_on_disk_gives_the_same_rows() {
    use lineage_core::ledger::{Entry, Reader};

    let ran = small(&[]);
    let file =
        std::fs::File::open(ran.folder.0.join("ledger.jsonl")).expect("the ledger was written");
    let mut rows = 0_u64;
    let mut ended = false;
    for entry in Reader::new(BufReader::new(file)) {
        match entry.expect("every line can be read") {
            Entry::Row(_) => rows += 1,
            Entry::End(_) => ended = true,
            _ => {}
        }
    }
    assert!(ended, "the ledger has its end line");
    assert_eq!(rows, ran.number("/operations"));
}

/// What a ledger holds, judged: the verdicts, each with how many stretches and how long, in ns, and
/// whether the calls that order work, and switches of the scheduler's, were collected.
fn verdicts(ran: &Ran) -> (BTreeMap<VerdictKind, (u64, u64)>, bool, bool) {
    use lineage_core::ledger::{Entry, Reader};

    let file = std::fs::File::open(ran.folder.0.join("ledger.jsonl")).expect("it was written");
    let (mut observations, mut rows) = (Vec::new(), Vec::new());
    for entry in Reader::new(BufReader::new(file)) {
        match entry.expect("every line can be read") {
            Entry::Observation(of) => observations.push(of),
            Entry::Row(row) => rows.push(row),
            _ => {}
        }
    }
    let (mut found, mut orders, mut switches) = (BTreeMap::new(), false, false);
    for seen in &observations {
        match &seen.event {
            Event::Collected(of) => orders |= of.order_calls,
            Event::Scheduled(_) => switches = true,
            _ => {}
        }
    }
    for life in Judge::new(Settings::default()).judge(&observations, &rows) {
        assert!(life.is_exact() && life.unsegmented.is_none(), "{life:?}");
        for segment in &life.segments {
            let (count, ns) = found.entry(segment.verdict.kind()).or_insert((0, 0));
            *count += 1;
            *ns += segment.duration_ns();
        }
    }
    (found, orders, switches)
}

/// The example's text makes each of these: requests wait for their place in a batch, a step's kernels
/// for each other, and the engine's thread works between its calls.
#[test]
fn why_work_was_late_is_claimed_only_where_what_explains_it_was_collected() {
    let host = [
        VerdictKind::BatchWait,
        VerdictKind::HostWork,
        VerdictKind::SubmitterLate,
        VerdictKind::ApplicationLate,
        VerdictKind::ApiSlow,
    ];
    let ran = small(&["--tier", "explain"]);
    assert_right(&ran);
    let (found, orders, switches) = verdicts(&ran);
    assert!(orders, "{found:?}");
    assert!(
        found.contains_key(&VerdictKind::DependencyWait),
        "{found:?}"
    );
    assert!(found.contains_key(&VerdictKind::BatchWait), "{found:?}");
    // A container may forbid to see switches; then no claim rests on them.
    assert_eq!(
        found.contains_key(&VerdictKind::HostWork),
        switches,
        "{found:?}"
    );

    let (found, orders, switches) = verdicts(&small(&["--tier", "correlate"]));
    assert!(!orders && !switches);
    for kind in host {
        assert!(!found.contains_key(&kind), "{found:?}");
    }
    assert!(found.contains_key(&VerdictKind::Unresolved), "{found:?}");
}

#[test]
fn a_program_without_a_terminal_writes_no_bar_and_no_colours() {
    let ran = small(&[]);
    assert!(!ran.text.contains('\u{1b}'), "{:?}", ran.text);
    assert!(!ran.text.contains("━"), "{}", ran.text);
}

#[cfg(unix)]
#[test]
fn serve_answers_with_tokens_refuses_what_it_cannot_serve_and_ends_on_ctrl_c() {
    let folder = Folder::new();
    let mut child = command(&folder, &["--gpu", "sim", "--serve"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut address = String::new();
    while address.is_empty() {
        let mut line = String::new();
        assert!(
            said.read_line(&mut line).expect("text") > 0,
            "it ended before it served"
        );
        if let Some((_, rest)) = line.split_once("http://") {
            address = rest.split('/').next().expect("one part").to_owned();
        }
    }

    let answer = post(&address, r#"{"prompt": "a kernel st", "max_tokens": 5}"#);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let letters: Vec<&str> = answer
        .split("\"text\":\"")
        .skip(1)
        .filter_map(|part| part.split('"').next())
        .collect();
    assert_eq!(letters.concat(), "arts ", "{answer}");
    let refused = post(&address, r#"{"prompt": "", "max_tokens": 5}"#);
    assert!(refused.starts_with("HTTP/1.1 422"), "{refused}");

    // A client that leaves in the middle of its answer is no fault.
    let mut stream = TcpStream::connect(&address).expect("it listens");
    let body = r#"{"prompt": "a kernel st", "max_tokens": 256}"#;
    write_request(&mut stream, &address, body);
    let mut first = [0; 16];
    stream.read_exact(&mut first).expect("it begins to answer");
    drop(stream);
    let answer = post(&address, r#"{"prompt": "a kernel st", "max_tokens": 1}"#);
    assert!(answer.contains(r#""text":"a""#), "{answer}");

    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.expect("kill is there").success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0), "{rest}");
    assert!(rest.contains("every join is right"), "{rest}");
}

#[cfg(unix)]
fn post(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write_request(&mut stream, address, body);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[cfg(unix)]
fn write_request(stream: &mut TcpStream, address: &str, body: &str) {
    write!(
        stream,
        "POST /generate HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
}
