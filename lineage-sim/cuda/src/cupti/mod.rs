//! CUPTI. All of it lives here, in libcuda; libcupti only forwards.

pub(crate) mod activity;
pub(crate) mod api;
pub(crate) mod attributes;
pub(crate) mod buffers;
pub(crate) mod client;
pub(crate) mod device_record;
pub(crate) mod functions;
pub(crate) mod host_record;
pub(crate) mod layout;
pub(crate) mod overhead;
pub(crate) mod parameters;
pub(crate) mod records;
pub(crate) mod result;
pub(crate) mod subscriber;
pub(crate) mod subscriber_functions;
pub(crate) mod time;
pub(crate) mod writer;
