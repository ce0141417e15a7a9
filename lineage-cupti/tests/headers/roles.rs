//! The functions that are recorded are chosen by id, and what each does to the order of work is told by
//! name (`lineage_core::readiness`): the two are held to be one set here.

use std::collections::BTreeMap;

use lineage_core::observation::ApiDomain;
use lineage_core::readiness::Role;
use lineage_cupti::order::{self, Orders};
use lineage_cupti::work;

/// Whether a function of the ORDER set may be told to do this by its name.
fn fits(name: &str, orders: Orders, role: Role) -> bool {
    // By rules of their own, whatever they do.
    if name.contains("GreenCtx") || name.starts_with("cuCtxRecord") || name.starts_with("cuCtxWait")
    {
        return role == Role::GreenContext;
    }
    match orders {
        Orders::Wait => role == Role::StreamWait,
        Orders::Record => role == Role::EventRecord,
        // One that asks does not wait.
        Orders::Synchronize if name.contains("Query") => role == Role::Neutral,
        Orders::Synchronize => role == Role::HostWait,
        Orders::Value | Orders::Semaphore => role == Role::Semaphore,
        Orders::Upload | Orders::Prefetch => role == Role::HiddenWork,
        Orders::Allocation if name.contains("Async") => role == Role::PooledAllocation,
        Orders::Allocation => role == Role::Allocation,
        Orders::HostFunction => role == Role::HostFunction,
        Orders::Stream => role == Role::Neutral,
        _ => false,
    }
}

/// Whether a name alone makes what follows partial, or is needed to tell what it does.
fn is_of_order(role: Role) -> bool {
    matches!(
        role,
        Role::StreamWait
            | Role::EventRecord
            | Role::HostWait
            | Role::Semaphore
            | Role::HostFunction
            | Role::PooledAllocation
            | Role::HiddenWork
    )
}

/// No function; and one that CUDA 13 no longer lists, and no driver exports.
const NONE: [&str; 2] = ["SIZE", "cuMemcpy_v2"];

/// Every function of an interface, by the name and id that NVIDIA's header gives it.
pub(super) fn compare(theirs: &BTreeMap<String, u32>, domain: ApiDomain) {
    let mut wrong = Vec::new();
    let functions = theirs
        .iter()
        .filter(|(name, _)| !NONE.contains(&name.as_str()));
    for (name, &cbid) in functions {
        let role = Role::of(Some(name));
        let asks = matches!(role, Role::Work | Role::LaunchEx | Role::GraphLaunch);
        let recorded = work::function(domain, cbid).is_some();
        let ordering = order::function(cbid).filter(|_| domain == ApiDomain::Driver);
        let agree = match ordering {
            Some(known) => fits(name, known.orders, role),
            None => asks == recorded && (domain != ApiDomain::Driver || !is_of_order(role)),
        };
        if !agree {
            wrong.push(format!(
                "{name} ({cbid}): {role:?}, {ordering:?}, launches: {recorded}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
