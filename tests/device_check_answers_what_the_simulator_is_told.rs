//! `device_check`, the program that asks a real CUPTI what NVIDIA does not document, asked of the simulated one: what
//! it answers is what the simulator was told to do. An answer that does not change with its switch would be worth nothing.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};

mod device_check;
use device_check::Run;

/// All questions but those that run long, and no scenarios, under one setting of the simulator's switches.
fn ask(switches: &[&str]) -> Run {
    let run = Run::new(
        &[
            &[
                "--gpu",
                "sim",
                "--skip",
                "inference_server,launch_loop,scenarios",
            ],
            switches,
        ]
        .concat(),
    );
    assert_eq!(run.status, Some(0), "{}", run.text);
    let summary = run.summary();
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["counts"]["failed"], 0, "{}", run.text);
    assert_eq!(summary["counts"]["timed_out"], 0, "{}", run.text);
    run
}

#[test]
fn every_question_is_answered_as_the_simulator_behaves_by_default() {
    let run = ask(&[]);
    // Without runtime calls there is none to compare with.
    assert_eq!(run.status_of("nested_ids"), "skipped");
    let one_each =
        json!({ "api_records": 1, "external_records": 1, "external_records_of_its_ids": 1 });
    for (question, expected) in [
        (
            "external_records",
            json!({ "driver_call": one_each, "runtime_call": null }),
        ),
        (
            "push_inside_enter",
            json!({
                "counts": false, "counts_if_popped_inside_exit": false, "push_inside_exit_counts": false,
                "greatest_code": 0,
            }),
        ),
        (
            "per_id_enabling",
            json!({
                "chosen_call":
                    { "api_record": true, "external_record": true, "operation_has_correlation_id": true },
                "other_call":
                    { "api_record": false, "external_record": false, "operation_has_correlation_id": true },
            }),
        ),
        (
            "correlation_ids",
            json!({
                "smallest_step_between_launches": 1, "largest_step_between_launches": 1,
                // The synchronisation takes an id, too.
                "step_across_a_call_that_is_not_recorded": 2,
            }),
        ),
        (
            "thread_ids",
            json!({
                "default_type": 0, "default_is_pthread_self_cut_to_32_bits": true,
                "default_is_gettid": false, "system_type_is_gettid": true,
            }),
        ),
        (
            "record_order",
            json!({
                "external_is_just_before_its_api_record": true, "call_and_operation_in_one_buffer": true,
                // An operation's place is taken during the call, the call's own record is written at its end.
                "call_before_operation": "never", "driver_calls_in_order_of_start": true,
                "operations_in_order_of_start": true,
            }),
        ),
        (
            "buffers_by_thread",
            json!({
                "per_thread": false, "operations_are_beside_their_calls": true,
                "attribute": 0, "code_of_the_attribute": 0,
            }),
        ),
        (
            "flush_while_running",
            json!({
                "waits_for_the_kernel": false, "calls_given_back_while_running": 0,
                "operations_given_back_while_running": 0, "operations_without_end_while_running": 0,
                "operations_in_all": 2,
            }),
        ),
        (
            "dropped_records",
            json!({
                "counted_for_all": true, "counted_for_context": false, "counted_for_stream": false,
                "reading_resets": true, "count_and_records_add_up": true,
            }),
        ),
        ("second_subscriber", json!({ "code": 39 })),
        (
            "resubscribe",
            json!({
                "records_while_unsubscribed": true, "records_before_enabling_again": true,
                "callbacks_before_enabling_again": false, "callbacks_after_enabling_again": true,
                "ids_restart": false, "external_ids_stay_on_the_stack": true, "external_records_after": true,
                "operations_start_after_their_calls": true,
            }),
        ),
        (
            "latency_timestamps_off",
            json!({ "kernels": 100, "queued": "none", "submitted": "none", "in_order": "all" }),
        ),
        (
            "latency_timestamps_on",
            json!({ "kernels": 100, "queued": "all", "submitted": "all", "in_order": "all" }),
        ),
        (
            "clock",
            json!({
                "clock": "monotonic", "zero_times": false, "operations_start_before_their_calls": false,
                "copies_end_after_their_return": false, "copies_start_before_their_call": false,
            }),
        ),
        (
            "push_and_pop_cost",
            json!({ "popped_ids_are_the_pushed_ones": true }),
        ),
    ] {
        assert_eq!(run.answer(question), expected, "{question}: {}", run.text);
    }
    // The host's two clocks are read one after the other, so margins of this one may be off by that.
    let clock = run.answer("clock_of_cupti");
    assert_eq!(
        (&clock["clock"], &clock["zero_times"]),
        (&json!("realtime"), &json!(false))
    );
    let set = &run.answer("empty_work")["set"];
    assert_eq!(
        *set,
        json!({ "error": null, "api_record": true, "api_result": 0, "operations": 0 })
    );

    // Numbers that a clock or a counter gave.
    let cost = run.summary()["questions"]["push_and_pop_cost"]["measured"].clone();
    assert!(
        cost["pair_ns"].as_f64().is_some_and(|ns| ns > 0.0),
        "{cost}"
    );
    assert_eq!(
        cost["push_and_two_clock_reads_ns"]["count"], 20_000,
        "{cost}"
    );
    let margin = &run.summary()["questions"]["clock"]["measured"]["start_minus_api_enter_ns"];
    assert_eq!(margin["count"], 600);
    assert!(margin["min"].as_i64().is_some_and(|ns| ns >= 0), "{margin}");
}

