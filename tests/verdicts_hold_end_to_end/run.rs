//! One session with every scenario in it, and what came of it.

use std::collections::BTreeMap;

use lineage_core::row::Row;
use lineage_core::source::Tier;
use lineage_core::verdict::{Judge, Life, Settings as Judging, VerdictKind};
use lineage_sim::{Config, CuptiVersion, Settings};

use crate::scenario::{Cause, Scenario, Stage, combinations};
use crate::score::{Score, Tolerance, Truth};
use crate::world::{Recorded, World};

/// A model with every mechanism that a scenario needs.
pub(crate) fn model() -> Settings {
    Settings::default()
        .dispatch_ns(800)
        .doorbell_ns(200)
        .call_ns(1_000)
        .work_call_ns(3_000)
        .graph_node_ns(500)
        .channels(4)
        .ring_entries(48)
        .multiprocessors(4)
        .copy_engines_to_device(1)
        .copy_engines_to_host(1)
        .lazy_loading_ns(300_000)
        .module_loading_ns(30_000)
        .compile_ns_per_kib(200_000)
}

/// The simulator of this model, which nobody else can have.
pub(crate) fn with(model: Settings) -> Config {
    Config::default()
        .cupti_version(CuptiVersion::V13_5)
        .exclusive_process(true)
        .copy_latency_ns(0)
        .copy_bytes_per_ns(1)
        .model(model)
}

pub(crate) fn usual() -> Config {
    with(model())
}

/// One run.
pub(crate) struct Run {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) recorded: Recorded,
    tolerance: Tolerance,
    /// What was said of each row.
    pub(crate) lives: Vec<Life>,
}

impl Run {
    /// Plays every scenario in one session, and judges what it recorded.
    pub(crate) fn new(config: Config, tier: Tier) -> Self {
        Self::of(&combinations(), config, tier)
    }

    /// Plays these.
    pub(crate) fn of(combinations: &[Vec<Cause>], config: Config, tier: Tier) -> Self {
        let model = &config.model;
        let tolerance = Tolerance {
            device_ns: model.device_tick_ns - 1 + model.device_skew_ns.unsigned_abs(),
            latency_ns: model.dispatch_ns + model.doorbell_ns,
            step_ns: model.device_step_ns.unsigned_abs(),
            tracer_ns: config.instrumentation_ns + config.buffer_request_ns,
        };
        let mut stage = Stage::new(World::new(config, tier));
        let play = |causes: &Vec<Cause>| stage.play(causes);
        let scenarios: Vec<Scenario> = combinations.iter().map(play).collect();
        let recorded = stage.world.finish();
        let report = &recorded.report;
        let lives = Judge::new(Judging::default()).judge(&report.observations, &report.rows);
        Self {
            scenarios,
            recorded,
            tolerance,
            lives,
        }
    }

    pub(crate) fn truth(&self) -> Truth<'_> {
        Truth::new(&self.recorded, self.tolerance)
    }

    /// All claims, and those on the operations that the scenarios are about, held against truth.
    pub(crate) fn score(&self) -> [Score; 2] {
        self.score_of(&self.recorded.report.rows, &self.lives)
    }

    /// The same for what was joined and judged anew.
    pub(crate) fn score_of(&self, rows: &[Row], lives: &[Life]) -> [Score; 2] {
        let truth = self.truth();
        let of_scenario = |scenario| truth.life(scenario, rows, lives);
        let looked_at = self.scenarios.iter().filter_map(of_scenario);
        [truth.score(rows, lives), truth.score(rows, looked_at)]
    }

    /// For how long each verdict was said of the operation that a scenario is about, in ns.
    pub(crate) fn said(&self, scenario: &Scenario) -> BTreeMap<VerdictKind, u64> {
        let rows = &self.recorded.report.rows;
        let life = self.truth().life(scenario, rows, &self.lives);
        let mut said = BTreeMap::new();
        for segment in life.iter().flat_map(|life| &life.segments) {
            *said.entry(segment.verdict.kind()).or_default() += segment.duration_ns();
        }
        said
    }
}

/// Says what came of it, and that nothing was wrong.
#[track_caller]
pub(crate) fn report(what: &str, [all, looked_at]: &[Score; 2]) {
    println!(
        "on the simulator, {what}: {} claims, {} wrong; {} of them on the operations looked at, of whose time \
         before the start {:.1} % is unresolved",
        all.claimed(),
        all.wrong.len(),
        looked_at.claimed(),
        looked_at.unresolved_share(),
    );
    assert_eq!(all.wrong, [""; 0], "{what}");
}
