//! Everything that can be set of an export.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use opentelemetry_sdk::trace::SpanData;

use crate::config::{Compression, Protocol, Sampler, Settings, SettingsError};
use crate::pipeline::{Problem, Signal};
use crate::sink::Otlp;
use crate::spans::{Redact, RootSampler, TextKind, Volume};

/// What a user does with every span.
pub(crate) type Inspect = dyn FnMut(&SpanData) + Send;

/// Settings of an [`Otlp`] export, with defaults for all of them.
///
/// What is set here comes before what the environment says.
#[must_use = "a builder does nothing until it is built"]
pub struct OtlpBuilder {
    pub(crate) settings: Settings,
    volume: Option<Volume>,
    pub(crate) hold_bytes: usize,
    pub(crate) hold_epochs: usize,
    pub(crate) resource_attributes: Vec<(String, String)>,
    pub(crate) shutdown_within: Duration,
    pub(crate) redact: Option<Box<Redact>>,
    pub(crate) inspect: Option<Box<Inspect>>,
}

impl Default for OtlpBuilder {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            volume: None,
            hold_bytes: 32 << 20,
            hold_epochs: 1 << 17,
            resource_attributes: Vec::new(),
            shutdown_within: Duration::from_secs(5),
            redact: None,
            inspect: None,
        }
    }
}

impl OtlpBuilder {
    /// As the standard variables of the environment say.
    ///
    /// # Errors
    ///
    /// If a variable has a value that cannot be used.
    pub fn from_env() -> Result<Self, SettingsError> {
        Ok(Self {
            settings: Settings::from_env()?,
            ..Self::default()
        })
    }

