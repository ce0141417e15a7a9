//! A session with few words. Times in nanoseconds; Unix time is 1,000,000 later.

use lineage_core::evidence::{Evidence, TimeSource, Why};
use lineage_core::fault::FaultCode;
use lineage_core::id::{
    Attribution, CorrelationId, HandoffId, HostNanos, LaunchEpoch, ProcessOrdinal, ThreadKey,
    UnwrappedCorrelationId, W3cParent,
};
use lineage_core::observation::{
    ActivityKind, ApiDomain, ApiId, CarrierKind, Declared, Event, Handoff, LinkKind, Linked,
    Observation, Operation, Parented, Received, Retired, RetiredAs, Sent, Site, Stepped,
};
use lineage_core::row::{Binding, JoinSources, Row, RowCall, RowGraph, Stages};
use opentelemetry::Value;
use opentelemetry::trace::{Link, SpanId, TraceId};
use opentelemetry_sdk::trace::SpanData;
use uuid::Uuid;

use crate::attributes as names;
use crate::ids::Ids;
use crate::spans::{Settings, SpanCounts, Spans, Texts, Volume};

pub(super) const PROCESS: Uuid = Uuid::from_u128(0x0192_f3aa_0000_7000_8000_0000_0000_0001);

pub(super) fn at(ns: u64) -> HostNanos {
    HostNanos(ns)
}

pub(super) fn epoch(id: u64, version: u32) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, version).expect("in range")
}

pub(super) fn ids() -> Ids {
    Ids::new(PROCESS)
}

fn handoff(number: u64, id: u64) -> Handoff {
    Handoff {
        id: HandoffId(number),
        epoch: epoch(id, 1),
        carrier: CarrierKind::Envelope,
    }
}

fn thread(tid: u64) -> ThreadKey {
    ThreadKey { tid, generation: 1 }
}

/// A session's spans.
pub(super) struct Session {
    pub(super) spans: Spans,
    pub(super) out: Vec<SpanData>,
    calls: u64,
}

impl Session {
    pub(super) fn new(volume: Volume) -> Self {
        Self::holding(volume, 1 << 20, 1_000)
    }

    pub(super) fn holding(volume: Volume, hold_bytes: usize, hold_epochs: usize) -> Self {
        let settings = Settings {
            process: PROCESS,
            unix_offset_ns: 1_000_000,
            volume,
            hold_bytes,
            hold_epochs,
        };
        Self {
            spans: Spans::new(settings, Texts::new(None)),
            out: Vec::new(),
            calls: 0,
        }
    }

    fn see(&mut self, event: impl Into<Event>) -> &mut Self {
        self.spans.observe(&Observation::live(event));
        self
    }

    pub(super) fn declare(&mut self, id: u64, ns: u64) -> &mut Self {
        self.declare_named(id, "generate", ns)
    }

    pub(super) fn declare_named(&mut self, id: u64, name: &str, ns: u64) -> &mut Self {
        self.see(Declared {
            epoch: epoch(id, 1),
            thread: thread(7),
            task: None,
            at: at(ns),
            name: name.into(),
            site: None,
        })
    }

    pub(super) fn child_of(&mut self, id: u64, trace: u128, span: u64, flags: u8) -> &mut Self {
        self.see(Parented {
            epoch: epoch(id, 1),
            parent: W3cParent {
                trace_id: trace,
                span_id: span,
                flags,
            },
            at: at(0),
        })
    }

    pub(super) fn link(&mut self, id: u64, from: LaunchEpoch, kind: LinkKind) -> &mut Self {
        self.see(Linked {
            epoch: epoch(id, 1),
            from,
            kind,
            at: at(0),
        })
    }

    /// Declares a batch of these.
    pub(super) fn merge(&mut self, id: u64, members: &[u64], ns: u64) -> &mut Self {
        self.declare_named(id, "batch", ns);
        for &member in members {
            self.link(id, epoch(member, 1), LinkKind::Merge);
        }
        self
    }

    pub(super) fn step(&mut self, of: LaunchEpoch, ns: u64) -> &mut Self {
        self.see(Stepped {
            epoch: of,
            thread: thread(7),
            at: at(ns),
        })
    }

    pub(super) fn retire(&mut self, id: u64, ns: u64) -> &mut Self {
        self.see(Retired {
            epoch: epoch(id, 1),
            how: RetiredAs::Done,
            at: at(ns),
        })
    }

    pub(super) fn sent(&mut self, number: u64, id: u64, ns: u64, tid: u64) -> &mut Self {
        self.see(Sent {
            handoff: handoff(number, id),
            thread: thread(tid),
            at: at(ns),
            site: Some(Site {
                file: "src/queue.rs".into(),
                line: 3,
                column: 5,
            }),
        })
    }

    pub(super) fn received(&mut self, number: u64, id: u64, ns: u64, tid: u64) -> &mut Self {
        self.see(Received {
            handoff: handoff(number, id),
            thread: thread(tid),
            task: None,
            at: at(ns),
        })
    }

    /// A kernel of an epoch, called 100 ns before it starts.
    pub(super) fn kernel(&mut self, of: LaunchEpoch, start: u64, end: u64) -> &mut Self {
        self.kernel_with(of, start, end, &[])
    }

    pub(super) fn kernel_called(
        &mut self,
        of: LaunchEpoch,
        called: u64,
        start: u64,
        end: u64,
    ) -> &mut Self {
        // Which call it was must not depend on the order in which rows come.
        let mut row = row(start, of, start, end, &[]);
        row.stages.api_enter = Evidence::Observed {
            at: at(called),
            source: TimeSource::CuptiApi,
        };
        self.spans.row(&row);
        self
    }

