//! The core of launch lineage.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod evidence;
pub mod fault;
pub mod id;
pub mod observation;
pub mod row;
pub mod source;
