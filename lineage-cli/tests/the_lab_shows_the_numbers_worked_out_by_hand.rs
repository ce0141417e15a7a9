//! `lineage lab` prints what was worked out by hand: when each launch started, what it waited for, when the device was idle.

mod common;

use common::{lineage, run};
use serde_json::Value;

fn lab(arguments: &str) -> String {
    let ran = run(lineage()
        .arg("lab")
        .args(arguments.split(' '))
        .env("COLUMNS", "80"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    ran.out
}

fn object(arguments: &str) -> Value {
    let text = lab(&format!("{arguments} --json"));
    serde_json::from_str(&text).expect("JSON")
}

/// One number of each launch, in µs.
fn column(object: &Value, name: &str) -> Vec<f64> {
    let launches = object["launches"].as_array().expect("launches");
    let of = |launch: &Value| launch[name].as_f64().expect("a number") / 1_000.0;
    launches.iter().map(of).collect()
}

/// Host 3, kernel 8: the host runs ahead, and each kernel waits for the one before. 3 + 4 × 8 = 35; the host was done at 12.
#[test]
fn the_host_runs_ahead() {
    let object = object("--host 3 --gpu 8 --launches 4");
    assert_eq!(column(&object, "enqueued_ns"), [3.0, 6.0, 9.0, 12.0]);
    assert_eq!(column(&object, "started_ns"), [3.0, 11.0, 19.0, 27.0]);
    assert_eq!(column(&object, "ended_ns"), [11.0, 19.0, 27.0, 35.0]);
    let text = lab("--host 3 --gpu 8 --launches 4");
    for line in [
        "  launch  called  enqueued  started  ended  waited  for",
        "       1       0         3        3     11       0",
        "       4       9        12       27     35      15  behind 3",
        "the last call returned at 12; the device ended at 35: 23 remained",
        "the device was busy for 32 of 35 (91.4 %)",
        "idle from 0 to 3: launch 1 had not arrived",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
}

/// Host 8, kernel 2: busy for 8 of 34, and idle before each launch.
#[test]
fn the_device_waits_for_the_host() {
    let text = lab("--host 8 --gpu 2 --launches 4");
    assert!(
        text.contains("the device was busy for 8 of 34 (23.5 %)"),
        "{text}"
    );
    assert!(
        text.contains("idle from 26 to 32: launch 4 had not arrived"),
        "{text}"
    );
    let faster = lab("--host 8 --gpu 1 --launches 4");
    assert!(
        faster.contains("the device ended at 33: 1 remained"),
        "{faster}"
    );
}

/// One graph launch: one call of 8 for four kernels of 2, which then follow each other: 8, 10, 12, 14 to 16.
#[test]
fn a_graph_is_one_call() {
    let object = object("--host 8 --gpu 2 --launches 4 --graph");
    assert_eq!(column(&object, "started_ns"), [8.0, 10.0, 12.0, 14.0]);
    assert_eq!(object["device"]["ended_ns"], 16_000);
    assert_eq!(
        object["launches"][1]["held_up_by"][0]["cause"],
        "graph edge"
    );
}

/// Two streams, two launches of 10 for each by calls of 1, those of the first stream before those of the second. With a channel for each, launch 3
/// finds its stream free, at 3, and launch 4 follows at 13. In one channel launch 3 stands behind launch 2, which leaves it when launch 1 has ended,
/// at 11; launch 4 follows launch 3 at 21.
#[test]
fn streams_that_share_a_channel_wait_for_each_other() {
    let launches = "--host 1 --gpu 10 --launches 4 --streams 2 --depth-first";
    let own = object(launches);
    assert_eq!(column(&own, "started_ns"), [1.0, 11.0, 3.0, 13.0]);
    let shared = object(&format!("{launches} --channels 1"));
    assert_eq!(column(&shared, "started_ns"), [1.0, 11.0, 11.0, 21.0]);
    let held = &shared["launches"][2]["held_up_by"];
    assert_eq!(
        (&held[0]["cause"], &held[0]["ns"], &held[0]["launch"]),
        (&"channel".into(), &8_000.into(), &2.into())
    );
    let text = lab(&format!("{launches} --channels 1"));
    assert!(text.contains("8  channel: 2\n"), "{text}");
    assert!(text.contains("a false dependency"), "{text}");
}

/// Launched in turn, 1, 2, 1, 2, they do not: launches 1 and 2 at 1 and 2, launches 3 and 4 when their own streams are free, at 11 and 12.
#[test]
fn launches_in_turn_do_not() {
    let shared = object("--host 1 --gpu 10 --launches 4 --streams 2 --channels 1");
    assert_eq!(column(&shared, "started_ns"), [1.0, 2.0, 11.0, 12.0]);
}

/// A queue of 1: launch 1 runs from 1; launch 2 waits in the queue from 2; launch 3 is ready at 3 and finds no room until launch 2 leaves, at 11.
#[test]
fn a_full_queue_blocks_the_call() {
    let object = object("--host 1 --gpu 10 --launches 3 --depth 1");
    assert_eq!(column(&object, "enqueued_ns"), [1.0, 2.0, 11.0]);
    assert_eq!(object["host"]["blocked_ns"], 8_000);
    assert_eq!(
        object["launches"][2]["held_up_by"][0]["cause"],
        "queue full"
    );
    let text = lab("--host 1 --gpu 10 --launches 3 --depth 1");
    assert!(
        text.contains('×'),
        "the picture shows the blocked call\n{text}"
    );
}

#[test]
fn it_fits_the_terminal() {
    for columns in [60, 80, 120] {
        for arguments in ["--launches 4", "--launches 200 --streams 5 --channels 2"] {
            let ran = run(lineage()
                .arg("lab")
                .args(arguments.split(' '))
                .env("COLUMNS", columns.to_string()));
            for line in ran.out.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn decimals_are_taken_and_nonsense_is_refused() {
    assert_eq!(
        column(&object("--host 0.5 --gpu 1.25 --launches 2"), "ended_ns"),
        [1.75, 3.0]
    );
    for wrong in ["-1", "1.2345", "x", ".5", "1e3", "9999999999999999999"] {
        let ran = run(lineage().args(["lab", &format!("--host={wrong}")]));
        assert_eq!(ran.code, Some(2), "{wrong}");
    }
}

/// The page about the command shows what it prints.
#[test]
fn the_page_shows_what_it_prints() {
    let page = include_str!("../../docs/command.md");
    let (_, shown) = page.split_once("$ lineage lab ").expect("an example");
    let (arguments, rest) = shown.split_once('\n').expect("its output");
    let (output, _) = rest.split_once("```").expect("its end");
    assert_eq!(lab(arguments), output);
}
