//! The scenarios of `device_check`: what CUPTI records of small pieces of work, told so that two machines can be compared. On the simulated
//! GPU every one is told as NVIDIA's documents have it, the same each time, and whatever is otherwise is said in words.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

mod device_check;
use device_check::{Run, diff};

fn run(arguments: &[&str]) -> Run {
    let run = Run::new(&[&["--gpu", "sim"], arguments].concat());
    assert_eq!(run.status, Some(0), "{}", run.text);
    assert_eq!(run.summary()["complete"], true);
    run
}

/// The names of a scenario's records, without those of calls and of the wait at its end.
fn records(run: &Run, scenario: &str) -> BTreeSet<String> {
    let answer = run.answer(scenario);
    let records = answer["records"].as_object().expect("an object");
    let of_interest =
        |name: &&String| !name.starts_with("call of ") && *name != "wait 4 of cuCtxSynchronize 1";
    records.keys().filter(of_interest).cloned().collect()
}

/// What the changed copy of a run differs in from the run.
fn differences(run: &Run, change: impl FnOnce(&mut Value)) -> (Option<i32>, Vec<String>) {
    let mut summary = run.summary();
    change(&mut summary["questions"]);
    let folder = run.folder.join("changed");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("summary.json"), summary.to_string()).expect("a file");
    let changed = Run {
        status: None,
        text: String::new(),
        folder,
    };
    let (status, text) = diff(run, &changed);
    // Behind them come the switches of the simulator.
    let said = text
        .lines()
        .take_while(|line| !line.starts_with("the simulator does as"))
        .filter_map(|line| line.strip_prefix("  "));
    (status, said.map(str::to_owned).collect())
}

