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
//! | `OTEL_BSP_EXPORT_TIMEOUT` | a batch is tried for so long, and given up after it | 5 min |
//!
//! Other than the standard says, a value that cannot be used is an error and not ignored: an export that silently goes elsewhere
//! than it was told to is found too late. A value that is not UTF-8 is one of these.
//!
//! What is switched off is not read, so that this helps where something else is wrong: with `OTEL_SDK_DISABLED` nothing else is,
//! and of a signal whose exporter (`OTEL_TRACES_EXPORTER` and so on) is not `otlp`, no variable of its own.
//!
//! `OTEL_TRACES_SAMPLER` may name a sampler that is not known here, such as `jaeger_remote` or `xray`, and be meant for others in
//! the same process. Then the export begins, samples as if the variable were not set, and says so once.

use std::ffi::OsString;
use std::time::Duration;

use super::layer::{File, Given, Layer, Pairs, Url};
use super::sampler::{self, Sampler};
use super::text::pairs;
use super::{Compression, Protocol, Settings, SettingsError};
use crate::pipeline::Signal;
use crate::pipeline::problem::shown;

/// Variables that are set to something: an empty one counts as not set, as the standard says.
struct Variables<'a>(&'a dyn Fn(&str) -> Option<OsString>);

impl Variables<'_> {
    fn text(&self, name: &str) -> Result<Option<String>, SettingsError> {
        let Some(value) = (self.0)(name) else {
            return Ok(None);
        };
        match value.into_string() {
            Ok(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
            Err(_) => Err(SettingsError::secret(name, "text in UTF-8 is expected")),
        }
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.text(name)? else {
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

    fn given<T>(
        &self,
        name: String,
        make: impl FnOnce(String) -> T,
    ) -> Result<Option<Given<T>>, SettingsError> {
        let text = self.text(&name)?;
        Ok(text.map(|text| Given {
            name,
            value: make(text.trim().to_owned()),
        }))
    }

    fn pairs(&self, name: &str) -> Result<Option<Pairs>, SettingsError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match pairs(&text) {
            Ok(pairs) => Ok(Some(Pairs(pairs))),
            Err(why) => Err(SettingsError::secret(name, why)),
        }
    }

    /// The variables of one signal (`TRACES_`), or of all (nothing).
    fn layer(&self, signal: &str) -> Result<Layer, SettingsError> {
        let name = |what: &str| format!("OTEL_EXPORTER_OTLP_{signal}{what}");
        let protocol = name("PROTOCOL");
        let compression = name("COMPRESSION");
        let headers = name("HEADERS");
        let file = |text: String| File(text.into());
        Ok(Layer {
            endpoint: self.given(name("ENDPOINT"), Url)?,
            protocol: self
                .read(&protocol, Protocol::EXPECTED, Protocol::parse)?
                .map(|value| Given {
                    name: protocol,
                    value,
                }),
            headers: self.pairs(&headers)?.map(|value| Given {
                name: headers,
                value,
            }),
            timeout: self.milliseconds(&name("TIMEOUT"))?,
            compression: self
                .read(&compression, "gzip or none is expected", Compression::parse)?
                .map(|value| Given {
                    name: compression,
                    value,
                }),
            certificate: self.given(name("CERTIFICATE"), file)?,
            client_certificate: self.given(name("CLIENT_CERTIFICATE"), file)?,
            client_key: self.given(name("CLIENT_KEY"), file)?,
            insecure: self.boolean(&name("INSECURE"))?,
        })
    }
}

/// Reads them into settings that are as by default.
pub(super) fn read(
    settings: &mut Settings,
    variables: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(), SettingsError> {
    let variables = Variables(variables);
    settings.disabled = variables.boolean("OTEL_SDK_DISABLED")?.unwrap_or(false);
    if settings.disabled {
        return Ok(());
    }
    for signal in Signal::ALL {
        // `none`, or exporters that are not ours. A list means each of them.
        let exporters = variables.text(&format!("OTEL_{}_EXPORTER", signal.variable()))?;
        if let Some(exporters) = exporters {
            let ours = exporters.split(',').any(|name| name.trim() == "otlp");
            settings.switched_off[signal.index()] = !ours;
        }
    }
    if settings.switched_off == [true; 3] {
        return Ok(());
    }
    settings.general = variables.layer("")?;
    for signal in Signal::ALL {
        if !settings.is_switched_off(signal) {
            settings.signals[signal.index()] =
                variables.layer(&format!("{}_", signal.variable()))?;
            of_one_signal(settings, signal, &variables)?;
        }
    }
    settings.service_name = variables.text("OTEL_SERVICE_NAME")?;
    settings.resource_attributes = variables
        .pairs("OTEL_RESOURCE_ATTRIBUTES")?
        .unwrap_or_default();
    Ok(())
}

/// What there is for one signal and not for the others.
fn of_one_signal(
    settings: &mut Settings,
    signal: Signal,
    variables: &Variables<'_>,
) -> Result<(), SettingsError> {
    match signal {
        Signal::Traces => {
            batching(settings, signal, variables, "OTEL_BSP_")?;
            read_sampler(settings, variables)
        }
        Signal::Metrics => {
            let interval = variables.milliseconds("OTEL_METRIC_EXPORT_INTERVAL")?;
            settings.metric_interval = interval.unwrap_or(settings.metric_interval);
            Ok(())
        }
        Signal::Logs => batching(settings, signal, variables, "OTEL_BLRP_"),
    }
}

fn batching(
    settings: &mut Settings,
    signal: Signal,
    variables: &Variables<'_>,
    prefix: &str,
) -> Result<(), SettingsError> {
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
    Ok(())
}

fn read_sampler(settings: &mut Settings, variables: &Variables<'_>) -> Result<(), SettingsError> {
    let Some(name) = variables.text(sampler::VARIABLE)? else {
        return Ok(());
    };
    let argument = variables.text(sampler::ARGUMENT)?;
    settings.sampler = Sampler::parse(name.trim(), argument.as_deref())?;
    if settings.sampler.is_none() {
        settings.warnings.push(format!(
            "{} is {:?}, a sampler that is not known here (always_on, always_off, traceidratio, and each of them after parentbased_, are)",
            sampler::VARIABLE,
            shown(&name),
        ));
    }
    Ok(())
}
