use super::SettingsError;

/// `OTEL_TRACES_SAMPLER` with its argument.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sampler {
    /// `always_on`.
    AlwaysOn,
    /// `always_off`.
    AlwaysOff,
    /// `traceidratio`: this share of traces, from 0 to 1.
    TraceIdRatio(f64),
    /// `parentbased_always_on`, the standard's default: as the parent is, and where there is none, all.
    ParentBasedAlwaysOn,
    /// `parentbased_always_off`: as the parent is, and where there is none, none.
    ParentBasedAlwaysOff,
    /// `parentbased_traceidratio`: as the parent is, and where there is none, this share.
    ParentBasedTraceIdRatio(f64),
}

pub(crate) const VARIABLE: &str = "OTEL_TRACES_SAMPLER";
pub(crate) const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";

impl Sampler {
    /// `None` for one that we do not know, such as those that ask a server.
    pub(crate) fn parse(name: &str, argument: Option<&str>) -> Result<Option<Self>, SettingsError> {
        let ratio = || {
            let text = argument.unwrap_or("1");
            let parsed: Option<f64> = text.trim().parse().ok();
            parsed
                .filter(|ratio| (0.0..=1.0).contains(ratio))
                .ok_or_else(|| {
                    SettingsError::new(ARGUMENT, text, "a number from 0 to 1 is expected")
                })
        };
        Ok(Some(match name {
            "always_on" => Self::AlwaysOn,
            "always_off" => Self::AlwaysOff,
            "traceidratio" => Self::TraceIdRatio(ratio()?),
            "parentbased_always_on" => Self::ParentBasedAlwaysOn,
            "parentbased_always_off" => Self::ParentBasedAlwaysOff,
            "parentbased_traceidratio" => Self::ParentBasedTraceIdRatio(ratio()?),
            _ => return Ok(None),
        }))
    }
}
