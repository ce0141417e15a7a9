//! Every claimed verdict is right, end to end: a program calls the simulated driver, the session
//! records it at tier `explain` by CUPTI as it would on a device, the rows are joined, the judge
//! claims, and the simulator's truth says whether it was so. The truth splits each wait into causes
//! that sum; nothing of it is reachable through a driver or CUPTI function.
//!
//! Time is the simulator's virtual clock: each run is exact and the same. One thing is not recorded by
//! the product here but scripted, since a virtual clock knows no operating system: the switches of
//! the launching thread.
//!
//! Right here means right on the simulator. `lineage-core/tests/verdicts_are_right_or_unresolved` has
//! more combinations, on the bare device model and without a recorder.
#![cfg(target_os = "linux")]

mod driver;
mod evidence;
mod run;
mod scenario;
mod score;
mod under_each_switch;
mod with_all_evidence;
mod with_less;
#[path = "../../lineage-core/tests/verdicts_are_right_or_unresolved/without.rs"]
mod without;
mod world;
