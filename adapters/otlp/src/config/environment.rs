//! The standard variables, see <https://opentelemetry.io/docs/specs/otel/protocol/exporter/> and
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>.
//!
//! The standard knows batches by number of items alone. Here they are bounded by bytes as well, so those for spans (and the same
//! beginning with `OTEL_BLRP_`, for log records) are taken like this:
//!
//! | variable | here | if it is not set |
//! | --- | --- | --- |
//! | `OTEL_BSP_SCHEDULE_DELAY` | a batch is sealed when its first item is so old | 1 s |
//! | `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` | or has so many items | 8192 |
//! | `OTEL_BSP_MAX_QUEUE_SIZE` | so many items may wait or be on their way, beside the bound by bytes | that by bytes alone |
//! | `OTEL_BSP_EXPORT_TIMEOUT` | a batch is tried for so long, from its first attempt to its last | 5 min |
//!
//! Other than the standard says, a value that cannot be used is an error and not ignored: an export that silently goes elsewhere
//! than it was told to is found too late.

use std::time::Duration;

use super::layer::{Given, Headers, Layer, Url};
use super::sampler::{self, Sampler};
use super::text::pairs;
use super::{Compression, Protocol, Settings, SettingsError};
use crate::pipeline::Signal;

/// Variables that are set to something: an empty one counts as not set, as the standard says.
struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|text| !text.trim().is_empty())
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match parse(text.trim()) {
            Some(value) => Ok(Some(value)),
            None => Err(SettingsError::new(name, &text, expected)),
        }
    }

    fn boolean(&self, name: &str) -> Result<Option<bool>, SettingsError> {
        self.read(name, "true or false is expected", |text| {
            match text.to_ascii_lowercase().as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            }
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, SettingsError> {
        let parse = |text: &str| text.parse().ok().filter(|number| *number > 0);
        self.read(name, "a whole number from 1 is expected", parse)
    }

    fn milliseconds(&self, name: &str) -> Result<Option<Duration>, SettingsError> {
        let parse = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let number = self.read(name, "a number of milliseconds from 1 is expected", parse)?;
        Ok(number.map(Duration::from_millis))
    }

    fn given<T>(&self, name: String, make: impl FnOnce(String) -> T) -> Option<Given<T>> {
        let value = make(self.text(&name)?.trim().to_owned());
        Some(Given { name, value })
    }

    /// The variables of one signal (`TRACES_`), or of all (nothing).
    fn layer(&self, signal: &str) -> Result<Layer, SettingsError> {
        let name = |what: &str| format!("OTEL_EXPORTER_OTLP_{signal}{what}");
        let protocol = name("PROTOCOL");
        let compression = name("COMPRESSION");
        let headers = name("HEADERS");
        Ok(Layer {
            endpoint: self.given(name("ENDPOINT"), Url),
            protocol: self
                .read(&protocol, Protocol::EXPECTED, Protocol::parse)?
                .map(|value| Given {
                    name: protocol,
                    value,
                }),
            headers: match self.text(&headers) {
                None => None,
                Some(text) => {
                    let pairs = pairs(&text).map_err(|why| SettingsError::secret(&headers, why))?;
                    Some(Given {
                        name: headers,
                        value: Headers(pairs),
                    })
                }
            },
            timeout: self.milliseconds(&name("TIMEOUT"))?,
            compression: self
                .read(&compression, "gzip or none is expected", Compression::parse)?
                .map(|value| Given {
                    name: compression,
                    value,
                }),
            certificate: self.given(name("CERTIFICATE"), Into::into),
            client_certificate: self.given(name("CLIENT_CERTIFICATE"), Into::into),
            client_key: self.given(name("CLIENT_KEY"), Into::into),
            insecure: self.boolean(&name("INSECURE"))?,
        })
    }
}

/// Reads them into settings that are as by default.
pub(super) fn read(
    settings: &mut Settings,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<(), SettingsError> {
    let variables = Variables(variables);
    settings.disabled = variables.boolean("OTEL_SDK_DISABLED")?.unwrap_or(false);
    settings.general = variables.layer("")?;
    for signal in Signal::ALL {
        settings.signals[signal.index()] = variables.layer(&format!("{}_", signal.variable()))?;
        // `none`, or exporters that are not ours. A list means each of them.
        let exporters = variables.text(&format!("OTEL_{}_EXPORTER", signal.variable()));
        if let Some(exporters) = exporters {
            let ours = exporters.split(',').any(|name| name.trim() == "otlp");
            settings.switched_off[signal.index()] = !ours;
        }
    }
    for (signal, prefix) in [(Signal::Traces, "OTEL_BSP_"), (Signal::Logs, "OTEL_BLRP_")] {
        let name = |what: &str| format!("{prefix}{what}");
        let batching = &mut settings.batching[signal.index()];
        if let Some(delay) = variables.milliseconds(&name("SCHEDULE_DELAY"))? {
            batching.delay = delay;
        }
        if let Some(timeout) = variables.milliseconds(&name("EXPORT_TIMEOUT"))? {
            batching.give_up_after = timeout;
        }
        batching.queue_items = variables.number(&name("MAX_QUEUE_SIZE"))?;
        if let Some(items) = variables.number(&name("MAX_EXPORT_BATCH_SIZE"))? {
            batching.items = items;
        }
    }
    if let Some(interval) = variables.milliseconds("OTEL_METRIC_EXPORT_INTERVAL")? {
        settings.metric_interval = interval;
    }
    let argument = variables.text(sampler::ARGUMENT);
    settings.sampler = match variables.text(sampler::VARIABLE) {
        Some(name) => Some(Sampler::parse(name.trim(), argument.as_deref())?),
        None => None,
    };
    settings.service_name = variables.text("OTEL_SERVICE_NAME");
    let name = "OTEL_RESOURCE_ATTRIBUTES";
    if let Some(text) = variables.text(name) {
        settings.resource_attributes =
            pairs(&text).map_err(|why| SettingsError::new(name, &text, why))?;
    }
    Ok(())
}
