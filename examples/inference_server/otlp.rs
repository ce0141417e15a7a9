//! `--otlp`: the lineage of the run whose ledger is kept, sent to an OpenTelemetry collector.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::Duration;

use lineage_otlp::{Detail, ExportCounts, Otlp, OtlpBuilder, OtlpHandle, Protocol, Volume};
use serde_json::{Value, json};

use crate::cannot_run::CannotRun;
use crate::options::{Options, OtlpDetail, OtlpProtocol};
use crate::table::{Table, Tone};

/// How long the end of the run waits for the collector.
const WAIT: Duration = Duration::from_secs(10);

/// What became of the export.
pub struct Exported {
    url: String,
    handle: OtlpHandle,
}

/// The sink for `--otlp`, and what tells of it; `None` without it.
///
/// A server of one's own takes `Otlp::from_env()`. Here everything is exported by default, whatever
/// its length, since this is what people want to see of 500 requests.
pub fn sink(options: &Options) -> Result<Option<(Otlp, Exported)>, CannotRun> {
    let Some(url) = &options.otlp else {
        return Ok(None);
    };
    let from_env = OtlpBuilder::from_env().map_err(|error| {
        CannotRun::new(
            format!("the environment cannot be used: {error}"),
            "mend or unset the variable",
        )
    })?;
    let mut builder = from_env
        .endpoint(url)
        .volume(Volume::of_all(match options.otlp_detail {
            OtlpDetail::Everything => Detail::Everything,
            OtlpDetail::Late => Detail::SumsAndLate,
        }))
        .shutdown_within(WAIT);
    let protocol = options.otlp_protocol.or_else(|| {
        // 4317 is gRPC's port wherever OTLP is spoken.
        let is_grpc = url.trim_end_matches('/').ends_with(":4317");
        is_grpc.then_some(OtlpProtocol::Grpc)
    });
    builder = match protocol {
        Some(OtlpProtocol::Grpc) => builder.protocol(Protocol::Grpc),
        Some(OtlpProtocol::Http) => builder.protocol(Protocol::HttpProtobuf),
        None => builder,
    };
    if let Some(path) = &options.otlp_spans {
        let file = File::create(path).map_err(|error| {
            CannotRun::new(
                format!("{} cannot be written: {error}", path.display()),
                "give --otlp-spans a file in a folder that exists",
            )
        })?;
        let mut ids = BufWriter::new(file);
        builder = builder.inspect(move |span| {
            let context = &span.span_context;
            // Who compares them sees what is missing.
            let _ = writeln!(ids, "{}\t{}", context.trace_id(), context.span_id());
        });
    }
    let otlp = builder.build();
    let exported = Exported {
        url: url.clone(),
        handle: otlp.handle(),
    };
    Ok(Some((otlp, exported)))
}

impl Exported {
    /// Whether the collector has all that it was to have.
    pub fn is_complete(&self) -> bool {
        let counts = self.handle.export();
        counts.spans.sent == counts.spans.offered
    }

    /// For a person.
    pub fn show(&self, table: &mut Table) {
        let counts = self.handle.export();
        let spans = &counts.spans;
        table.line("collector", &self.url);
        if spans.offered == 0 {
            table.line(
                "spans",
                "none was to be sent: do the OTEL_… variables switch it off?",
            );
            return;
        }
        table.row(
            "spans",
            spans.sent,
            Tone::Plain,
            "acknowledged by the collector",
        );
        for (count, what) in [
            (spans.refused, "refused by the collector"),
            (spans.lost.total(), "lost, and counted"),
            (spans.pending(), "not acknowledged in time"),
        ] {
            if count > 0 {
                table.row("", count, Tone::Bad, what);
            }
        }
        if !self.is_complete()
            && let Some(error) = &counts.last_error
        {
            table.note(&error.text);
        }
    }

    /// For a program.
    pub fn json(&self) -> Value {
        let counts = self.handle.export();
        let ExportCounts {
            spans,
            metrics,
            log_records,
            ..
        } = &counts;
        let signals = [
            ("spans", spans),
            ("metrics", metrics),
            ("log_records", log_records),
        ];
        let mut json: serde_json::Map<String, Value> = signals
            .into_iter()
            .map(|(name, signal)| {
                let lost = &signal.lost;
                let value = json!({
                    "offered": signal.offered,
                    "sent": signal.sent,
                    "retried": signal.retried,
                    "refused": signal.refused,
                    "lost": lost.total(),
                    "lost_by_reason": {
                        "queue_full": lost.queue_full,
                        "too_large": lost.too_large,
                        "given_up": lost.given_up,
                        "shutdown": lost.shutdown,
                        "panicked": lost.panicked,
                    },
                });
                (name.to_owned(), value)
            })
            .collect();
        json.insert("requests".to_owned(), counts.requests.into());
        json.insert(
            "queue_bytes_most".to_owned(),
            counts.queue_bytes_most.into(),
        );
        let last_error = counts.last_error.as_ref().map(|error| &*error.text);
        json.insert("last_error".to_owned(), last_error.into());
        Value::Object(json)
    }
}