    /// Where all signals are sent, for example `http://127.0.0.1:4317`. For OTLP over HTTP the paths
    /// `/v1/traces` and so on are put after it.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.settings.endpoint(url);
        self
    }

    /// Where one signal is sent: this very URL.
    pub fn endpoint_of(mut self, signal: Signal, url: impl Into<String>) -> Self {
        self.settings.endpoint_of(signal, url);
        self
    }

    /// Does not export one signal, as where a collector takes traces alone.
    pub fn without(mut self, signal: Signal) -> Self {
        self.settings.without(signal);
        self
    }

    /// How OTLP is spoken.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.settings.protocol(protocol);
        self
    }

    /// Adds a header to every request, as for a token. Its value is never shown.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.header(name, value);
        self
    }

    /// How long one request may take, from connecting to the answer's last byte. By default 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout(timeout);
        self
    }

    /// What requests are compressed with. By default nothing.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.settings.compression(compression);
        self
    }

    /// The authorities, as PEM, that the collector's certificate may come from, in place of those that
    /// the system trusts.
    pub fn certificate_authorities(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.certificate_authorities(file);
        self
    }

    /// The certificate, with its chain, and the key that the collector is shown, both as PEM.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.settings.client_certificate(certificate, key);
        self
    }

    /// How many bytes may wait or be on their way. By default 64 MiB; what does not fit is dropped
    /// and counted.
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.settings.queue_bytes(bytes);
        self
    }

    /// When a batch is full, by bytes. By default 1 MiB.
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.settings.batch_bytes(bytes);
        self
    }

    /// How long a batch that is not full waits for more. By default 1 s.
    pub fn batch_delay(mut self, delay: Duration) -> Self {
        self.settings.batch_delay(delay);
        self
    }

    /// For how long a batch is tried from its first attempt on. By default 5 minutes.
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.settings.give_up_after(time);
        self
    }

    /// How often the metrics are exported. By default once a minute.
    pub fn metrics_every(mut self, interval: Duration) -> Self {
        self.settings.metric_interval = interval;
        self
    }

    /// Who is told what goes wrong, on the exporter's thread, at most once a minute per kind. By
    /// default it is a line to standard error.
    pub fn on_problem(mut self, hook: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        self.settings.on_problem(hook);
        self
    }

    /// How much of which work is exported. Where its [`roots`](Volume::roots) are undecided,
    /// `OTEL_TRACES_SAMPLER` decides, if it was read.
    pub fn volume(mut self, volume: Volume) -> Self {
        self.volume = Some(volume);
        self
    }

    /// What may be held until it is decided how much of it is exported, in bytes. By default 32 MiB;
    /// beyond it the oldest is decided by what is known.
    pub fn hold_bytes(mut self, bytes: usize) -> Self {
        self.hold_bytes = bytes;
        self
    }

    /// Adds an attribute to the resource.
    pub fn resource_attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.resource_attributes.push((name.into(), value.into()));
        self
    }

    /// How long the end of the session waits for what is not acknowledged yet. By default 5 s, which
    /// come after the time that `Lineage::shutdown` gives to the evidence.
    pub fn shutdown_within(mut self, time: Duration) -> Self {
        self.shutdown_within = time;
        self
    }

    /// Called for every text before it leaves the process; what it returns goes out in the text's
    /// place. See `docs/privacy.md` for all that does.
    ///
    /// ```
    /// use lineage_otlp::{Otlp, TextKind};
    ///
    /// let otlp = Otlp::builder().redact(|kind, _| match kind {
    ///     TextKind::CallSite | TextKind::ThreadName => Some("hidden".into()),
    ///     _ => None,
    /// });
    /// # let _ = otlp.build();
    /// ```
    pub fn redact(
        mut self,
        redact: impl Fn(TextKind, &str) -> Option<Cow<'static, str>> + Send + 'static,
    ) -> Self {
        self.redact = Some(Box::new(redact));
        self
    }

    /// Called for every span before it goes into the queue, on the session's drain thread: for tests,
    /// and for a copy to another exporter.
    pub fn inspect(mut self, inspect: impl FnMut(&SpanData) + Send + 'static) -> Self {
        self.inspect = Some(Box::new(inspect));
        self
    }

    /// The sink.
    pub fn build(self) -> Otlp {
        Otlp::new(self)
    }

    /// What was set; of work without a parent, if that was not, what the environment says.
    pub(crate) fn volume_or_environments(&self) -> Volume {
        let mut volume = self.volume.unwrap_or_default();
        if volume.roots == RootSampler::Undecided {
            volume.roots = match self.settings.sampler {
                None => RootSampler::Undecided,
                Some(Sampler::AlwaysOn | Sampler::ParentBasedAlwaysOn) => RootSampler::AlwaysOn,
                Some(Sampler::AlwaysOff | Sampler::ParentBasedAlwaysOff) => RootSampler::AlwaysOff,
                Some(Sampler::TraceIdRatio(ratio) | Sampler::ParentBasedTraceIdRatio(ratio)) => {
                    RootSampler::Ratio(ratio)
                }
            };
        }
        volume
    }
}

impl fmt::Debug for OtlpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpBuilder")
            .field("settings", &self.settings)
            .field("volume", &self.volume)
            .field("hold_bytes", &self.hold_bytes)
            .field("redacts", &self.redact.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::Detail;

    fn roots(sampler: &str, volume: Option<Volume>) -> RootSampler {
        let settings = Settings::from_variables(|name| match name {
            "OTEL_TRACES_SAMPLER" => Some(sampler.to_owned()),
            "OTEL_TRACES_SAMPLER_ARG" => Some("0.25".to_owned()),
            _ => None,
        });
        let builder = OtlpBuilder {
            settings: settings.expect("they can be used"),
            volume,
            ..OtlpBuilder::default()
        };
        builder.volume_or_environments().roots
    }

    #[test]
    fn the_environment_samples_roots_whatever_the_volume_unless_that_says_how() {
        for volume in [None, Some(Volume::of_all(Detail::Everything))] {
            let of = |sampler| roots(sampler, volume);
            assert_eq!(of("always_off"), RootSampler::AlwaysOff);
            assert_eq!(of("parentbased_always_on"), RootSampler::AlwaysOn);
            assert_eq!(of("traceidratio"), RootSampler::Ratio(0.25));
        }
        let own = Volume {
            roots: RootSampler::AlwaysOn,
            ..Volume::default()
        };
        assert_eq!(roots("always_off", Some(own)), RootSampler::AlwaysOn);
    }
}
