//! CUPTI's records, decoded as far as the questions need them.

use lineage_core::observation::ApiDomain;
use lineage_cupti::sys::codes::kind;
use lineage_cupti::sys::layout::{self, api, external, kernel, memcpy, memset};
use lineage_cupti::work;
use serde::Serialize;

/// A record, and where it was.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// Buffers are numbered in the order in which they were given back.
    pub buffer: usize,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    Driver,
    Runtime,
}

impl Domain {
    fn as_core(self) -> ApiDomain {
        match self {
            Self::Driver => ApiDomain::Driver,
            Self::Runtime => ApiDomain::Runtime,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    Kernel,
    Copy,
    Set,
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    Api(Api),
    External(External),
    Operation(Operation),
    /// Of a kind that no question is about.
    Other {
        number: u32,
    },
}

/// The record of an API call. Times in ns, 0 where CUPTI has none.
#[derive(Debug, Clone, Serialize)]
pub struct Api {
    pub domain: Domain,
    pub cbid: u32,
    pub start: u64,
    pub end: u64,
    pub thread: u32,
    pub correlation: u32,
    pub result: u32,
}

impl Api {
    /// Whether the function asks for GPU work.
    pub fn is_work(&self) -> bool {
        work::function(self.domain.as_core(), self.cbid).is_some()
    }
}

/// An external correlation id.
#[derive(Debug, Clone, Serialize)]
pub struct External {
    pub external_kind: u32,
    pub id: u64,
    pub correlation: u32,
}

/// The record of an executed activity. Times in ns, 0 where CUPTI has none.
#[derive(Debug, Clone, Serialize)]
pub struct Operation {
    pub of: OperationKind,
    pub start: u64,
    pub end: u64,
    /// Kernels only.
    pub queued: u64,
    /// Kernels only.
    pub submitted: u64,
    pub stream: u32,
    pub correlation: u32,
}

impl Record {
    /// Reads a record from the bytes it begins with. A field that is not there is 0.
    pub fn decode(buffer: usize, bytes: &[u8]) -> Self {
        let record = layout::Record::new(bytes);
        let u32 = |offset| record.u32(offset).unwrap_or(0);
        let u64 = |offset| record.u64(offset).unwrap_or(0);
        let operation = |of, [start, end, stream, correlation]: [usize; 4]| {
            What::Operation(Operation {
                of,
                start: u64(start),
                end: u64(end),
                queued: if of == OperationKind::Kernel {
                    u64(kernel::QUEUED)
                } else {
                    0
                },
                submitted: if of == OperationKind::Kernel {
                    u64(kernel::SUBMITTED)
                } else {
                    0
                },
                stream: u32(stream),
                correlation: u32(correlation),
            })
        };
        let number = record.kind().unwrap_or(kind::INVALID);
        let what = match number {
            kind::DRIVER | kind::RUNTIME => What::Api(Api {
                domain: if number == kind::DRIVER {
                    Domain::Driver
                } else {
                    Domain::Runtime
                },
                cbid: u32(api::CBID),
                start: u64(api::START),
                end: u64(api::END),
                thread: u32(api::THREAD_ID),
                correlation: u32(api::CORRELATION_ID),
                result: u32(api::RETURN_VALUE),
            }),
            kind::EXTERNAL_CORRELATION => What::External(External {
                external_kind: u32(external::EXTERNAL_KIND),
                id: u64(external::EXTERNAL_ID),
                correlation: u32(external::CORRELATION_ID),
            }),
            kind::CONCURRENT_KERNEL => operation(
                OperationKind::Kernel,
                [
                    kernel::START,
                    kernel::END,
                    kernel::STREAM_ID,
                    kernel::CORRELATION_ID,
                ],
            ),
            kind::MEMCPY => operation(
                OperationKind::Copy,
                [
                    memcpy::START,
                    memcpy::END,
                    memcpy::STREAM_ID,
                    memcpy::CORRELATION_ID,
                ],
            ),
            kind::MEMSET => operation(
                OperationKind::Set,
                [
                    memset::START,
                    memset::END,
                    memset::STREAM_ID,
                    memset::CORRELATION_ID,
                ],
            ),
            number => What::Other { number },
        };
        Self { buffer, what }
    }

    pub fn api(&self) -> Option<&Api> {
        match &self.what {
            What::Api(api) => Some(api),
            _ => None,
        }
    }

    pub fn external(&self) -> Option<&External> {
        match &self.what {
            What::External(external) => Some(external),
            _ => None,
        }
    }

    pub fn operation(&self) -> Option<&Operation> {
        match &self.what {
            What::Operation(operation) => Some(operation),
            _ => None,
        }
    }
}

/// The records of calls that ask for GPU work.
pub fn work_calls(records: &[Record]) -> Vec<&Api> {
    records
        .iter()
        .filter_map(Record::api)
        .filter(|api| api.is_work())
        .collect()
}

/// Those of them that are calls of this domain.
pub fn work_calls_of(records: &[Record], domain: Domain) -> Vec<&Api> {
    work_calls(records)
        .into_iter()
        .filter(|api| api.domain == domain)
        .collect()
}

/// The external correlation ids.
pub fn externals(records: &[Record]) -> Vec<&External> {
    records.iter().filter_map(Record::external).collect()
}

/// The executed activities.
pub fn operations(records: &[Record]) -> Vec<&Operation> {
    records.iter().filter_map(Record::operation).collect()
}
