//! The tracing subscriber: the registry, the numbers of the requests' spans, and the layer of
//! whichever lineage session is running.

use launch_lineage::LineageLayer;
use tracing_subscriber::layer::{Layered, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, reload};

use crate::baseline::NumberLayer;

/// The process's subscriber.
pub struct Subscriber {
    layer: reload::Handle<Option<LineageLayer>, Layered<NumberLayer, Registry>>,
}

impl Subscriber {
    /// Makes it the global one. Call it once.
    pub fn install() -> Self {
        let (layer, handle) = reload::Layer::new(None);
        tracing_subscriber::registry()
            .with(NumberLayer)
            .with(layer)
            .init();
        Self { layer: handle }
    }

    /// Puts this session's layer in the place of the one before, between two cells.
    pub fn use_layer(&self, layer: LineageLayer) -> Result<(), reload::Error> {
        self.layer.reload(Some(layer))
    }
}
