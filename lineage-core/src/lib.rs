//! The core of launch lineage.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod carrier;
pub mod correlator;
mod epoch;
pub mod evidence;
pub mod fault;
pub mod hook;
#[cfg_attr(not(feature = "record"), path = "hot/off.rs")]
mod hot;
pub mod id;
#[cfg(feature = "jsonl")]
pub mod ledger;
pub mod observation;
pub mod row;
mod scope;
mod session;
pub mod source;
pub mod totals;

pub use epoch::{DeclareError, Epoch, HasEpoch};
pub use id::{Attribution, LaunchEpoch};
pub use scope::{LaunchScope, Scope, current, detached, enter_for_launch, launch, raw};
pub use session::{DeviceEvidence, Lineage, LineageBuilder, Report, StartError};
