//! Each function makes one mistake, on the line that ends in `FINDS:` and the lint's words. checks/clippy/check compares what
//! clippy says with these lines, both ways.

use launch_lineage::Epoch;

/// Not for use: mistakes.
pub async fn a_scope_is_held_across_an_await(epoch: &Epoch) {
    let _scope = epoch.enter(); // FINDS: await_holding_invalid_type
    std::future::ready(()).await;
}

/// Not for use: mistakes.
pub async fn a_boundary_is_held_across_an_await(epoch: &Epoch) {
    let _boundary = epoch.enter_for_launch(); // FINDS: await_holding_invalid_type
    std::future::ready(()).await;
}

/// Not for use: mistakes.
pub async fn a_boundary_of_what_is_current_is_held_across_an_await() {
    let _boundary = lineage_core::enter_for_launch(); // FINDS: await_holding_invalid_type
    std::future::ready(()).await;
}

/// No mistake.
pub async fn a_scope_ends_before_the_await(epoch: &Epoch) {
    epoch.run(|| ());
    {
        let _scope = epoch.enter();
    }
    std::future::ready(()).await;
}

/// Not for use: mistakes.
pub fn tasks_start_without_an_epoch(
    runtime: &tokio::runtime::Runtime,
    handle: &tokio::runtime::Handle,
) {
    tokio::spawn(async {}); // FINDS: disallowed_methods
    tokio::task::spawn(async {}); // FINDS: disallowed_methods
    tokio::task::spawn_blocking(|| ()); // FINDS: disallowed_methods
    tokio::task::spawn_local(async {}); // FINDS: disallowed_methods
    runtime.spawn(async {}); // FINDS: disallowed_methods
    runtime.spawn_blocking(|| ()); // FINDS: disallowed_methods
    handle.spawn(async {}); // FINDS: disallowed_methods
    handle.spawn_blocking(|| ()); // FINDS: disallowed_methods
    tokio::task::JoinSet::new().spawn(async {}); // FINDS: disallowed_methods
}
