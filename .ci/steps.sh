# The steps of .ci/run, one function each. Sourced; the working directory is the repository's root.
# shellcheck shell=bash

export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 RUST_BACKTRACE=1
target=${CARGO_TARGET_DIR:-$PWD/target}

# Folders and files that steps write, apart from cargo's own profile folders.
work=$target/ci
mkdir -p "$work"

parts() { # parts GROUP...: fetches them, or finds them fetched, and exports where they are
    local exports
    exports=$(scripts/fetch-parts "$@") || return 1
    eval "$exports"
}

# Every optional part that tests may use is here, so none may be skipped.
require_everything() {
    parts nvidia
    local traces
    if traces=$(cd ../shared/traces 2>/dev/null && pwd); then export LINEAGE_TRACES=$traces; fi
    export LINEAGE_REQUIRE=cupti,headers${LINEAGE_TRACES:+,traces}
}

step_parts() {
    parts nvidia tools rust-sources old-rustc
}

step_format() {
    cargo fmt --all --check -- --color never
    local manifest
    for manifest in checks/*/Cargo.toml fuzz/Cargo.toml; do cargo fmt --manifest-path "$manifest" --check -- --color never; done
}

step_paths() { .ci/machine_paths; }

step_lints() {
    cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
    # Everywhere but in lineage-tokio and the tests that show what goes wrong, a raw spawn loses the epoch. Examples are
    # what people copy, so there it is an error.
    cargo clippy -p launch-lineage --examples --locked -- -D warnings -D clippy::disallowed_methods
}

step_bites() { checks/clippy/check; }

step_tests() {
    require_everything
    cargo test --workspace --locked
}

step_loom() {
    RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3} \
        cargo test -p lineage-core --lib --locked --target-dir "$work/loom" -- loom
}

step_docs() {
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked
    RUSTDOCFLAGS="-D warnings" cargo doc -p launch-lineage --no-deps --locked
}

step_features() {
    parts tools
    cargo hack clippy --locked --feature-powerset -p lineage-core -p lineage-tokio -p lineage-cupti -p lineage-rayon -p lineage-tower \
        -p lineage-validator -- -D warnings
}

step_benches() {
    # A package of its own, with its own Cargo.lock: what it compares with is not built with the tests.
    cargo clippy --manifest-path benches/Cargo.toml --benches --target-dir "$work/benches" -- -D warnings
}

step_tree() { .ci/dependency_tree; }

step_licences() {
    parts tools
    cargo fetch --locked
    # Advisories need a git repository; `cargo deny check` alone does them too, where that can be reached.
    cargo deny --offline --locked --all-features check --hide-inclusion-graph licenses bans sources
}

step_minimum() {
    parts old-rustc
    .ci/msrv/check "$work/msrv"
}

step_cross() {
    parts rust-sources
    .ci/cross "$work/cross"
}

step_off() { checks/record-off/check; }

step_instructions() { checks/instructions/check; }

step_real() {
    quick_release
    require_everything
    .ci/real_codes.py --check
    .ci/example.py real "$work/example"
}

# What is run, and not measured, is built in half the time this way.
quick_release() { export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=0; }

step_example() { quick_release; .ci/example.py sim "$work/example"; }

# Every export is checked by scripts/check-otlp-export; deliver.py shows that it finds what is wrong, too.
step_otlp() {
    quick_release
    .ci/otlp/deliver.py "$work/otlp"
    .ci/otlp/restart.py "$work/otlp" term
}

step_handoffs() { quick_release; .ci/handoffs small; }

step_graphs() { quick_release; .ci/graphs small; }

step_api() { scripts/public-api; }

# ---- .ci/long

step_repeat() { .ci/example.py sim "$work/example" 20; }

step_handoffs_20() { .ci/handoffs long "$work"; }

step_graph_matrix() { .ci/graphs long "$work"; }

step_recapture() { .ci/recapture.py "$work/recapture"; }

# Hooks of tokio's that it does not promise: for finding lost epochs only. All of tokio is built for them.
step_unstable() {
    RUSTFLAGS="--cfg tokio_unstable" cargo test -p lineage-tokio --test a_raw_spawn_is_found_by_tokios_own_hooks --locked \
        --target-dir "$work/unstable"
}

# The facade's features only name those of the others, and each doubles the number of sets.
step_features_all() {
    parts tools
    cargo hack clippy --locked --each-feature -p launch-lineage -p lineage-arrow -p lineage-cudarc -p lineage-otlp -- -D warnings
    # What Parquet files hold, read back, and the command that writes them: the tests of .ci/run are without that feature.
    cargo test --locked -p lineage-arrow --features sqlite,parquet --test tables_are_exported_with_the_values_as_they_are
    cargo test --locked -p lineage-cli --features parquet --test a_run_directory_is_a_ledger_too
}

step_cross_all() {
    parts rust-sources
    .ci/cross "$work/cross" all
}

step_otlp_others() {
    parts rotel
    .ci/otlp/second.py "$work/otlp"
    .ci/otlp/configurations.py "$work/otlp"
}

step_otlp_rough() {
    .ci/otlp/restart.py "$work/otlp" kill
    .ci/otlp/restart.py "$work/otlp" gone
    .ci/otlp/flood.py "$work/otlp"
}

# A package of its own, with its own Cargo.lock: candle's choice of cudarc's features is not that of the examples.
step_candle() {
    local manifest=adapters/candle/Cargo.toml
    cargo fmt --manifest-path "$manifest" --check -- --color never
    cargo clippy --manifest-path "$manifest" --all-targets --target-dir "$work/candle" --locked -- -D warnings
    cargo test --manifest-path "$manifest" --target-dir "$work/candle" --locked
}

step_descheduling() {
    cargo test --release -p lineage-sched --test real_descheduling_is_where_the_victim_missed_time --locked -- --ignored --nocapture
}

step_verdicts() {
    cargo test --test verdicts_hold_end_to_end --locked -- --ignored --nocapture --test-threads=2
}

step_million() { cargo run --release -p lineage-sim --example a_million_launches --locked; }

step_kills() {
    LINEAGE_KILLS=50 cargo test --release -p lineage-arrow --test a_damaged_run_directory_is_read_as_far_as_it_goes --locked -- \
        --nocapture killed_at_any_moment
}

step_consumers() { LINEAGE_SIM_CONSUMERS=1 cargo test -p lineage-sim --test consumers --locked -- --nocapture; }

step_loom_deep() { LOOM_MAX_PREEMPTIONS=8 step_loom; }

step_properties() { PROPTEST_CASES=20000 cargo test -p lineage-core -p lineage-validator --release --locked; }

step_fuzz_long() { fuzz/run 600; }

step_large() { .ci/large.py "$work/large"; }

step_compare() {
    require_everything
    scripts/compare-hta
}

# The same tests again and again, with the machine's cores shared by one test at a time and by many.
step_tests_again() {
    require_everything
    local threads
    for threads in 1 2 4 8 16; do
        cargo test --workspace --locked -- --test-threads "$threads"
    done
}