/// Ids are ordinals; what is equal has one number, as an exec and the graph that its nodes are in.
#[test]
fn callbacks_about_graphs_are_told_in_order_with_what_they_name() {
    for (version, of_updates) in [("12.9", false), ("13.5", true)] {
        let run = ask(&["--only", "graph_callbacks", "--sim-cupti", version]);
        let answer = run.answer("graph_callbacks");
        let last = if of_updates { 23 } else { 20 };
        let ids = answer["callback_ids"].as_array().expect("a list");
        assert_eq!(ids.last(), Some(&json!(last)), "{version}");
        let since_13 = |told: Value| if of_updates { told } else { json!([]) };
        let steps = &answer["steps"];
        for (step, expected) in [
            (
                "capture of two kernels",
                json!([
                    "9 graph 1",
                    "12 graph 1",
                    "13 graph 1 node 1 in 1",
                    "12 graph 1",
                    "13 graph 1 node 2 in 1",
                    "15 graph 1",
                ]),
            ),
            (
                "instantiation",
                json!([
                    "17 graph 1",
                    "12 graph 2",
                    "13 graph 2 node 3 in 2",
                    "20 graph 2 node 3 in 2 from graph 1 node 1 in 1",
                    "12 graph 2",
                    "13 graph 2 node 4 in 2",
                    "20 graph 2 node 4 in 2 from graph 1 node 2 in 1",
                    "18 graph 1 exec 2",
                ]),
            ),
            ("launch", json!([])),
            (
                "update from the built graph",
                since_13(json!([
                    "22 exec 2 node 3 in 2 from node 16 in 9",
                    "22 exec 2 node 4 in 2 from node 17 in 9",
                ])),
            ),
            (
                "parameters of its second node",
                since_13(json!(["23 exec 10 node 19 in 10"])),
            ),
            ("disabling of its second node", json!([])),
            (
                "destruction of the executable graphs",
                json!(["19 exec 2", "19 exec 7", "19 exec 8", "19 exec 10"]),
            ),
        ] {
            assert_eq!(steps[step], expected, "{version}: {step}");
        }
        // The records name the exec, and its nodes.
        assert_eq!(
            answer["records_of_the_launch"],
            json!(["graph 2 node 3 in 2", "graph 2 node 4 in 2"])
        );
    }
}

#[test]
fn a_push_inside_enter_counts_where_the_simulator_counts_it() {
    let run = ask(&[
        "--only",
        "push_inside_enter",
        "--sim-push-inside-enter",
        "true",
    ]);
    assert_eq!(
        run.answer("push_inside_enter"),
        json!({
            "counts": true, "counts_if_popped_inside_exit": true, "push_inside_exit_counts": false,
            "greatest_code": 0,
        })
    );
    // Only that one.
    assert_eq!(
        run.summary()["questions"]
            .as_object()
            .map(serde_json::Map::len),
        Some(1)
    );
}

#[test]
fn nested_calls_have_equal_ids_or_not_as_the_simulator_gives_them() {
    for (ids, equal, step) in [("same", true, 1), ("own", false, 2)] {
        let only = "nested_ids,external_records,correlation_ids,clock,latency_timestamps_on";
        let run = ask(&["--only", only, "--sim-runtime-calls", ids]);
        assert_eq!(
            run.answer("nested_ids"),
            json!({
                "equal": equal, "operation_has_the_runtimes": true, "operation_has_the_drivers": equal,
                "callback_of_the_runtime_agrees": true, "callback_of_the_driver_agrees": true,
                "driver_lies_inside_runtime": true,
            }),
            "{ids}"
        );
        assert_eq!(
            run.answer("external_records"),
            json!({
                "driver_call": null,
                "runtime_call": { "api_records": 2, "external_records": 2, "external_records_of_its_ids": 2 },
            })
        );
        let steps = run.answer("correlation_ids");
        assert_eq!(steps["largest_step_between_launches"], step, "{ids}");
        assert_eq!(
            steps["step_across_a_call_that_is_not_recorded"],
            step + 1,
            "{ids}"
        );
        assert_eq!(
            run.answer("clock")["operations_start_before_their_calls"],
            false
        );
        assert_eq!(run.answer("latency_timestamps_on")["in_order"], "all");
    }
}