    pub(super) fn kernel_with(
        &mut self,
        of: LaunchEpoch,
        start: u64,
        end: u64,
        faults: &[FaultCode],
    ) -> &mut Self {
        self.calls += 1;
        let row = row(self.calls, of, start, end, faults);
        self.spans.row(&row);
        self
    }

    /// A kernel of an epoch that ran in a graph.
    pub(super) fn replayed(
        &mut self,
        of: LaunchEpoch,
        start: u64,
        end: u64,
        graph: RowGraph,
    ) -> &mut Self {
        self.calls += 1;
        let mut row = row(self.calls, of, start, end, &[]);
        row.graph = Some(graph);
        self.spans.row(&row);
        self
    }

    /// All that was recorded before was handed on, and settled.
    pub(super) fn progress(&mut self, ns: u64) -> &mut Self {
        self.progress_to(ns, ns)
    }

    pub(super) fn progress_to(&mut self, read: u64, settled: u64) -> &mut Self {
        self.spans.progress(at(read), at(settled));
        self.out.extend(self.spans.drain());
        self
    }

    pub(super) fn end(&mut self) -> SpanCounts {
        self.spans.end();
        self.out.extend(self.spans.drain());
        self.spans.counts()
    }

    /// The spans of one kind, in the order in which they were made.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<&SpanData> {
        let is_of = |span: &&SpanData| text(span, names::SPAN) == kind;
        self.out.iter().filter(is_of).collect()
    }

    /// The one span of an epoch at a version.
    pub(super) fn span(&self, of: LaunchEpoch) -> &SpanData {
        let id = ids().epoch(of);
        let mut found = self
            .out
            .iter()
            .filter(|span| span.span_context.span_id() == id);
        let span = found.next().expect("a span of this epoch");
        assert_eq!(found.next(), None, "one span of this epoch");
        span
    }
}

fn row(call: u64, of: LaunchEpoch, start: u64, end: u64, faults: &[FaultCode]) -> Row {
    let unknown = Evidence::Unknown {
        why: Why::NotCollected,
    };
    let observed = |ns| Evidence::Observed {
        at: at(ns),
        source: TimeSource::CuptiApi,
    };
    Row {
        process: ProcessOrdinal::default(),
        call: Some(RowCall {
            session: 1,
            correlation: UnwrappedCorrelationId(call),
            api: ApiId {
                domain: ApiDomain::Driver,
                cbid: 307,
                name: Some("cuLaunchKernel".into()),
            },
            tid: 9,
            task: None,
            result: 0,
            in_boundary: Some(true),
        }),
        operation: Some(Operation {
            session: 1,
            kind: ActivityKind::Kernel,
            correlation: CorrelationId(call as u32),
            device: 0,
            context: 1,
            stream: 7,
            queued: None,
            submitted: None,
            start: HostNanos::from_cupti(start),
            end: HostNanos::from_cupti(end),
            name: Some("gemv".into()),
            graph_node: None,
            graph: None,
            bytes: 0,
            copies: 1,
            grid: [4, 1, 1],
            block: [32, 1, 1],
            footprint: None,
        }),
        graph: None,
        binding: Binding::Bound(of),
        sources: JoinSources {
            external: Some(Attribution::Epoch(of)),
            callback: Some(Attribution::Epoch(of)),
            containment: None,
            reachable: None,
        },
        stages: Stages {
            declared: unknown,
            ready: unknown,
            scope_enter: unknown,
            api_enter: observed(start.saturating_sub(100)),
            api_exit: observed(start.saturating_sub(90)),
            queued: unknown,
            submitted: unknown,
            start: observed(start),
            end: observed(end),
        },
        faults: faults.to_vec(),
        after_retirement: false,
        supersedes: false,
    }
}

pub(super) fn value<'a>(span: &'a SpanData, name: &str) -> Option<&'a Value> {
    let mut found = span.attributes.iter().filter(|it| it.key.as_str() == name);
    let value = found.next().map(|it| &it.value);
    assert!(found.next().is_none(), "{name} is there once");
    value
}

pub(super) fn number(span: &SpanData, name: &str) -> Option<i64> {
    value(span, name).map(|value| match value {
        Value::I64(number) => *number,
        other => panic!("{name} is {other:?}"),
    })
}

pub(super) fn text(span: &SpanData, name: &str) -> String {
    value(span, name).map_or_else(String::new, |value| value.as_str().into_owned())
}

/// Trace and span of each link that is there for this reason.
pub(super) fn links(span: &SpanData, why: &str) -> Vec<(TraceId, SpanId)> {
    let is_for = |link: &&Link| {
        link.attributes
            .iter()
            .any(|it| it.key.as_str() == names::LINK && it.value.as_str() == why)
    };
    let links = span.links.links.iter().filter(is_for);
    links
        .map(|link| (link.span_context.trace_id(), link.span_context.span_id()))
        .collect()
}

pub(super) fn place(span: &SpanData) -> (TraceId, SpanId) {
    (span.span_context.trace_id(), span.span_context.span_id())
}

/// Start and end in nanoseconds of the session's clock.
pub(super) fn times(span: &SpanData) -> (u64, u64) {
    let ns = |time: std::time::SystemTime| {
        let since = time.duration_since(std::time::UNIX_EPOCH);
        since.expect("after 1970").as_nanos() as u64 - 1_000_000
    };
    (ns(span.start_time), ns(span.end_time))
}
