//! Metrics: totals of the session, the time it takes work to start, and what lineage itself costs.
//!
//! All sums are cumulative since the session's start. Those over rows may go down, since a row is
//! taken back when what it missed comes late: they are not monotonic.

use std::sync::Arc;

use lineage_core::observation::ActivityKind;
use lineage_core::totals::Totals;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
    metric::Data, number_data_point,
};
use rustc_hash::FxHashMap;

use crate::attributes as names;
use crate::pipeline::{ExportCounts, SignalCounts};
use crate::resource::text;
use crate::spans::{SpanCounts, kind_name, signed};

/// Upper bounds of the histogram's buckets, in nanoseconds: 1 us to 10 s.
const BOUNDS_NS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Names of epochs that are told apart; all others are one.
const NAMES: usize = 100;
const OTHER: &str = "other";

/// Times of one kind of work.
#[derive(Debug, Clone, Default)]
struct Times {
    counts: [u64; BOUNDS_NS.len() + 1],
    sum_ns: u64,
    device_ns: u64,
    least_ns: Option<u64>,
    most_ns: u64,
}

/// What is measured between exports of the metrics.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    times: FxHashMap<(Arc<str>, ActivityKind), Times>,
    names: rustc_hash::FxHashSet<Arc<str>>,
}

/// What else the metrics tell.
pub(crate) struct Figures<'a> {
    pub(crate) totals: &'a Totals,
    pub(crate) export: &'a ExportCounts,
    pub(crate) spans: SpanCounts,
    /// Processor time of lineage's threads so far, in nanoseconds, by thread.
    pub(crate) cpu_ns: &'a [(&'static str, u64)],
    pub(crate) started_unix_ns: u64,
    pub(crate) now_unix_ns: u64,
}

impl Meter {
    /// An operation of an epoch's: how long its start took after its call, and how long it ran.
    pub(crate) fn operation(
        &mut self,
        epoch: Option<&Arc<str>>,
        kind: ActivityKind,
        launch_delay_ns: Option<u64>,
        duration_ns: u64,
    ) {
        let name = match epoch {
            Some(name) if self.names.contains(name) => Arc::clone(name),
            Some(name) if self.names.len() < NAMES => {
                self.names.insert(Arc::clone(name));
                Arc::clone(name)
            }
            _ => OTHER.into(),
        };
        let times = self.times.entry((name, kind)).or_default();
        times.device_ns = times.device_ns.saturating_add(duration_ns);
        if let Some(ns) = launch_delay_ns {
            let bucket = BOUNDS_NS.partition_point(|&bound| bound < ns);
            times.counts[bucket] += 1;
            times.sum_ns = times.sum_ns.saturating_add(ns);
            times.least_ns = Some(times.least_ns.map_or(ns, |least| least.min(ns)));
            times.most_ns = times.most_ns.max(ns);
        }
    }

    /// All metrics as they are now.
    pub(crate) fn collect(&self, figures: &Figures<'_>) -> Vec<Metric> {
        let mut all = vec![self.launch_delay(figures), self.device_time(figures)];
        all.extend(self::totals(figures));
        all.push(exported(figures));
        all.extend(sizes(figures));
        let cpu = figures.cpu_ns.iter().map(|&(thread, ns)| {
            let attributes = vec![text(names::LINEAGE_THREAD, thread)];
            point(figures, attributes, Number::Seconds(ns))
        });
        all.push(sum(
            names::METRIC_CPU,
            "processor time of lineage's own threads",
            "s",
            true,
            cpu.collect(),
        ));
        // One without a point says nothing, and some backends complain.
        all.retain(has_points);
        all
    }

    fn launch_delay(&self, figures: &Figures<'_>) -> Metric {
        let points = self
            .times
            .iter()
            .filter(|(_, times)| times.least_ns.is_some());
        let points = points.map(|((name, kind), times)| HistogramDataPoint {
            attributes: kind_attributes(name, *kind),
            start_time_unix_nano: figures.started_unix_ns,
            time_unix_nano: figures.now_unix_ns,
            count: times.counts.iter().sum(),
            sum: Some(seconds(times.sum_ns)),
            bucket_counts: times.counts.to_vec(),
            explicit_bounds: BOUNDS_NS.iter().map(|&ns| seconds(ns)).collect(),
            min: times.least_ns.map(seconds),
            max: Some(seconds(times.most_ns)),
            ..HistogramDataPoint::default()
        });
        let data = Data::Histogram(Histogram {
            data_points: points.collect(),
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
        });
        metric(
            names::METRIC_LAUNCH_DELAY,
            "time from a call's entry to the start of its operation on the device",
            "s",
            data,
        )
    }