#[test]
fn every_scenario_is_told_as_documented_and_twice_the_same() {
    let first = run(&["--only", "scenarios"]);
    let summary = first.summary();
    assert_eq!(
        summary["counts"],
        json!({ "answered": 23, "skipped": 0, "failed": 0, "timed_out": 0 })
    );

    // Each call is recorded once, succeeds, and is made under one external id.
    for (name, question) in summary["questions"].as_object().expect("an object") {
        let answer = &question["answer"];
        for call in answer["callsInOrder"].as_array().expect("a list") {
            let call = format!("call of {}", call.as_str().expect("a name"));
            let expected = json!({ "result": 0, "externalIds": 1 });
            assert_eq!(answer["records"][&call], expected, "{name}: {call}");
        }
        assert_eq!(answer["correlationIdsRise"], true, "{name}");
        assert_eq!(answer["correlationIdsComeOnce"], true, "{name}");
    }

    // Who ended before whom began, as the streams, events, values and edges demand; "beside" where nothing orders two
    // and one of them is long.
    let relation = |scenario: &str, one: &str, other: &str| {
        let order = first.answer(scenario)["order"].clone();
        let told = order[one][other].as_str();
        told.unwrap_or("not told").to_owned()
    };
    let spin = "kernel spin 1 of cuLaunchKernel 1";
    let tick = |blocks: u32| format!("kernel tick {blocks} of cuLaunchKernel {blocks}");
    for (scenario, one, other, expected) in [
        ("back_to_back", &*tick(1), &*tick(2), "before"),
        ("back_to_back", &tick(2), &tick(3), "before"),
        (
            "two_streams",
            spin,
            "kernel spin 2 of cuLaunchKernel 2",
            "beside",
        ),
        ("two_streams_with_an_event", spin, &tick(2), "before"),
        // The stream that does not block runs beside; the default stream waits, and the blocking one for it.
        ("legacy_default_stream", spin, &tick(2), "beside"),
        ("legacy_default_stream", spin, &tick(3), "before"),
        ("legacy_default_stream", &tick(3), &tick(4), "before"),
        ("per_thread_default_stream", spin, &tick(2), "beside"),
        ("events", &tick(1), &tick(2), "before"),
        ("host_function", &tick(1), &tick(2), "before"),
        // Launched first, and held by the value.
        (
            "wait_value",
            "kernel tick 2 of cuLaunchKernel 1",
            "kernel spin 1 of cuLaunchKernel 2",
            "behind",
        ),
        (
            "programmatic_launch",
            spin,
            "kernel tick 2 of cuLaunchKernelEx 1",
            "before",
        ),
        (
            "pooled_memory",
            "set 1024 of cuMemsetD8Async 1",
            "set 2048 of cuMemsetD8Async 2",
            "before",
        ),
        (
            "captured_graph",
            "kernel tick 1 of cuGraphLaunch 2",
            "kernel tick 1 of cuGraphLaunch 3",
            "before",
        ),
        (
            "forked_graph",
            "kernel tick 1 of cuGraphLaunch 1",
            "kernel spin 2 of cuGraphLaunch 1",
            "before",
        ),
        (
            "forked_graph",
            "kernel spin 2 of cuGraphLaunch 1",
            "kernel spin 3 of cuGraphLaunch 1",
            "beside",
        ),
        (
            "forked_graph",
            "kernel spin 3 of cuGraphLaunch 1",
            "kernel tick 4 of cuGraphLaunch 1",
            "before",
        ),
        // Behind the kernel in front, and one behind the other.
        (
            "child_graph",
            "kernel tick 1 of cuGraphLaunch 1",
            "kernel tick 2 of cuGraphLaunch 1",
            "before",
        ),
        (
            "child_graph",
            "kernel tick 2 of cuGraphLaunch 1",
            "kernel tick 3 of cuGraphLaunch 1",
            "before",
        ),
        // An exec's launches are one behind the other, whatever the stream.
        (
            "several_execs",
            "kernel tick 2 of cuGraphLaunch 1",
            "kernel tick 1 of cuGraphLaunch 3",
            "before",
        ),
    ] {
        let told = relation(&format!("scenario_{scenario}"), one, other);
        assert_eq!(told, expected, "{scenario}: {one}, {other}");
    }

    // Ids are ordinals in the order of calls: the blocking stream comes again, the default one is a third.
    let records_of_streams = first.answer("scenario_legacy_default_stream")["records"].clone();
    let streams: Vec<&Value> = [spin, &tick(2), &tick(3), &tick(4)]
        .map(|name| &records_of_streams[name]["streamId"])
        .to_vec();
    assert_eq!(streams, ["stream 1", "stream 2", "stream 3", "stream 1"]);
    let end = &records_of_streams["wait 4 of cuCtxSynchronize 1"];
    assert_eq!(
        (&end["streamId"], &end["start"]),
        (&json!("invalid"), &json!("not zero"))
    );
    // Latency timestamps are off by default, and no kernel is of a graph here.
    let spinning = &records_of_streams[spin];
    assert_eq!(
        (&spinning["queued"], &spinning["submitted"]),
        (&json!("zero"), &json!("zero"))
    );
    assert_eq!(
        (&spinning["graphId"], &spinning["graphNodeId"]),
        (&json!(0), &json!(0))
    );

    // A launch of a graph has a record for each node that is enabled, under its own call.
    let kernels = |list: &[(u32, u32)]| -> BTreeSet<String> {
        let name = |(blocks, launch): &(u32, u32)| {
            format!("kernel tick {blocks} of cuGraphLaunch {launch}")
        };
        list.iter().map(name).collect()
    };
    let mut captured = kernels(&[(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]);
    captured.extend((1..=3).map(|launch| format!("set 1024 of cuGraphLaunch {launch}")));
    assert_eq!(records(&first, "scenario_captured_graph"), captured);
    assert_eq!(
        records(&first, "scenario_exec_update"),
        kernels(&[(1, 1), (2, 1), (1, 2), (3, 2)])
    );
    assert_eq!(
        records(&first, "scenario_disabled_node"),
        kernels(&[(1, 1), (3, 1), (1, 2), (2, 2), (3, 2)])
    );
    assert_eq!(
        records(&first, "scenario_set_params"),
        kernels(&[(1, 1), (2, 1), (1, 2), (3, 2)])
    );
    let twice = kernels(&[(1, 1), (2, 1), (1, 2), (2, 2)]);
    assert_eq!(records(&first, "scenario_cloned_graph"), twice);
    assert_eq!(
        records(&first, "scenario_child_graph"),
        kernels(&[(1, 1), (2, 1), (3, 1)])
    );
    assert_eq!(
        records(&first, "scenario_several_execs"),
        kernels(&[(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)])
    );
    let mut made_again = kernels(&[(1, 1), (1, 2)]);
    made_again.insert("wait 3 of cuStreamSynchronize 1".to_owned());
    assert_eq!(records(&first, "scenario_exec_made_again"), made_again);
    // Each exec has nodes of its own, also of one graph; launched again, it has the same.
    for (scenario, launches, is_same) in [
        ("scenario_cloned_graph", [1, 2], false),
        ("scenario_several_execs", [1, 2], false),
        ("scenario_several_execs", [1, 3], true),
    ] {
        let answer = first.answer(scenario);
        let [one, other] = launches.map(|launch| {
            let record = &answer["records"][format!("kernel tick 1 of cuGraphLaunch {launch}")];
            (record["graphNodeId"].clone(), record["graphId"].clone())
        });
        assert_eq!(one == other, is_same, "{scenario}: {launches:?}");
        assert_eq!(one.1 == other.1, is_same, "{scenario}: {launches:?}");
    }

    // The node of the exec stays what it is through launches and updates.
    for (scenario, one, other) in [
        ("scenario_captured_graph", (2, 1), (2, 3)),
        ("scenario_exec_update", (2, 1), (3, 2)),
        ("scenario_set_params", (2, 1), (3, 2)),
    ] {
        let answer = first.answer(scenario);
        let [one, other] = [one, other].map(|(blocks, launch)| {
            let name = format!("kernel tick {blocks} of cuGraphLaunch {launch}");
            let record = &answer["records"][&name];
            assert_eq!(record["upperHalfOfNodeIsGraph"], true, "{name}");
            (record["graphNodeId"].clone(), record["graphId"].clone())
        });
        assert_eq!(one, other, "{scenario}");
    }

    // Kinds of memory: 1 pageable, 2 pinned, 3 device; kinds of copies: 1 to the device, 2 to the host, 8 within.
    for (scenario, copy, kinds) in [
        (
            "scenario_pageable_copies",
            "copy 1024 of cuMemcpyHtoDAsync_v2 1",
            [1, 1, 3],
        ),
        (
            "scenario_pageable_copies",
            "copy 4096 of cuMemcpyDtoH_v2 1",
            [2, 3, 1],
        ),
        (
            "scenario_pinned_copies",
            "copy 1024 of cuMemcpyHtoDAsync_v2 1",
            [1, 2, 3],
        ),
        (
            "scenario_pinned_copies",
            "copy 2048 of cuMemcpyDtoDAsync_v2 1",
            [8, 3, 3],
        ),
        (
            "scenario_pinned_copies",
            "copy 3072 of cuMemcpyDtoHAsync_v2 1",
            [2, 3, 2],
        ),
    ] {
        let record = &first.answer(scenario)["records"][copy];
        let told = [&record["copyKind"], &record["srcKind"], &record["dstKind"]];
        assert_eq!(told, kinds.map(|kind| json!(kind)).each_ref(), "{copy}");
    }

    // Waits name the recording that they waited for: the same event twice, and two recordings.
    let events = first.answer("scenario_events")["records"].clone();
    let [early, late, recorded] = [
        "wait 1 of cuEventSynchronize 1",
        "wait 1 of cuEventSynchronize 2",
        "event of cuEventRecord 3",
    ]
    .map(|name| events[name]["cudaEventSyncId"].clone());
    assert!(early.is_string() && early != late, "{early}, {late}");
    assert_eq!(late, recorded);

    let second = run(&["--only", "scenarios"]);
    let (status, text) = diff(&first, &second);
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("23 scenarios were told the same, 0 differently"),
        "{text}"
    );
}

