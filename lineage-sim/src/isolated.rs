use std::process::Command;

/// Set for the process that runs the one test, to that test's name.
const ENVIRONMENT: &str = "LINEAGE_SIM_ISOLATED";
/// Set to `1` by nextest, whose tests have processes of their own already.
const NEXTEST: &str = "NEXTEST";

/// Runs a test's body in a process of its own.
///
/// The simulated libraries are global to a process, and so are CUPTI's subscriber and buffers: a
/// test that loads them with a configuration of its own, or that counts records, wants no other
/// test beside it. Under `cargo test` this starts the running test binary again for exactly the
/// test `name` and waits for it; in that process, and under nextest (which gives every test a
/// process anyway), it runs `body`.
///
/// `name` is the test's full name as `cargo test -- --list` shows it: the path of its module
/// inside the crate and its own name.
///
/// ```no_run
/// #[test]
/// fn a_kernel_runs() {
///     lineage_sim::isolated("a_kernel_runs", || {
///         let _gpu = lineage_sim::load(lineage_sim::Config::default()).unwrap();
///     });
/// }
/// ```
///
/// # Panics
///
/// When the test fails in its process, with all that it printed; and when no test of that name ran there.
pub fn isolated(name: &str, body: impl FnOnce()) {
    let inner = std::env::var_os(ENVIRONMENT);
    if std::env::var_os(NEXTEST).is_some_and(|value| value == "1")
        || inner.as_deref() == Some(name.as_ref())
    {
        body();
        println!("{}", finished(name));
        return;
    }
    assert!(
        inner.is_none(),
        "the isolated test {inner:?} reached `isolated(\"{name}\")`: one test may have one isolated body, under its own name"
    );
    let program = std::env::current_exe().expect("the running test binary has a path");
    let output = Command::new(program)
        .args([
            name,
            "--exact",
            "--nocapture",
            "--include-ignored",
            "--test-threads=1",
        ])
        .env(ENVIRONMENT, name)
        .output()
        .expect("the running test binary can be started again");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the isolated test {name} failed ({})\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
        output.status
    );
    assert!(
        stdout.contains(&finished(name)),
        "no test named {name} ran in its own process; `isolated` wants the full name that `cargo test -- --list` shows"
    );
    print!("{stdout}");
    eprint!("{stderr}");
}

fn finished(name: &str) -> String {
    format!("lineage-sim: isolated test {name} finished")
}