    fn device_time(&self, figures: &Figures<'_>) -> Metric {
        let points = self.times.iter().map(|((name, kind), times)| {
            let attributes = kind_attributes(name, *kind);
            point(figures, attributes, Number::Seconds(times.device_ns))
        });
        sum(
            names::METRIC_DEVICE_TIME,
            "time of operations on the device",
            "s",
            true,
            points.collect(),
        )
    }
}

fn has_points(metric: &Metric) -> bool {
    match &metric.data {
        Some(Data::Histogram(histogram)) => !histogram.data_points.is_empty(),
        Some(Data::Sum(sum)) => !sum.data_points.is_empty(),
        _ => true,
    }
}

fn kind_attributes(name: &str, kind: ActivityKind) -> Vec<KeyValue> {
    vec![
        text(names::EPOCH_NAME, name),
        text(names::GPU_OPERATION, kind_name(kind)),
    ]
}

fn totals(figures: &Figures<'_>) -> [Metric; 4] {
    let totals = figures.totals;
    let by = totals.bound_by;
    let bound = [
        ("external+callback", by.external_and_callback),
        ("external", by.external_only),
        ("callback", by.callback_only),
        ("containment", by.containment_only),
    ];
    let joined = bound.map(|(source, count)| {
        let attributes = vec![
            text(names::JOIN_OUTCOME, "bound"),
            text(names::JOINED_BY, source),
        ];
        point(figures, attributes, Number::Count(count))
    });
    let others = [
        ("lost", totals.lost),
        ("wrong", totals.wrong),
        ("disputed", totals.disputed),
        ("unattributed", totals.unattributed.total()),
    ];
    let others = others.map(|(outcome, count)| {
        let attributes = vec![text(names::JOIN_OUTCOME, outcome)];
        point(figures, attributes, Number::Count(count))
    });
    let faults = totals.faults.iter().map(|(code, count)| {
        let attributes = vec![text(names::FAULT_CODE, code.code())];
        point(figures, attributes, Number::Count(count))
    });
    let dropped = totals.dropped.iter().map(|(site, count)| {
        let attributes = vec![text(names::DROP_SITE, drop_site(site))];
        point(figures, attributes, Number::Count(count))
    });
    let in_rings = point(
        figures,
        vec![text(names::DROP_SITE, "ring")],
        Number::Count(totals.dropped_in_rings),
    );
    let epochs = point(figures, Vec::new(), Number::Count(totals.epochs.declared));
    [
        sum(
            names::METRIC_JOINS,
            "rows by what became of their join",
            "{row}",
            false,
            joined.into_iter().chain(others).collect(),
        ),
        sum(
            names::METRIC_FAULTS,
            "faults by code",
            "{fault}",
            false,
            faults.collect(),
        ),
        sum(
            names::METRIC_DROPPED,
            "records that were lost, by place",
            "{record}",
            true,
            dropped.chain([in_rings]).collect(),
        ),
        sum(
            names::METRIC_EPOCHS,
            "epochs declared",
            "{epoch}",
            true,
            vec![epochs],
        ),
    ]
}

fn exported(figures: &Figures<'_>) -> Metric {
    let signals = [
        ("traces", figures.export.spans),
        ("metrics", figures.export.metrics),
        ("logs", figures.export.log_records),
    ];
    let points = signals.into_iter().flat_map(|(signal, counts)| {
        let SignalCounts {
            sent,
            retried,
            refused,
            lost,
            ..
        } = counts;
        [
            ("sent", sent),
            ("retried", retried),
            ("refused", refused),
            ("lost", lost.total()),
        ]
        .map(|(outcome, count)| {
            let attributes = vec![
                text(names::EXPORT_SIGNAL, signal),
                text(names::EXPORT_OUTCOME, outcome),
            ];
            point(figures, attributes, Number::Count(count))
        })
    });
    sum(
        names::METRIC_EXPORTED,
        "items by what became of their export; a retried one is also among the others",
        "{item}",
        true,
        points.collect(),
    )
}

