//! A host thread that drives the model by itself: for examples, tests and teaching.

use crate::facts::{Facts, HostWait};
use crate::model::{Effect, GraphNode, Model, OperationKey, StreamKey, Submission};

/// One host thread with a time of its own. Each call begins when the one before returned.
#[derive(Debug)]
pub struct Host {
    now_ns: u64,
    called_ns: u64,
    facts: Vec<Facts>,
}

impl Host {
    /// A host thread whose first call begins then.
    pub fn new(now_ns: u64) -> Self {
        Self {
            now_ns,
            called_ns: now_ns,
            facts: Vec::new(),
        }
    }

    /// The host's time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Spends time in the call that is about to submit.
    pub fn spend(&mut self, duration_ns: u64) {
        self.now_ns += duration_ns;
    }

    /// Is busy with something else, or sleeps: the next call begins at this time, if it is not past.
    pub fn rest_until(&mut self, at_ns: u64) {
        self.now_ns = self.now_ns.max(at_ns);
        self.called_ns = self.now_ns;
    }

    /// Submits work now, or when there is room, and returns from the call.
    pub fn submit(
        &mut self,
        model: &mut Model<()>,
        stream: StreamKey,
        submission: Submission,
    ) -> OperationKey {
        let host = self.make_room(model, stream, submission.parameter_bytes);
        let key = model.submit(self.now_ns, stream, submission.host(host));
        self.called_ns = self.now_ns;
        key
    }

    /// Launches a graph now, or when there is room, and returns from the call.
    pub fn submit_graph(
        &mut self,
        model: &mut Model<()>,
        stream: StreamKey,
        previous: Option<OperationKey>,
        nodes: Vec<GraphNode>,
    ) -> OperationKey {
        let host = self.make_room(model, stream, 0);
        let launch = Submission::new(0, crate::Work::Marker).host(host);
        let key = model.submit_graph(self.now_ns, stream, launch, previous, nodes);
        self.called_ns = self.now_ns;
        key
    }

    /// Waits until an operation has ended, and returns from the call.
    pub fn wait(&mut self, model: &mut Model<()>, operation: OperationKey) {
        model.ring(self.now_ns);
        self.follow(model, |model| model.is_done(operation));
        self.called_ns = self.now_ns;
    }

    /// Lets everything end. The facts of all operations that were numbered, in the order in which they ended.
    pub fn finish(mut self, model: &mut Model<()>) -> Vec<Facts> {
        model.ring(self.now_ns);
        self.follow(model, |model| model.open_operations() == 0);
        self.facts
    }

    /// Waits for room, and says what the call has waited for.
    fn make_room(&mut self, model: &mut Model<()>, stream: StreamKey, bytes: u32) -> HostWait {
        self.advance(model, self.now_ns);
        let since_ns = self.now_ns;
        if !model.has_room(stream, bytes) {
            model.ring(self.now_ns);
            self.follow(model, |model| model.has_room(stream, bytes));
        }
        HostWait {
            queue_full_ns: self.now_ns - since_ns,
            ..HostWait::since(self.called_ns)
        }
    }

    /// Lets time pass until something is so, or until nothing happens any more.
    fn follow(&mut self, model: &mut Model<()>, is_so: impl Fn(&Model<()>) -> bool) {
        self.advance(model, self.now_ns);
        while !is_so(model) && !model.is_stuck() {
            let Some(next_ns) = model.next_ns() else {
                return;
            };
            self.now_ns = self.now_ns.max(next_ns);
            self.advance(model, self.now_ns);
        }
    }

    fn advance(&mut self, model: &mut Model<()>, until_ns: u64) {
        while let Some(effect) = model.poll(until_ns) {
            match effect {
                Effect::Begin { key, facts, .. } => {
                    let duration_ns = model.duration_of(key);
                    model.begun(key, (), facts.start_ns, duration_ns);
                }
                Effect::End { key, facts, .. } => {
                    model.ended(key);
                    if facts.number != 0 {
                        self.facts.push(facts);
                    }
                }
            }
        }
    }
}
