//! Who exports: the resource of all spans, metrics and logs.

use lineage_core::source::SessionInfo;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::attributes as names;
use crate::pipeline::Origin;

/// The resource of a session, with what a user adds to it. What comes later counts: our own, what
/// the environment says, what is given in code.
pub(crate) fn origin(
    session: &SessionInfo,
    unix_offset_ns: i64,
    service_name: Option<&str>,
    added: &[(String, String)],
) -> Origin {
    let mut attributes = vec![
        text("service.name", &*session.service),
        text("service.instance.id", session.process.to_string()),
        text("telemetry.sdk.name", names::SCOPE_NAME),
        text("telemetry.sdk.language", "rust"),
        text("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        number("process.pid", i64::from(std::process::id())),
        text(names::PROCESS, session.process.to_string()),
        number(names::CLOCK_UNIX_OFFSET_NS, unix_offset_ns),
    ];
    let service_name = service_name.map(|name| ("service.name".to_owned(), name.to_owned()));
    for (name, value) in added.iter().cloned().chain(service_name) {
        attributes.retain(|known| known.key != name);
        attributes.push(text(&name, value));
    }
    Origin {
        resource: Resource {
            attributes,
            ..Resource::default()
        },
        scope: InstrumentationScope {
            name: names::SCOPE_NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        },
        schema_url: names::SCHEMA_URL.to_owned(),
    }
}

/// An attribute with a text.
pub(crate) fn text(name: &str, value: impl Into<String>) -> KeyValue {
    attribute(name, Value::StringValue(value.into()))
}

/// An attribute with a number.
pub(crate) fn number(name: &str, value: i64) -> KeyValue {
    attribute(name, Value::IntValue(value))
}

fn attribute(name: &str, value: Value) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