fn sizes(figures: &Figures<'_>) -> [Metric; 2] {
    let gauge = |name: &str, about: &str, bytes: u64| {
        let data_points = vec![point(figures, Vec::new(), Number::Count(bytes))];
        metric(name, about, "By", Data::Gauge(Gauge { data_points }))
    };
    [
        gauge(
            names::METRIC_QUEUE,
            "encoded items that wait or are on their way",
            figures.export.queue_bytes,
        ),
        gauge(
            names::METRIC_HELD,
            "what is held until it is decided how much of it is exported, roughly",
            figures.spans.held_bytes,
        ),
    ]
}

enum Number {
    Count(u64),
    /// In nanoseconds; exported as seconds.
    Seconds(u64),
}

fn point(figures: &Figures<'_>, attributes: Vec<KeyValue>, value: Number) -> NumberDataPoint {
    let value = match value {
        Number::Count(count) => number_data_point::Value::AsInt(signed(count)),
        Number::Seconds(ns) => number_data_point::Value::AsDouble(seconds(ns)),
    };
    NumberDataPoint {
        attributes,
        start_time_unix_nano: figures.started_unix_ns,
        time_unix_nano: figures.now_unix_ns,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn sum(
    name: &str,
    about: &str,
    unit: &str,
    is_monotonic: bool,
    data_points: Vec<NumberDataPoint>,
) -> Metric {
    let data = Data::Sum(Sum {
        data_points,
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
        is_monotonic,
    });
    metric(name, about, unit, data)
}

fn metric(name: &str, about: &str, unit: &str, data: Data) -> Metric {
    Metric {
        name: name.to_owned(),
        description: about.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// As the ledger calls it.
fn drop_site(site: lineage_core::observation::DropSite) -> &'static str {
    use lineage_core::observation::DropSite;
    match site {
        DropSite::CuptiBuffer => "cupti_buffer",
        DropSite::BufferTail => "buffer_tail",
        DropSite::BufferQueue => "buffer_queue",
        DropSite::Undecodable => "undecodable",
        DropSite::CallbackPanic => "callback_panic",
        DropSite::Correlator => "correlator",
        DropSite::AfterShutdown => "after_shutdown",
        DropSite::Declare => "declare",
        DropSite::Sink => "sink",
        DropSite::SchedulerRing => "scheduler_ring",
        DropSite::GraphQueue => "graph_queue",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::any_value;

    fn figures<'a>(totals: &'a Totals, export: &'a ExportCounts) -> Figures<'a> {
        Figures {
            totals,
            export,
            spans: SpanCounts::default(),
            cpu_ns: &[("drain", 1_500_000_000)],
            started_unix_ns: 10,
            now_unix_ns: 30,
        }
    }

    fn words(attributes: &[KeyValue]) -> Vec<(&str, &str)> {
        let word = |it: &'_ KeyValue| match &it.value.as_ref().expect("a value").value {
            Some(any_value::Value::StringValue(_)) => (),
            other => panic!("{other:?}"),
        };
        attributes.iter().for_each(word);
        let pair = |it| {
            let KeyValue { key, value, .. }: &KeyValue = it;
            match value.as_ref().and_then(|value| value.value.as_ref()) {
                Some(any_value::Value::StringValue(text)) => (&**key, &**text),
                _ => unreachable!("looked at above"),
            }
        };
        attributes.iter().map(pair).collect()
    }

    fn sum_of<'a>(metrics: &'a [Metric], name: &str) -> &'a Sum {
        let metric = metrics.iter().find(|metric| metric.name == name);
        match &metric.expect("the metric").data {
            Some(Data::Sum(sum)) => sum,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn delays_are_in_the_buckets_that_their_bounds_say() {
        let mut meter = Meter::default();
        let generate: Arc<str> = "generate".into();
        // Bounds belong to the bucket below them.
        for (delay_ns, duration_ns) in [(1_000, 5), (1_001, 6), (10_000_000_001, 7)] {
            meter.operation(
                Some(&generate),
                ActivityKind::Kernel,
                Some(delay_ns),
                duration_ns,
            );
        }
        // What has no known call has no delay, and takes time all the same.
        meter.operation(Some(&generate), ActivityKind::Kernel, None, 100);
        let (totals, export) = Default::default();
        let metrics = meter.collect(&figures(&totals, &export));
        let Some(Data::Histogram(delay)) = &metrics[0].data else {
            panic!("a histogram first");
        };
        let [point] = &delay.data_points[..] else {
            panic!("one kind of work");
        };
        assert_eq!(
            words(&point.attributes),
            [
                (names::EPOCH_NAME, "generate"),
                (names::GPU_OPERATION, "kernel")
            ]
        );
        assert_eq!(point.explicit_bounds.len() + 1, point.bucket_counts.len());
        assert_eq!(point.explicit_bounds[0], 1e-6);
        assert_eq!(point.explicit_bounds[21], 10.0);
        let filled: Vec<(usize, u64)> = (0..23)
            .map(|bucket| (bucket, point.bucket_counts[bucket]))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(filled, [(0, 1), (1, 1), (22, 1)]);
        assert_eq!(
            (point.count, point.min, point.max),
            (3, Some(1e-6), Some(10.000_000_001))
        );
        let device = sum_of(&metrics, names::METRIC_DEVICE_TIME);
        let Some(number_data_point::Value::AsDouble(seconds)) = device.data_points[0].value else {
            panic!("seconds");
        };
        assert_eq!(seconds, 118e-9);
    }

    #[test]
    fn names_without_number_become_one() {
        let mut meter = Meter::default();
        for name in 0..500 {
            let name: Arc<str> = format!("GET /{name}").into();
            meter.operation(Some(&name), ActivityKind::Copy, Some(1), 1);
        }
        let (totals, export) = Default::default();
        let metrics = meter.collect(&figures(&totals, &export));
        let device = sum_of(&metrics, names::METRIC_DEVICE_TIME);
        assert_eq!(device.data_points.len(), 101);
    }

    #[test]
    fn every_count_of_the_totals_is_told() {
        let mut totals = Totals::default();
        totals.bound_by.external_and_callback = 3;
        totals.bound_by.containment_only = 4;
        totals.lost = 5;
        totals.wrong = 6;
        totals.dropped_in_rings = 7;
        totals.epochs.declared = 8;
        let mut export = ExportCounts::default();
        export.spans.sent = 9;
        export.spans.lost.queue_full = 10;
        let mut meter = Meter::default();
        meter.operation(None, ActivityKind::Kernel, Some(1), 1);
        let metrics = meter.collect(&figures(&totals, &export));
        let told = |name: &str, wanted: &[(&str, &str)]| {
            let points = &sum_of(&metrics, name).data_points;
            let point = points
                .iter()
                .find(|point| words(&point.attributes) == wanted);
            match point.expect("such a point").value {
                Some(number_data_point::Value::AsInt(count)) => count,
                other => panic!("{other:?}"),
            }
        };
        let bound = |by| {
            let outcome = (names::JOIN_OUTCOME, "bound");
            told(names::METRIC_JOINS, &[outcome, (names::JOINED_BY, by)])
        };
        assert_eq!((bound("external+callback"), bound("containment")), (3, 4));
        assert_eq!(
            told(names::METRIC_JOINS, &[(names::JOIN_OUTCOME, "lost")]),
            5
        );
        assert_eq!(
            told(names::METRIC_JOINS, &[(names::JOIN_OUTCOME, "wrong")]),
            6
        );
        assert_eq!(
            told(names::METRIC_DROPPED, &[(names::DROP_SITE, "ring")]),
            7
        );
        assert_eq!(told(names::METRIC_EPOCHS, &[]), 8);
        let exported = |outcome| {
            let signal = (names::EXPORT_SIGNAL, "traces");
            told(
                names::METRIC_EXPORTED,
                &[signal, (names::EXPORT_OUTCOME, outcome)],
            )
        };
        assert_eq!((exported("sent"), exported("lost")), (9, 10));
        assert!(!sum_of(&metrics, names::METRIC_JOINS).is_monotonic);
        let all: std::collections::BTreeSet<&str> =
            metrics.iter().map(|metric| &*metric.name).collect();
        // Of faults there are none, and a metric without a point is not told.
        let mut expected: std::collections::BTreeSet<&str> =
            names::METRICS.iter().copied().collect();
        expected.remove(names::METRIC_FAULTS);
        assert_eq!(all, expected);
    }
}