#[test]
fn buffers_are_per_thread_where_the_simulated_version_has_them_so() {
    let per_thread = |switches: &[&str]| {
        let run = ask(&[&["--only", "buffers_by_thread"], switches].concat());
        run.answer("buffers_by_thread")["per_thread"].clone()
    };
    assert_eq!(per_thread(&["--sim-cupti", "13.5"]), true);
    assert_eq!(
        per_thread(&["--sim-cupti", "13.5", "--sim-per-thread-buffers", "false"]),
        false
    );
    assert_eq!(
        per_thread(&["--sim-cupti", "12.9", "--sim-per-thread-buffers", "true"]),
        true
    );
}

#[test]
fn every_record_is_written_with_its_question() {
    let run = ask(&["--only", "record_order"]);
    let file = run.question("record_order");
    assert_eq!(file["question"], "record_order");
    assert_eq!(file["records_left_out"], 0);
    let records = file["records"].as_array().expect("a list");
    // 50 launches and 50 sets, each with an id, a call and an operation.
    assert_eq!(records.len(), 300);
    let of = |kind: &str| {
        records
            .iter()
            .filter(|record| record["kind"] == kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("external").len(), of("api").len(), of("operation").len()),
        (100, 100, 100)
    );
    let mut pushed: Vec<u64> = of("external")
        .iter()
        .filter_map(|record| record["id"].as_u64())
        .collect();
    pushed.dedup();
    assert_eq!(
        pushed,
        (1..=50)
            .map(|number| number << 24 | 1)
            .collect::<Vec<u64>>()
    );
    // The summary has the answer and not the records.
    let short = &run.summary()["questions"]["record_order"];
    assert_eq!(short["answer"], file["answer"]);
    assert_eq!(short.get("records"), None);
    assert!(short["asks"].as_str().is_some_and(|asks| !asks.is_empty()));
}

#[test]
fn two_runs_differ_in_what_was_switched_and_the_switches_are_named() {
    let questions = "push_inside_enter,buffers_by_thread,second_subscriber";
    let first = ask(&[
        "--only",
        questions,
        "--sim-push-inside-enter",
        "true",
        "--sim-cupti",
        "13.5",
    ]);
    let second = ask(&["--only", questions]);
    let (status, text) = device_check::diff(&first, &second);
    assert_eq!(status, Some(1), "{text}");
    let differing: Vec<&str> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        differing,
        [
            "buffers_by_thread.attribute",
            "buffers_by_thread.per_thread",
            "push_inside_enter.counts",
            "push_inside_enter.counts_if_popped_inside_exit",
        ],
        "{text}"
    );
    for switch in [
        "--sim-push-inside-enter true",
        "--sim-per-thread-buffers true",
        "--sim-cupti 13.5",
    ] {
        assert!(text.contains(switch), "{switch} is not in\n{text}");
    }
    let (status, text) = device_check::diff(&first, &first);
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn the_launch_loop_is_compared_in_its_four_forms() {
    let run = Run::new(&[
        "--gpu",
        "sim",
        "--only",
        "launch_loop",
        "--launches",
        "1200",
        "--rounds",
        "1",
    ]);
    assert_eq!(run.status, Some(0), "{}", run.text);
    let answer = run.answer("launch_loop");
    assert_eq!(
        answer["cupti"],
        json!({
            "callbacks_per_launch": 2.0, "api_records_per_launch": 1.0,
            "external_records_per_launch": 0.0, "operations_per_launch": 1.0,
        })
    );
    for form in ["lineage", "lineage_step"] {
        assert_eq!(
            answer[form],
            json!({
                "all_bound": true, "lost": 0, "wrong": 0, "unattributed": 0,
            }),
            "{form}: {}",
            run.text
        );
    }
    let measured = &run.summary()["questions"]["launch_loop"]["measured"];
    for form in ["off", "cupti", "lineage", "lineage_step"] {
        let round: &Value = &measured["rounds"][form][0];
        assert_eq!(round["launches"], 1200, "{form}");
        // Segments of 500, 500 and 200; the simulator burns 4.5 µs in each call.
        assert_eq!(round["wall_ns_per_launch"]["count"], 3, "{form}");
        for clock in ["wall_ns_per_launch", "thread_cpu_ns_per_launch"] {
            let ns = measured["medians"][clock][form].as_f64();
            assert!(
                ns.is_some_and(|ns| ns >= 4_000.0),
                "{form}, {clock}: {ns:?}"
            );
        }
    }
    for form in ["lineage", "lineage_step"] {
        // 200 warm up. Fewer than a ring holds, so that none is lost however slow the drain is.
        assert_eq!(
            measured["rounds"][form][0]["by_both_sources"], 1400,
            "{form}"
        );
    }
    assert!(measured["medians"]["wall_ns_per_launch"]["lineage_over_cupti_percent"].is_f64());
}
