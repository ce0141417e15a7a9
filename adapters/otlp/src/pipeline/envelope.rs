//! The protobuf around the items of a batch.
//!
//! An export request is `Resource… { resource = 1, Scope… { scope = 1, items = 2, schema_url = 3 } = 2, schema_url = 3 } = 1`,
//! with the same field numbers for spans, metrics and log records (`opentelemetry/proto/{trace,metrics,logs}/v1` and their
//! collector services). So items that are already encoded need a tag and a length each, and all around them can be written
//! without knowing what they are.

use bytes::{BufMut, Bytes, BytesMut};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use prost::encoding::{encode_varint, encoded_len_varint};

const FIRST: u8 = tag(1);
const SECOND: u8 = tag(2);
const THIRD: u8 = tag(3);

/// What gRPC puts before a message: one byte whether it is compressed, four for its length.
pub(crate) const FRAME: usize = 5;

/// A length-delimited field of this number.
const fn tag(field: u8) -> u8 {
    field << 3 | 2
}

/// Who exports: what stands once in each request.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The process.
    pub resource: Resource,
    /// The library.
    pub scope: InstrumentationScope,
    /// Where the names of attributes are told, for both of them; empty if nowhere.
    pub schema_url: String,
}

/// An [`Origin`], encoded once.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// The fields `resource` and `scope`, with tags and lengths.
    resource: Vec<u8>,
    scope: Vec<u8>,
    /// The field `schema_url`, or nothing.
    schema_url: Vec<u8>,
}

impl Envelope {
    pub(crate) fn new(origin: &Origin) -> Self {
        let mut schema_url = Vec::new();
        if !origin.schema_url.is_empty() {
            put_field(&mut schema_url, THIRD, origin.schema_url.as_bytes());
        }
        let encoded = |message: Vec<u8>| {
            let mut field = Vec::new();
            put_field(&mut field, FIRST, &message);
            field
        };
        Self {
            resource: encoded(origin.resource.encode_to_vec()),
            scope: encoded(origin.scope.encode_to_vec()),
            schema_url,
        }
    }

    /// The most that stands around the items, with [`FRAME`] and three lengths of up to 5 bytes.
    pub(crate) fn length(&self) -> usize {
        FRAME + 2 * 6 + self.resource.len() + self.scope.len() + 2 * self.schema_url.len()
    }

    /// The whole request around `items`, each of which [`put_item`] wrote, after the [`FRAME`] of gRPC; and where in it the items
    /// begin.
    pub(crate) fn wrap(&self, items: &[u8]) -> (Bytes, usize) {
        let within_scope = self.scope.len() + items.len() + self.schema_url.len();
        let within_resource =
            self.resource.len() + field_length(within_scope) + self.schema_url.len();
        let mut body = BytesMut::with_capacity(FRAME + field_length(within_resource));
        let message = field_length(within_resource);
        // Not compressed, and 4 MiB long at most.
        body.put_u8(0);
        body.put_u32(u32::try_from(message).unwrap_or(u32::MAX));
        body.put_u8(FIRST);
        encode_varint(within_resource as u64, &mut body);
        body.put_slice(&self.resource);
        body.put_u8(SECOND);
        encode_varint(within_scope as u64, &mut body);
        body.put_slice(&self.scope);
        let begins = body.len();
        body.put_slice(items);
        body.put_slice(&self.schema_url);
        body.put_slice(&self.schema_url);
        (body.freeze(), begins)
    }
}

/// What a field of so many bytes takes, with tag and length.
pub(crate) fn field_length(content: usize) -> usize {
    1 + encoded_len_varint(content as u64) + content
}

/// Appends an encoded span, metric or log record.
pub(crate) fn put_item(items: &mut Vec<u8>, item: &[u8]) {
    put_field(items, SECOND, item);
}

