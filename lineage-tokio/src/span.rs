//! The epoch of a span, for those who hold the span.

use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use tracing::Span;
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan as _;

use crate::layer::{LineageLayer, SpanEpoch};

/// Asks a [`tracing::Span`] for its epoch.
pub trait SpanExt {
    /// The identity of the span's epoch; `None` if the span neither declared nor inherited one (as
    /// where recording is off).
    ///
    /// # Errors
    ///
    /// [`SpanEpochError`] where the question cannot be answered: the span is disabled, or its
    /// subscriber has no [`LineageLayer`](crate::LineageLayer).
    fn launch_epoch(&self) -> Result<Option<LaunchEpoch>, SpanEpochError>;

    /// A handle of the span's epoch, which keeps the epoch alive; inert if the span has none.
    ///
    /// # Errors
    ///
    /// As [`launch_epoch`](Self::launch_epoch).
    fn epoch(&self) -> Result<Epoch, SpanEpochError>;
}

/// Why a span cannot be asked for its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no epoch of this span can be had: {kind}")]
pub struct SpanEpochError {
    kind: SpanEpochErrorKind,
}

impl SpanEpochError {
    /// What is in the way.
    pub fn kind(&self) -> SpanEpochErrorKind {
        self.kind
    }
}

/// What is in the way of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpanEpochErrorKind {
    /// A filter disabled the span, or there is no subscriber.
    #[error("the span is disabled, so no layer has seen it")]
    SpanDisabled,
    /// The subscriber is not built on [`tracing_subscriber::Registry`].
    #[error("its subscriber is not built on tracing_subscriber's registry")]
    NoRegistry,
    /// The span has no epoch, and no [`LineageLayer`](crate::LineageLayer) is to be seen that could
    /// have given it one: it is missing, or inside a `reload::Layer`, which hides it.
    #[error("its subscriber has no LineageLayer, or hides it inside a reload layer")]
    NoLayer,
}

impl SpanExt for Span {
    fn launch_epoch(&self) -> Result<Option<LaunchEpoch>, SpanEpochError> {
        with_epoch(self, |epoch| epoch.and_then(Epoch::id))
    }

    fn epoch(&self) -> Result<Epoch, SpanEpochError> {
        with_epoch(self, |epoch| epoch.map_or_else(Epoch::inert, Epoch::clone))
    }
}

fn with_epoch<R>(span: &Span, read: impl FnOnce(Option<&Epoch>) -> R) -> Result<R, SpanEpochError> {
    let answer = span.with_subscriber(|(id, dispatch)| {
        let registry = dispatch
            .downcast_ref::<Registry>()
            .ok_or(SpanEpochErrorKind::NoRegistry)?;
        if let Some(data) = registry.span(id) {
            let extensions = data.extensions();
            if let Some(held) = extensions.get::<SpanEpoch>() {
                return Ok(read(Some(&held.epoch)));
            }
        }
        if dispatch.is::<LineageLayer>() {
            Ok(read(None))
        } else {
            Err(SpanEpochErrorKind::NoLayer)
        }
    });
    answer
        .unwrap_or(Err(SpanEpochErrorKind::SpanDisabled))
        .map_err(|kind| SpanEpochError { kind })
}
