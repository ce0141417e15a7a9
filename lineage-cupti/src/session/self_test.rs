//! The start-up self-test: do external correlation records come?
//!
//! NVIDIA does not say whether CUPTI writes them when API calls are chosen one by one. So the first
//! calls that are made inside launch boundaries are remembered, and their API records looked for: an
//! external record beside one of them proves that they come, some such records without any prove that
//! they do not.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use lineage_core::observation::{ApiDomain, Event};

/// Calls that are remembered.
const CALLS: usize = 32;
/// API records of remembered calls after which the absence of external records is proved.
const ENOUGH: usize = 4;

static REMEMBERED: [AtomicU32; CALLS] = [const { AtomicU32::new(0) }; CALLS];
/// How many are remembered; more than there is room for means that the test is closed.
static COUNT: AtomicUsize = AtomicUsize::new(usize::MAX / 2);

/// Remembers a call made inside a boundary, while the test is open. Called on launching threads.
pub(super) fn launched_in_boundary(correlation: u32) {
    if COUNT.load(Relaxed) >= CALLS {
        return;
    }
    if let Some(place) = REMEMBERED.get(COUNT.fetch_add(1, Relaxed)) {
        place.store(correlation, Relaxed);
    }
}

/// The session's side of the test.
pub(super) struct SelfTest {
    /// API records of remembered calls.
    api_records: usize,
    open: bool,
}

impl SelfTest {
    /// Opens the test.
    pub(super) fn open() -> Self {
        REMEMBERED.iter().for_each(|place| place.store(0, Relaxed));
        COUNT.store(0, Relaxed);
        Self {
            api_records: 0,
            open: true,
        }
    }

    /// Takes a look at what was decoded. Answers once: whether external records come.
    pub(super) fn saw(&mut self, event: &Event) -> Option<bool> {
        if !self.open {
            return None;
        }
        let verdict = match event {
            Event::External(external) if external.own_kind => true,
            Event::Api(api) if api.api.domain == ApiDomain::Driver && api.correlation.0 != 0 => {
                // External records come before the API record they belong to.
                let correlation = api.correlation.0;
                if !REMEMBERED
                    .iter()
                    .any(|place| place.load(Relaxed) == correlation)
                {
                    return None;
                }
                self.api_records += 1;
                if self.api_records < ENOUGH {
                    return None;
                }
                false
            }
            _ => return None,
        };
        self.close();
        Some(verdict)
    }

    /// Closes the test without a verdict.
    pub(super) fn close(&mut self) {
        self.open = false;
        COUNT.store(usize::MAX / 2, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use lineage_core::id::{CorrelationId, HostNanos};
    use lineage_core::observation::{ApiId, ApiRecord, ExternalRecord, OperationsDue};

    use super::*;

    fn api(correlation: u32) -> Event {
        ApiRecord {
            session: 1,
            api: ApiId {
                domain: ApiDomain::Driver,
                cbid: 307,
                name: None,
            },
            correlation: CorrelationId(correlation),
            tid: 1,
            start: Some(HostNanos(1)),
            end: Some(HostNanos(2)),
            result: 0,
            due: OperationsDue::One,
        }
        .into()
    }

    fn external(own_kind: bool) -> Event {
        ExternalRecord {
            session: 1,
            kind: 5,
            own_kind,
            external_id: 1 << 24 | 1,
            correlation: CorrelationId(100),
            beside: None,
        }
        .into()
    }

    /// One test, since the remembered calls are the process's.
    #[test]
    fn api_records_of_boundaries_without_external_records_prove_their_absence() {
        let mut test = SelfTest::open();
        (100..110).for_each(launched_in_boundary);
        // Calls outside boundaries have no external record, and prove nothing.
        for correlation in 0..50 {
            assert_eq!(test.saw(&api(correlation)), None);
        }
        assert_eq!(
            test.saw(&external(false)),
            None,
            "another tool's id proves nothing"
        );
        assert_eq!(test.saw(&api(100)), None);
        assert_eq!(test.saw(&api(101)), None);
        assert_eq!(test.saw(&api(102)), None);
        assert_eq!(test.saw(&api(103)), Some(false));
        assert_eq!(test.saw(&external(true)), None, "answered once");

        let mut test = SelfTest::open();
        (100..1000).for_each(launched_in_boundary);
        assert_eq!(test.saw(&api(500)), None, "only the first are remembered");
        assert_eq!(test.saw(&external(true)), Some(true));
        assert_eq!(test.saw(&api(100)), None);
    }
}