fn put_field(to: &mut Vec<u8>, tag: u8, content: &[u8]) {
    to.push(tag);
    let mut length = content.len();
    while length > 0x7f {
        to.push(length as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
    to.extend_from_slice(content);
}

/// Where the item with this index begins, in what [`put_item`] wrote.
pub(crate) fn begin_of(index: usize, items: &[u8]) -> usize {
    let mut rest = items;
    for _ in 0..index {
        let mut after_tag = rest.get(1..).unwrap_or_default();
        let length = prost::encoding::decode_varint(&mut after_tag).unwrap_or(0) as usize;
        rest = after_tag.get(length..).unwrap_or_default();
    }
    items.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
    use opentelemetry_proto::tonic::logs::v1::LogRecord;
    use opentelemetry_proto::tonic::metrics::v1::Metric;
    use opentelemetry_proto::tonic::trace::v1::Span;

    fn origin(schema_url: &str) -> Origin {
        let value = any_value::Value::StringValue("llm".into());
        let name = KeyValue {
            key: "service.name".into(),
            value: Some(AnyValue { value: Some(value) }),
            ..Default::default()
        };
        Origin {
            resource: Resource {
                attributes: vec![name],
                ..Default::default()
            },
            scope: InstrumentationScope {
                name: "lineage".into(),
                ..Default::default()
            },
            schema_url: schema_url.into(),
        }
    }

    fn spans(count: usize) -> Vec<Span> {
        let span = |index: usize| Span {
            name: "k".repeat(index * 37 % 300),
            start_time_unix_nano: index as u64,
            ..Default::default()
        };
        (0..count).map(span).collect()
    }

    fn wrapped(origin: &Origin, items: &[Vec<u8>]) -> (Bytes, usize) {
        let mut joined = Vec::new();
        items.iter().for_each(|item| put_item(&mut joined, item));
        let envelope = Envelope::new(origin);
        let (body, begins) = envelope.wrap(&joined);
        assert!(body.len() <= envelope.length() + joined.len());
        assert_eq!(body[begins..begins + joined.len()], joined);
        let length = u32::try_from(body.len() - FRAME).expect("a short one");
        assert_eq!((body[0], &body[1..FRAME]), (0, &length.to_be_bytes()[..]));
        (body.slice(FRAME..), begins)
    }

    #[test]
    fn is_what_prost_writes_for_the_same_request() {
        for (count, schema_url) in [(0, ""), (1, "https://a.b/1"), (700, "https://a.b/1")] {
            let (origin, spans) = (origin(schema_url), spans(count));
            let items: Vec<_> = spans.iter().map(Span::encode_to_vec).collect();
            let (body, _) = wrapped(&origin, &items);
            let read = ExportTraceServiceRequest::decode(body.clone()).expect("a request");
            let resource = &read.resource_spans[0];
            assert_eq!(resource.resource.as_ref(), Some(&origin.resource));
            assert_eq!(resource.schema_url, schema_url);
            assert_eq!(resource.scope_spans[0].scope.as_ref(), Some(&origin.scope));
            assert_eq!(resource.scope_spans[0].schema_url, schema_url);
            assert_eq!(resource.scope_spans[0].spans, spans);
            assert_eq!(read.encode_to_vec(), body);
        }
    }

    #[test]
    fn metrics_and_log_records_are_numbered_as_spans_are() {
        let metric = Metric {
            name: "launch.delay".into(),
            ..Default::default()
        };
        let record = LogRecord {
            severity_text: "WARN".into(),
            ..Default::default()
        };
        let (body, _) = wrapped(&origin("u"), &[metric.encode_to_vec()]);
        let read = ExportMetricsServiceRequest::decode(body).expect("a request");
        assert_eq!(read.resource_metrics[0].scope_metrics[0].metrics, [metric]);
        let (body, _) = wrapped(&origin("u"), &[record.encode_to_vec()]);
        let read = ExportLogsServiceRequest::decode(body).expect("a request");
        assert_eq!(read.resource_logs[0].scope_logs[0].log_records, [record]);
    }

    #[test]
    fn items_are_found_again() {
        let mut items = Vec::new();
        let mut begins = Vec::new();
        for length in [0_usize, 1, 127, 128, 20_000, 3] {
            begins.push(items.len());
            let before = items.len();
            put_item(&mut items, &vec![7; length]);
            assert_eq!(items.len() - before, field_length(length));
        }
        for (index, begin) in begins.into_iter().enumerate() {
            assert_eq!(begin_of(index, &items), begin);
        }
        assert_eq!(begin_of(6, &items), items.len());
        assert_eq!(
            begin_of(2, &[0x12, 0xff]),
            2,
            "what is cut off has no more items"
        );
    }
}
