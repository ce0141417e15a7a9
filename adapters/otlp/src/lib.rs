//! Launch epochs and GPU operations in an OpenTelemetry collector.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
