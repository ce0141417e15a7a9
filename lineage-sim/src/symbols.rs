//! Which functions a version of CUPTI lacks, and a `libcupti.so` without them.
//!
//! The built library exports every function that any version has. For a version, a copy is made in which the names of
//! what it lacks are blanked: the dynamic loader then finds no such function, as in the real library.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::version::CuptiVersion;

/// Functions by the first of the simulated versions that has them, as the real libraries of 12.0, 12.4, 12.8, 12.9, 13.0, 13.1, 13.4
/// and 13.5 export them (`nm -D`). What is not listed is in all.
#[rustfmt::skip]
static SINCE: &[(CuptiVersion, &[&str])] = &[
    (CuptiVersion::V12_4, &[
            "cuptiActivityEnableDeviceGraph", "cuptiGetErrorMessage", "cuptiGetGlobalCallbackState",
            "cuptiGetGraphExecId", "cuptiSassMetricsDisable", "cuptiSassMetricsEnable", "cuptiSassMetricsFlushData",
            "cuptiSassMetricsGetDataProperties", "cuptiSassMetricsGetMetrics", "cuptiSassMetricsGetNumOfMetrics",
        "cuptiSassMetricsGetProperties", "cuptiSassMetricsSetConfig", "cuptiSassMetricsUnsetConfig",
    ]),
    (CuptiVersion::V12_9, &[
            "cuptiActivityEnableAllSyncRecords", "cuptiActivityEnableAllocationSource",
            "cuptiActivityEnableDriverApi", "cuptiActivityEnableHWTrace", "cuptiActivityEnableRuntimeApi",
            "cuptiEnableCigMode", "cuptiPmSamplingCounterDataGetSampleInfo",
            "cuptiPmSamplingCounterDataImageInitialize", "cuptiPmSamplingDecodeData", "cuptiPmSamplingDisable",
            "cuptiPmSamplingEnable", "cuptiPmSamplingGetCounterAvailability", "cuptiPmSamplingGetCounterDataInfo",
            "cuptiPmSamplingGetCounterDataSize", "cuptiPmSamplingSetConfig", "cuptiPmSamplingStart",
            "cuptiPmSamplingStop", "cuptiProfilerHostConfigAddMetrics", "cuptiProfilerHostDeinitialize",
            "cuptiProfilerHostEvaluateToGpuValues", "cuptiProfilerHostGetBaseMetrics",
            "cuptiProfilerHostGetConfigImage", "cuptiProfilerHostGetConfigImageSize",
            "cuptiProfilerHostGetMaxNumHardwareMetricsPerPass", "cuptiProfilerHostGetMetricProperties",
            "cuptiProfilerHostGetNumOfPasses", "cuptiProfilerHostGetRangeName", "cuptiProfilerHostGetSubMetrics",
            "cuptiProfilerHostGetSupportedChips", "cuptiProfilerHostInitialize", "cuptiProfilerIsPassCollected",
            "cuptiRangeProfilerCounterDataGetRangeInfo", "cuptiRangeProfilerCounterDataImageInitialize",
            "cuptiRangeProfilerDecodeData", "cuptiRangeProfilerDisable", "cuptiRangeProfilerEnable",
            "cuptiRangeProfilerGetCounterDataInfo", "cuptiRangeProfilerGetCounterDataSize",
            "cuptiRangeProfilerPopRange", "cuptiRangeProfilerPushRange", "cuptiRangeProfilerSetConfig",
        "cuptiRangeProfilerStart", "cuptiRangeProfilerStop",
    ]),
    (CuptiVersion::V13_0, &[
            "cuptiActivityEnableCudaEventDeviceTimestamps", "cuptiActivityGetNvtxExtPayloadAttr",
        "cuptiActivityGetNvtxExtPayloadEntryTypeInfo", "cuptiNvtxExtensionInitialize", "cuptiSubscribe_v2",
    ]),
    (CuptiVersion::V13_4, &[
            "cuptiActivityDisable_v2", "cuptiActivityEnableAndDump_v2", "cuptiActivityEnableDriverApi_v2",
            "cuptiActivityEnableRawTimestamps_v2", "cuptiActivityEnableRuntimeApi_v2", "cuptiActivityEnable_v2",
            "cuptiActivityGetAttribute_v2", "cuptiActivityGetEnabledKinds", "cuptiActivityGetNextRecord_v2",
            "cuptiActivityGetNumDroppedRecords_v2", "cuptiActivityGetStructSize",
            "cuptiActivityPopExternalCorrelationId_v2", "cuptiActivityPushExternalCorrelationId_v2",
            "cuptiActivityRegisterCallbacks_v2", "cuptiActivitySetAttribute_v2", "cuptiClockControlGetStatus",
            "cuptiClockControlLock", "cuptiClockControlUnlock", "cuptiGetCudaEventId", "cuptiGetEnabledCallbacks",
            "cuptiGetTimestamp_v2", "cuptiIsTracingSessionRunning", "cuptiProfilerHostGetMetricsInSinglePassSet",
            "cuptiProfilerHostGetSinglePassSets", "cuptiProfilerHostSetDevicePartitionInfo",
        "cuptiRangeProfilerGetDevicePartitionInfo",
    ]),
];