#[test]
fn a_record_that_is_taken_away_is_seen() {
    let run = run(&["--only", "scenario_two_streams_with_an_event"]);
    let name = "kernel tick 2 of cuLaunchKernel 2";
    let (status, said) = differences(&run, |questions| {
        let answer = &mut questions["scenario_two_streams_with_an_event"]["answer"];
        let records = answer["records"].as_object_mut().expect("an object");
        assert!(records.remove(name).is_some());
    });
    assert_eq!(status, Some(1));
    assert_eq!(said, [format!("only the first has a record: {name}")]);

    let (status, said) = differences(&run, |_| {});
    assert_eq!((status, said), (Some(0), Vec::new()));
}

#[test]
fn a_field_and_an_order_that_are_otherwise_are_said() {
    let run = run(&["--only", "scenario_back_to_back"]);
    let (status, said) = differences(&run, |questions| {
        let answer = &mut questions["scenario_back_to_back"]["answer"];
        answer["records"]["kernel tick 2 of cuLaunchKernel 2"]["queued"] = json!("not zero");
        let order = &mut answer["order"]["kernel tick 1 of cuLaunchKernel 1"];
        order["kernel tick 2 of cuLaunchKernel 2"] = json!("beside");
        answer["correlationIdsRise"] = json!(false);
    });
    assert_eq!(status, Some(1));
    assert_eq!(
        said,
        [
            "kernel tick 2 of cuLaunchKernel 2: queued is zero in the first, not zero in the second",
            "kernel tick 1 of cuLaunchKernel 1 ran before kernel tick 2 of cuLaunchKernel 2 in the first, \
             beside it in the second",
            "correlation ids rise from call to call in the first, not in the second",
        ]
    );
}

#[test]
fn a_scenario_that_failed_is_told_apart_from_one_that_was_answered() {
    let run = run(&["--only", "scenario_kernel"]);
    let (status, said) = differences(&run, |questions| {
        questions["scenario_kernel"] =
            json!({ "status": "failed", "error": "cuLaunchKernel failed with code 719" });
    });
    assert_eq!(status, Some(1));
    assert_eq!(
        said,
        ["the first was answered, the second was failed (cuLaunchKernel failed with code 719)"]
    );
}

#[test]
fn two_versions_of_cupti_differ_in_what_came_between_them() {
    let only = ["--only", "scenario_host_function"];
    let newer = run(&[&only[..], &["--sim-cupti", "13.5"]].concat());
    let older = run(&only);
    let (status, text) = diff(&newer, &older);
    assert_eq!(status, Some(1), "{text}");
    // Records of host functions are since CUDA 13.1.
    assert!(
        text.contains("only the first has a record: host function of cuLaunchHostFunc 1"),
        "{text}"
    );
}
