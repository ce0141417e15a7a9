//! Each mechanism of the model with numbers that were worked out by hand, in the comments beside them.

mod a_channel_orders_the_streams_that_share_it;
mod a_collective_waits_for_its_last_member;
mod a_doorbell_covers_several_operations;
mod a_full_channel_blocks_the_call;
mod a_kernel_starts_when_its_predecessor_ends;
mod a_neighbour_takes_the_device_in_slices;
mod a_semaphore_holds_its_channel;
mod a_wait_is_split_into_causes_that_sum;
mod copies_of_one_direction_share_its_engines;
mod device_time_is_not_quite_true;
mod events_and_default_streams_order_streams;
mod kernels_share_multiprocessors_only_if_they_fit;
mod nodes_of_a_graph_wait_for_edges_only;
mod nodes_run_others_inside;
mod programmatic_launches_may_overlap;
mod the_same_seed_gives_the_same_facts;
mod what_always_holds;

use lineage_sim_model::{
    Facts, Host, Model, OperationKey, Settings, StreamKey, StreamOptions, Submission, Work,
};

/// A model from time 0 on, with streams of their own and a host.
struct Bench {
    model: Model,
    host: Host,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        Self {
            model: Model::new(settings, 0),
            host: Host::new(0),
        }
    }

    fn stream(&mut self) -> StreamKey {
        self.model.add_stream(StreamOptions::default())
    }

    fn streams<const N: usize>(&mut self) -> [StreamKey; N] {
        std::array::from_fn(|_| self.stream())
    }

    /// A call of so many ns that submits work.
    fn call(&mut self, host_ns: u64, stream: StreamKey, number: u64, work: Work) -> OperationKey {
        self.submit(host_ns, stream, Submission::new(number, work))
    }

    fn submit(&mut self, host_ns: u64, stream: StreamKey, submission: Submission) -> OperationKey {
        self.host.spend(host_ns);
        self.host.submit(&mut self.model, stream, submission)
    }

    /// An event record: the key is what the event captures.
    fn record(&mut self, stream: StreamKey) -> OperationKey {
        self.call(0, stream, 0, Work::Marker)
    }

    /// A wait for what an event captured.
    fn wait_event(&mut self, stream: StreamKey, captured: OperationKey) {
        let wait = Submission::new(0, Work::Marker).waits_for(Some(captured));
        self.submit(0, stream, wait);
    }

    /// Everything that happened, by number.
    fn finish(mut self) -> Vec<Facts> {
        let mut facts = self.host.finish(&mut self.model);
        assert_eq!(self.model.open_operations(), 0, "everything has ended");
        facts.sort_by_key(|facts| facts.number);
        for facts in &facts {
            assert_eq!(
                facts.waits.total_ns(),
                facts.start_ns - facts.called_ns,
                "the causes sum exactly: {facts:?}"
            );
        }
        facts
    }
}

fn starts(facts: &[Facts]) -> Vec<u64> {
    facts.iter().map(|facts| facts.start_ns).collect()
}

fn ends(facts: &[Facts]) -> Vec<u64> {
    facts.iter().map(|facts| facts.end_ns).collect()
}
