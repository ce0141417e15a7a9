use lineage_sim_model::{Effect, GraphNode, Model, Settings, StreamOptions, Submission, Work};

/// A nested node runs a kernel of 10 inside it, twice, then a kernel of 5 behind it: 0 to 10, 10 to 20, 20 to 25. The stream's next
/// kernel is behind all of that: 25 to 26.
#[test]
fn round_after_round_until_there_are_no_more() {
    let mut model: Model<u64> = Model::new(Settings::default(), 0);
    let stream = model.add_stream(StreamOptions::default());
    let nodes = vec![
        GraphNode::with(100, 100, Work::Nested),
        GraphNode::with(5, 5, Work::kernel(5)).after(vec![(0, Default::default())]),
    ];
    let launch = Submission::with(200, 0, Work::Marker);
    model.submit_graph(0, stream, launch, None, nodes);
    model.submit(0, stream, Submission::with(1, 1, Work::kernel(1)));
    let mut rounds = 0;
    let mut seen = Vec::new();
    while let Some(effect) = model.poll(1_000) {
        match effect {
            Effect::Begin {
                key,
                payload: 100,
                facts,
            } => {
                rounds += 1;
                let body = (rounds <= 2).then(|| GraphNode::with(10, 10, Work::kernel(10)));
                model.begun_with_nodes(key, 100, facts.start_ns, body.into_iter().collect());
            }
            Effect::Begin {
                key,
                payload,
                facts,
            } => {
                model.begun(key, payload, facts.start_ns, payload);
            }
            Effect::End {
                key,
                payload,
                facts,
            } => {
                seen.push((payload, facts.start_ns, facts.end_ns));
                model.ended(key);
            }
            _ => unreachable!("there are beginnings and ends only"),
        }
    }
    assert_eq!(rounds, 3, "the last one was told that there is no more");
    let kernels: Vec<_> = seen.iter().filter(|one| one.0 < 100).copied().collect();
    assert_eq!(
        kernels,
        [(10, 0, 10), (10, 10, 20), (5, 20, 25), (1, 25, 26)]
    );
    assert!(
        seen.iter().any(|one| one.0 == 200),
        "and the launch has ended"
    );
    assert_eq!(model.open_operations(), 0);
}

/// A node waits for a kernel of another stream, 0 to 50, as for what an event captured.
#[test]
fn and_wait_for_what_is_outside() {
    let mut model: Model<u64> = Model::new(Settings::default(), 0);
    let [stream, other] = [0; 2].map(|_| model.add_stream(StreamOptions::default()));
    let outside = model.submit(0, other, Submission::with(50, 1, Work::kernel(50)));
    let nodes = vec![
        GraphNode::with(5, 2, Work::kernel(5)),
        GraphNode::with(6, 3, Work::kernel(6)).waits_for(Some(outside)),
    ];
    model.submit_graph(0, stream, Submission::with(0, 0, Work::Marker), None, nodes);
    let mut starts = Vec::new();
    while let Some(effect) = model.poll(1_000) {
        match effect {
            Effect::Begin {
                key,
                payload,
                facts,
            } => {
                starts.push((payload, facts.start_ns));
                model.begun(key, payload, facts.start_ns, payload);
            }
            Effect::End { key, .. } => model.ended(key),
            _ => unreachable!("there are beginnings and ends only"),
        }
    }
    assert_eq!(starts, [(50, 0), (5, 0), (6, 50)]);
}
