#!/bin/sh
# A stranger's crate takes lineage-sim as a git dependency (hashed file names) and as a path
# dependency (plain ones), and loads the simulator from an example, a binary, a unit test, an
# integration test and a doctest, in every way in which cargo lays out its folders.
#
# Usage: consumers.sh REPOSITORY SCRATCH_FOLDER
set -eu

repository=$1
scratch=$2
target=$(rustc -vV | sed -n 's/^host: //p')

consumer() {
    folder=$scratch/$1
    dependency=$2
    mkdir -p "$folder/src" "$folder/examples" "$folder/tests"
    cat > "$folder/Cargo.toml" <<TOML
[package]
name = "consumer"
version = "0.0.0"
edition = "2024"

[dependencies]
lineage-sim = $dependency

[workspace]
TOML
    cat > "$folder/src/lib.rs" <<'RUST'
//! ```
//! consumer::check();
//! ```

/// Loads the simulator and sees that it answers.
pub fn check() {
    let gpu = lineage_sim::load(lineage_sim::Config::default()).expect("it loads");
    gpu.kernel("k").timed().expect("a name");
    assert!(gpu.now_ns() > 0);
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the list of what is loaded");
    for library in ["lineage_sim_cuda", "lineage_sim_cupti"] {
        let line = maps.lines().find(|line| line.contains(library)).expect("it is loaded");
        println!("loaded {}", line.split_whitespace().last().unwrap_or(""));
    }
}

#[test]
fn unit() {
    check();
}
RUST
    printf '#[test]\nfn integration() {\n    consumer::check();\n}\n' > "$folder/tests/integration.rs"
    printf 'fn main() {\n    consumer::check();\n}\n' > "$folder/examples/example.rs"
    printf 'fn main() {\n    consumer::check();\n}\n' > "$folder/src/main.rs"
    printf '%s\n' "$folder"
}

# Everything in one layout: the words after the folder go to cargo.
everything() {
    echo "== $*"
    (
        cd "$1"
        shift
        cargo run --quiet "$@" --example example
        cargo run --quiet "$@" --bin consumer
        cargo test --quiet "$@"
    )
}

unset CARGO_TARGET_DIR
git_consumer=$(consumer by-git "{ git = \"file://$repository\" }")
everything "$git_consumer"
everything "$git_consumer" --release
everything "$git_consumer" --target "$target"
CARGO_TARGET_DIR=$scratch/elsewhere everything "$git_consumer"
CARGO_BUILD_BUILD_DIR=$scratch/intermediate everything "$git_consumer"

# A second build of another form beside the first: the newest that fits is taken.
RUSTFLAGS='--cfg another_form' everything "$git_consumer"

path_consumer=$(consumer by-path "{ path = \"$repository/lineage-sim\" }")
everything "$path_consumer"
everything "$path_consumer" --release --target "$target"

echo "all consumers loaded the simulator"
