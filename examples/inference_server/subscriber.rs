//! The tracing subscriber: the registry, and the layer of whichever lineage session is running.
//!
//! A server with one session for its whole life writes one line instead:
//! `tracing_subscriber::registry().with(lineage.layer()).init()`.

use launch_lineage::LineageLayer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, reload};

/// The process's subscriber.
pub struct Subscriber {
    layer: reload::Handle<Option<LineageLayer>, Registry>,
}

impl Subscriber {
    /// Makes it the global one. Call it once.
    pub fn install() -> Self {
        let (layer, handle) = reload::Layer::new(None);
        tracing_subscriber::registry().with(layer).init();
        Self { layer: handle }
    }

    /// Puts this session's layer in the place of the one before, between two runs.
    pub fn use_layer(&self, layer: LineageLayer) -> Result<(), reload::Error> {
        self.layer.reload(Some(layer))
    }
}