/// Functions by the first version that has them no more.
#[rustfmt::skip]
static GONE_SINCE: &[(CuptiVersion, &[&str])] = &[
    (CuptiVersion::V12_4, &[
        "cuptiDeviceGetTimestamp",
    ]),
    (CuptiVersion::V13_0, &[
        "cuptiDisableNonOverlappingMode", "cuptiEnableNonOverlappingMode",
    ]),
];

/// The functions that a version of CUPTI does not export.
pub(crate) fn missing_in(version: CuptiVersion) -> impl Iterator<Item = &'static str> {
    let later = SINCE.iter().filter(move |(since, _)| version < *since);
    let gone = GONE_SINCE
        .iter()
        .filter(move |(since, _)| version >= *since);
    later
        .chain(gone)
        .flat_map(|(_, names)| names.iter().copied())
}

/// A file that is deleted when it is no longer needed: what was loaded from it stays loaded.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is in the folder for temporary files, where nobody minds it if this fails.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A copy of a library that exports everything but these.
pub(crate) fn copy_without(library: &Path, missing: &[&str]) -> std::io::Result<Temporary> {
    let mut bytes = std::fs::read(library)?;
    blank(&mut bytes, missing);
    for attempt in 0..1_000 {
        let name = format!("lineage-sim-{}-{attempt}-libcupti.so", std::process::id());
        let path = std::env::temp_dir().join(name);
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                let copy = Temporary(path);
                file.write_all(&bytes)?;
                return Ok(copy);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// Overwrites the first letter of names in a library's string tables. The hash by which the loader looks a name up stays, and leads
/// to a name that is another one.
fn blank(bytes: &mut [u8], names: &[&str]) {
    if names.is_empty() {
        return;
    }
    // Names stand between zeros; all begin with the same letters, so that most places are passed over at once.
    let mut at = 0;
    while let Some(zero) = bytes[at..].iter().position(|byte| *byte == 0) {
        at += zero + 1;
        if !bytes[at..].starts_with(b"cupti") {
            continue;
        }
        let Some(length) = bytes[at..].iter().position(|byte| *byte == 0) else {
            return;
        };
        if names
            .iter()
            .any(|name| name.as_bytes() == &bytes[at..at + length])
        {
            bytes[at] = b'-';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_are_blanked_and_nothing_else() {
        let mut bytes = b"\0cuptiOne\0cuptiOneMore\0xcuptiOne\0cuptiTwo\0".to_vec();
        blank(&mut bytes, &["cuptiOne", "cuptiTwo", "cuptiThree"]);
        assert_eq!(bytes, b"\0-uptiOne\0cuptiOneMore\0xcuptiOne\0-uptiTwo\0");
    }
}
