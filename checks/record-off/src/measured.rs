// The loop of both programs. `calls!` keeps what is in it in with_calls and drops it in without_calls; `within!` runs its last
// part inside the scope that its first part makes, or just runs it; `called!` does so in a closure that is made and called.

use std::hint::black_box;

/// Arithmetic that the compiler can neither foresee nor drop.
fn mix(value: u64, round: u64) -> u64 {
    black_box(value ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[inline(never)]
fn measured(rounds: u64) -> u64 {
    let mut value = rounds;
    calls! {
        let request = Epoch::declare("generate");
    }
    for round in 0..rounds {
        calls! {
            let step = request.step();
            let batch = Epoch::merge([&step, &request]);
            let carrier = Carrier::new(&batch, CarrierKind::Envelope);
            let _scope = batch.enter();
            let _attribution = lineage_core::current();
            let entered = lineage_core::raw::enter(&request);
            lineage_core::raw::exit(entered);
            let _call = lineage_core::hook::call_entered();
        }
        value = mix(value, round);
        value = within!(batch.launch, mix(value, 1));
        value = within!(lineage_core::launch, mix(value, 2));
        value = within!(request.run, mix(value, 3));
        calls! {
            let resumed = Resumable::of_current(CarrierKind::Callback);
            let _was = resumed.was_resumed();
            let captured = Captured::current();
        }
        value = within!(resumed.run, mix(value, 6));
        value = within!(captured.run, mix(value, 7));
        value = called!(carried_fn, mix(value, 8));
        value = called!(carried_fn_mut, mix(value, 9));
        calls! {
            let _boundary = batch.enter_for_launch();
        }
        value = mix(value, 4);
        calls! {
            let arrived = carrier.open();
            let part = arrived.fork("part");
            part.mark(Mark::BatchFormed);
            part.cancel();
            let retried = arrived.retry();
            let _identity = (retried.id(), Epoch::current().is_inert());
        }
        value = within!(lineage_core::detached as "warm-up", mix(value, 5));
    }
    value
}

fn main() {
    println!("{}", measured(black_box(10_000)));
}
