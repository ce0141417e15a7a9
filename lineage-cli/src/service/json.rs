//! The JSON object. Its fields are stable: `schema` rises when one changes its meaning or goes.

use std::path::Path;

use lineage_core::service::{CollectiveSkew, DeviceFigures, TokenFigures};
use serde::Serialize;

use super::Figures;
use crate::text::json_line;

/// Schema of the object.
pub(super) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    file: String,
    recorder: &'a str,
    notes: &'a [String],
    percentiles: &'static str,
    tokens: &'a TokenFigures,
    devices: Vec<Device>,
    collectives: &'a [CollectiveSkew],
    not_kept: u64,
}

#[derive(Serialize)]
struct Device {
    #[serde(flatten)]
    figures: DeviceFigures,
    exposed_host_ns: u64,
    best_speedup: Option<f64>,
}

/// A file's figures, on a line.
pub(super) fn object(file: &Path, figures: &Figures) -> String {
    let devices = figures.devices.iter().map(|&figures| Device {
        figures,
        exposed_host_ns: figures.exposed_host_ns(),
        best_speedup: figures.best_speedup(),
    });
    json_line(&Object {
        schema: SCHEMA,
        file: file.display().to_string(),
        recorder: &figures.about.recorder,
        notes: &figures.about.notes,
        percentiles: "nearest_rank",
        tokens: &figures.tokens,
        devices: devices.collect(),
        collectives: &figures.collectives,
        not_kept: figures.not_kept,
    })
}
