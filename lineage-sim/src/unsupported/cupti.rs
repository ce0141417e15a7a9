//! CUPTI functions that exist and answer `CUPTI_ERROR_NOT_SUPPORTED`: every other function
//! that `libcupti.so` of CUPTI 12.9 or 13.5 exports or its headers declare. Names only. The simulated
//! libcupti compiles this file, too: what is listed is what is exported.

/// Hands the list to a macro.
macro_rules! unsupported_cupti_functions {
    ($with:ident) => {
        $with! {
            cuptiActivityConfigurePCSampling cuptiActivityConfigureUnifiedMemoryCounter
            cuptiActivityDisableContext cuptiActivityEnableAllocationSource
            cuptiActivityEnableAndDump cuptiActivityEnableAndDump_v2
            cuptiActivityEnableBufferSummary cuptiActivityEnableContext
            cuptiActivityEnableDeviceGraph
            cuptiActivityEnableHWTrace cuptiActivityEnableLaunchAttributes
            cuptiActivityEnableRawTimestamps cuptiActivityEnableRawTimestamps_v2
            cuptiActivityFlush
            cuptiActivityGetEnabledKinds
            cuptiActivityGetNvtxExtPayloadAttr
            cuptiActivityGetNvtxExtPayloadEntryTypeInfo
            cuptiClockControlGetStatus cuptiClockControlLock cuptiClockControlUnlock
            cuptiComputeCapabilitySupported cuptiDeviceEnumEventDomains cuptiDeviceEnumMetrics
            cuptiDeviceGetAttribute cuptiDeviceGetChipName cuptiDeviceGetEventDomainAttribute
            cuptiDeviceGetNumEventDomains cuptiDeviceGetNumMetrics cuptiDeviceGetTimestamp
            cuptiDeviceSupported cuptiDeviceVirtualizationMode cuptiDisableKernelReplayMode
            cuptiDisableLibcuda cuptiDisableNonOverlappingMode cuptiEnableCigMode
            cuptiEnableKernelReplayMode cuptiEnableNonOverlappingMode cuptiEnumEventDomains
            cuptiEnumMetrics cuptiEventDomainEnumEvents cuptiEventDomainGetAttribute
            cuptiEventDomainGetNumEvents cuptiEventGetAttribute cuptiEventGetIdFromName
            cuptiEventGroupAddEvent cuptiEventGroupCreate cuptiEventGroupDestroy
            cuptiEventGroupDisable cuptiEventGroupEnable cuptiEventGroupGetAttribute
            cuptiEventGroupReadAllEvents cuptiEventGroupReadEvent cuptiEventGroupRemoveAllEvents
            cuptiEventGroupRemoveEvent cuptiEventGroupResetAllEvents cuptiEventGroupSetAttribute
            cuptiEventGroupSetDisable cuptiEventGroupSetEnable cuptiEventGroupSetsCreate
            cuptiEventGroupSetsDestroy cuptiGetAutoBoostState cuptiGetCubinCrc cuptiGetCudaEventId
            cuptiGetEnabledCallbacks cuptiGetErrorMessage cuptiGetGlobalCallbackState
            cuptiGetNumContexts cuptiGetNumEventDomains cuptiGetNumMetrics
            cuptiGetRecommendedBufferSize cuptiGetSassToSourceCorrelation
            cuptiIsTracingSessionRunning cuptiKernelReplaySubscribeUpdate
            cuptiMetricCreateEventGroupSets cuptiMetricEnumEvents cuptiMetricEnumProperties
            cuptiMetricGetAttribute cuptiMetricGetIdFromName cuptiMetricGetNumEvents
            cuptiMetricGetNumProperties cuptiMetricGetRequiredEventGroupSets cuptiMetricGetValue
            cuptiMetricGetValue2 cuptiNvtxExtensionInitialize cuptiNvtxInitialize
            cuptiNvtxInitialize2 cuptiOpenACCInitialize cuptiOpenMpInitialize
            cuptiOpenMpInitialize_v2 cuptiPCSamplingDisable cuptiPCSamplingEnable
            cuptiPCSamplingGetConfigurationAttribute cuptiPCSamplingGetData
            cuptiPCSamplingGetNumStallReasons cuptiPCSamplingGetStallReasons
            cuptiPCSamplingSetConfigurationAttribute cuptiPCSamplingStart cuptiPCSamplingStop
            cuptiPmSamplingCounterDataGetSampleInfo cuptiPmSamplingCounterDataImageInitialize
            cuptiPmSamplingDecodeData cuptiPmSamplingDisable cuptiPmSamplingEnable
            cuptiPmSamplingGetCounterAvailability cuptiPmSamplingGetCounterDataInfo
            cuptiPmSamplingGetCounterDataSize cuptiPmSamplingSetConfig cuptiPmSamplingStart
            cuptiPmSamplingStop cuptiProfilerBeginPass cuptiProfilerBeginSession
            cuptiProfilerCounterDataImageCalculateScratchBufferSize
            cuptiProfilerCounterDataImageCalculateSize cuptiProfilerCounterDataImageInitialize
            cuptiProfilerCounterDataImageInitializeScratchBuffer cuptiProfilerDeInitialize
            cuptiProfilerDeviceSupported cuptiProfilerDisableProfiling cuptiProfilerEnableProfiling
            cuptiProfilerEndPass cuptiProfilerEndSession cuptiProfilerFlushCounterData
            cuptiProfilerGetCounterAvailability cuptiProfilerHostConfigAddMetrics
            cuptiProfilerHostDeinitialize cuptiProfilerHostEvaluateToGpuValues
            cuptiProfilerHostGetBaseMetrics cuptiProfilerHostGetConfigImage
            cuptiProfilerHostGetConfigImageSize cuptiProfilerHostGetMaxNumHardwareMetricsPerPass
            cuptiProfilerHostGetMetricProperties cuptiProfilerHostGetMetricsInSinglePassSet
            cuptiProfilerHostGetNumOfPasses cuptiProfilerHostGetRangeName
            cuptiProfilerHostGetSinglePassSets cuptiProfilerHostGetSubMetrics
            cuptiProfilerHostGetSupportedChips cuptiProfilerHostInitialize
            cuptiProfilerHostSetDevicePartitionInfo cuptiProfilerInitialize
            cuptiProfilerIsPassCollected cuptiProfilerPopRange cuptiProfilerPushRange
            cuptiProfilerSetConfig cuptiProfilerUnsetConfig
            cuptiRangeProfilerCounterDataGetRangeInfo cuptiRangeProfilerCounterDataImageInitialize
            cuptiRangeProfilerDecodeData cuptiRangeProfilerDisable cuptiRangeProfilerEnable
            cuptiRangeProfilerGetCounterDataInfo cuptiRangeProfilerGetCounterDataSize
            cuptiRangeProfilerGetDevicePartitionInfo cuptiRangeProfilerPopRange
            cuptiRangeProfilerPushRange cuptiRangeProfilerSetConfig cuptiRangeProfilerStart
            cuptiRangeProfilerStop cuptiRegisterComputeCrcCallback cuptiSassMetricsDisable
            cuptiSassMetricsEnable cuptiSassMetricsFlushData cuptiSassMetricsGetDataProperties
            cuptiSassMetricsGetMetrics cuptiSassMetricsGetNumOfMetrics cuptiSassMetricsGetProperties
            cuptiSassMetricsSetConfig cuptiSassMetricsUnsetConfig cuptiSetEventCollectionMode
            cuptiStateQuery cuptiSupportedDomains
        }
    };
}
pub(crate) use unsupported_cupti_functions;
