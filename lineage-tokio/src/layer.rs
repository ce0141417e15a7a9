//! The tracing layer: an epoch per span, current wherever the span is entered.

use lineage_core::{Epoch, Lineage};
use tracing_core::Subscriber;
use tracing_core::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::entered::{self, LayerKey};
use crate::task_id;

/// The field that makes a span declare an epoch.
pub const EPOCH_FIELD: &str = "launch_epoch";

/// The epoch of a span, in its extensions. A type of our own: extensions are keyed by type and
/// shared by all layers of the subscriber.
pub(crate) struct SpanEpoch {
    pub(crate) epoch: Epoch,
    /// The span declared it, and did not inherit it.
    declared: bool,
}

/// The epoch that a span declared; `None` if it inherited one, or has none.
///
/// For layers that know more of the span, as which OpenTelemetry span it is. Must not be called while
/// the span's extensions are borrowed mutably.
pub fn declared_by<R>(span: &SpanRef<'_, R>) -> Option<Epoch>
where
    R: for<'a> LookupSpan<'a>,
{
    let extensions = span.extensions();
    let held = extensions.get::<SpanEpoch>()?;
    held.declared.then(|| held.epoch.clone())
}

/// A [`tracing_subscriber::Layer`] that ties launch epochs to spans.
///
/// * A span that has the field `launch_epoch` **declares** an epoch when it is created, under the
///   span's name and call site. The field's value is not read: in `#[instrument(fields(launch_epoch))]`
///   it has none, and in `info_span!("request", launch_epoch = tracing::field::Empty)` it is empty.
///   Where an epoch is current already the new one is a fork of it.
/// * Any other span **inherits**: the epoch that is current where the span is created or, for a
///   span with an explicit parent, the epoch of that parent. A span with `parent: None` inherits
///   nothing.
/// * Wherever the span is entered (with `#[instrument]` and `.instrument(span)` that is every
///   single poll, on whichever worker, and the drop of the future) its epoch is current on that
///   thread until the span is exited. Entering a span without an epoch changes nothing.
/// * The epoch is held by the span and let go when the span closes.
///
/// What is current is lineage-core's own thread-local cell and never derived from
/// [`tracing::Span::current`]: the registry skips a span that is already on the thread's stack, so
/// after A, B, A it still says B, and a launch there would go to the wrong request.
///
/// # Filters, reload, other layers
///
/// * A span that a **global** filter disables (an `EnvFilter` beside the layers, a maximum level)
///   exists for no layer: it declares nothing, and the epoch that is current stays. Work that must
///   not depend on filters uses [`FutureExt::in_epoch`](crate::FutureExt::in_epoch), which needs no
///   subscriber. A filter of this layer alone, `lineage.layer().with_filter(…)`, works as for any
///   layer: what it disables declares nothing here.
/// * A layer may be swapped by [`tracing_subscriber::reload`]. What the old one left entered on a
///   thread is dropped there with `W07` at the thread's next lineage event: a span of a layer that
///   took its place, or the poll of a carrier of this crate. Nothing panics.
/// * Beside `tracing-opentelemetry` the order of both layers does not matter. This layer never asks
///   for a span's OpenTelemetry context, which would start the span and make a later `set_parent`
///   fail.
/// * `follows_from` has no effect: it says that one span caused another, not whose work it is.
///
/// Made by [`LineageExt::layer`].
///
/// # Example
///
/// ```
/// use lineage_core::Lineage;
/// use lineage_tokio::LineageExt as _;
/// use tracing_subscriber::prelude::*;
///
/// let lineage = Lineage::builder().start()?;
/// let subscriber = tracing_subscriber::registry().with(lineage.layer());
///
/// tracing::subscriber::with_default(subscriber, || {
///     let request = tracing::info_span!("request", launch_epoch = tracing::field::Empty);
///     request.in_scope(|| assert_eq!(lineage_core::current().epoch().is_some(), lineage.is_recording()));
///     assert!(lineage_core::current().epoch().is_none());
/// });
/// # Ok::<(), lineage_core::StartError>(())
/// ```
#[derive(Debug)]
#[must_use = "a layer does nothing until it is part of a subscriber"]
pub struct LineageLayer {
    key: LayerKey,
    records: bool,
}

/// Makes tracing layers of a running [`Lineage`].
pub trait LineageExt {
    /// A layer for a subscriber that is built on [`tracing_subscriber::Registry`]. Where recording
    /// is off the layer does nothing.
    fn layer(&self) -> LineageLayer;
}

impl LineageExt for Lineage {
    fn layer(&self) -> LineageLayer {
        task_id::install_hook();
        LineageLayer {
            key: LayerKey::new(),
            records: self.is_recording(),
        }
    }
}

impl LineageLayer {
    /// Whether there is nothing to do. Known when compiling, without the feature `record`.
    #[inline]
    fn is_off(&self) -> bool {
        !cfg!(feature = "record") || !self.records
    }

    /// What a new span inherits, or forks from.
    fn inherited<S>(attributes: &Attributes<'_>, id: &Id, context: &Context<'_, S>) -> Epoch
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        if attributes.is_contextual() {
            // What is current on the thread, and not the parent span's own epoch: a batch that was
            // entered inside a request's span is what its child spans work for.
            return Epoch::current();
        }
        let Some(parent) = context.span(id).and_then(|span| span.parent()) else {
            return Epoch::inert();
        };
        let extensions = parent.extensions();
        let held = extensions.get::<SpanEpoch>();
        held.map_or_else(Epoch::inert, |held| held.epoch.clone())
    }
}

impl<S> Layer<S> for LineageLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if self.is_off() {
            return;
        }
        let inherited = Self::inherited(attributes, id, &context);
        let metadata = attributes.metadata();
        let declared = metadata.fields().field(EPOCH_FIELD).is_some();
        let epoch = if !declared {
            inherited
        } else {
            // A span knows no column: 0 says so.
            let (file, line) = (metadata.file().unwrap_or(""), metadata.line().unwrap_or(0));
            if inherited.is_inert() {
                Epoch::declare_at(metadata.name(), file, line, 0)
            } else {
                inherited.fork_at(metadata.name(), file, line, 0)
            }
        };
        if epoch.is_inert() {
            return;
        }
        let Some(span) = context.span(id) else {
            return;
        };
        let mut extensions = span.extensions_mut();
        if extensions.get_mut::<SpanEpoch>().is_none() {
            // A second layer of this kind in one subscriber finds the first one's epoch and leaves
            // it. `replace`, since `insert` panics where a value is there.
            extensions.replace(SpanEpoch { epoch, declared });
        }
    }

    #[inline]
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if self.is_off() {
            return;
        }
        let Some(span) = context.span(id) else {
            return;
        };
        let extensions = span.extensions();
        if let Some(held) = extensions.get::<SpanEpoch>() {
            entered::enter(&self.key, id.into_u64(), &held.epoch);
        }
    }

    #[inline]
    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        if !self.is_off() {
            entered::exit(&self.key, id.into_u64());
        }
    }

    // There is no `on_close`: the registry drops a span's extensions when the span closes, and with
    // them the epoch's handle. Looking the span up once more would only cost.
}
