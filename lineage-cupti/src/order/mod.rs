//! Which functions of CUDA order GPU work without asking for any: waits, event records, values in
//! memory, semaphores, uploads, prefetches, allocations, functions of the host's, streams.
//!
//! This is the ORDER set, which the tier `explain` records
//! beside the [LAUNCH set](crate::work): what a kernel had to wait for is complete only where each
//! of these calls was seen. Each variant for per-thread streams (`_ptsz`) has an id of its own.
//!
//! Only the driver's functions are chosen: a call of the runtime's makes one of the driver's.

mod driver;

/// A function that orders work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderFunction {
    /// CUPTI's callback id, among the driver's.
    pub cbid: u32,
    /// Its name, as `cuptiGetCallbackName` gives it.
    pub name: &'static str,
    /// What a call does.
    pub orders: Orders,
}

impl OrderFunction {
    const fn new(cbid: u32, name: &'static str, orders: Orders) -> Self {
        Self { cbid, name, orders }
    }
}

/// How a function orders work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Orders {
    /// A stream or context is told to wait for an event.
    Wait,
    /// An event is recorded.
    Record,
    /// A thread waits for an event, a stream or a context, or asks about it.
    Synchronize,
    /// A stream waits for a value in memory, or writes one.
    Value,
    /// A stream waits for an external semaphore, or signals one; or it gets resources from a graphics
    /// interface, or gives them back.
    Semaphore,
    /// A graph is uploaded.
    Upload,
    /// Memory is moved ahead of its use, attached, discarded or decompressed: work that is not recorded.
    Prefetch,
    /// Memory is allocated or freed: in stream order, or by a call that may wait for the device.
    Allocation,
    /// A function of the host's runs in a stream's order.
    HostFunction,
    /// A stream is made or goes.
    Stream,
}

/// All of them, in order of their ids.
pub const fn functions() -> &'static [OrderFunction] {
    driver::FUNCTIONS
}

/// The function of this id; `None` if it does not order work, or came after CUDA 13.5.
pub fn function(cbid: u32) -> Option<&'static OrderFunction> {
    let functions = functions();
    let place = functions
        .binary_search_by_key(&cbid, |function| function.cbid)
        .ok()?;
    functions.get(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineage_core::observation::ApiDomain;

    #[test]
    fn every_function_is_found_by_its_id_and_none_asks_for_work() {
        assert!(functions().is_sorted_by(|a, b| a.cbid < b.cbid));
        for known in functions() {
            assert_eq!(function(known.cbid), Some(known));
            assert!(
                crate::work::function(ApiDomain::Driver, known.cbid).is_none(),
                "{}",
                known.name
            );
        }
        assert_eq!(function(307), None, "cuLaunchKernel asks for work");
        assert_eq!(function(u32::MAX), None);
    }

    #[test]
    fn variants_for_per_thread_streams_do_what_the_others_do() {
        let of = |name: &str| functions().iter().find(|known| known.name == name);
        let variants: Vec<_> = functions()
            .iter()
            .filter_map(|known| known.name.strip_suffix("_ptsz").map(|name| (known, name)))
            .collect();
        assert!(variants.len() > 25, "{}", variants.len());
        for (variant, name) in variants {
            let plain = of(name).map(|plain| plain.orders);
            assert_eq!(plain, Some(variant.orders), "{name}");
        }
    }
}
