//! Driver functions that exist and answer `CUDA_ERROR_NOT_SUPPORTED`: every other function that
//! `cuda.h` of CUDA 12.9 or 13.x declares, or cudarc 0.19.10 names. Names only. The simulated
//! libcuda compiles this file, too: what is listed is what is exported.

/// Hands the list to a macro.
macro_rules! unsupported_driver_functions {
    ($with:ident) => {
        $with! {
            cuArray3DCreate cuArray3DCreate_v2 cuArray3DGetDescriptor cuArray3DGetDescriptor_v2
            cuArrayCreate cuArrayCreate_v2 cuArrayDestroy cuArrayGetDescriptor
            cuArrayGetDescriptor_v2 cuArrayGetMemoryRequirements cuArrayGetPlane
            cuArrayGetSparseProperties cuCheckpointOperationComplete cuCheckpointProcessCheckpoint
            cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessGetState
            cuCheckpointProcessLock cuCheckpointProcessRestore cuCheckpointProcessUnlock
            cuCoredumpDeregisterCompleteCallback cuCoredumpDeregisterStartCallback
            cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal cuCoredumpRegisterCompleteCallback
            cuCoredumpRegisterStartCallback cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal
            cuCtxAttach cuCtxCreate cuCtxDestroy cuCtxDetach cuCtxFromGreenCtx cuCtxGetDevResource
            cuCtxGetDevice_v2 cuCtxGetExecAffinity cuCtxGetSharedMemConfig cuCtxPopCurrent
            cuCtxPushCurrent cuCtxRecordEvent cuCtxResetPersistingL2Cache cuCtxSetSharedMemConfig
            cuCtxSynchronize_v2 cuCtxWaitEvent cuDestroyExternalMemory cuDestroyExternalSemaphore
            cuDevResourceGenerateDesc cuDevSmResourceSplit cuDevSmResourceSplitByCount
            cuDeviceGetByPCIBusId cuDeviceGetCliqueCount cuDeviceGetCliqueInfo
            cuDeviceGetDevResource cuDeviceGetExecAffinitySupport cuDeviceGetFabricClusterUuid
            cuDeviceGetGraphMemAttribute cuDeviceGetHostAtomicCapabilities cuDeviceGetLuid
            cuDeviceGetNvSciSyncAttributes cuDeviceGetP2PAtomicCapabilities cuDeviceGetProperties
            cuDeviceGetTexture1DLinearMaxWidth cuDeviceGraphMemTrim cuDevicePrimaryCtxReset
            cuDevicePrimaryCtxSetFlags cuDeviceRegisterAsyncNotification
            cuDeviceSetGraphMemAttribute cuDeviceTotalMem cuDeviceUnregisterAsyncNotification
            cuEventDestroy cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray
            cuFabricCpyBatchAsync cuFlushGPUDirectRDMAWrites cuFuncGetParamCount cuFuncSetBlockShape
            cuFuncSetSharedMemConfig cuFuncSetSharedSize cuGetExportTable cuGraphAddBatchMemOpNode
            cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
            cuGraphBatchMemOpNodeGetParams
            cuGraphBatchMemOpNodeSetParams cuGraphDebugDotPrint cuGraphExecBatchMemOpNodeSetParams
            cuGraphExecExternalSemaphoresSignalNodeSetParams
            cuGraphExecExternalSemaphoresWaitNodeSetParams
            cuGraphExternalSemaphoresSignalNodeGetParams
            cuGraphExternalSemaphoresSignalNodeSetParams cuGraphExternalSemaphoresWaitNodeGetParams
            cuGraphExternalSemaphoresWaitNodeSetParams cuGraphKernelNodeCopyAttributes
            cuGraphKernelNodeGetAttribute cuGraphKernelNodeSetAttribute
            cuGraphNodeGetParams cuGraphReleaseUserObject
            cuGraphRetainUserObject cuGraphicsMapResources cuGraphicsResourceGetMappedMipmappedArray
            cuGraphicsResourceGetMappedPointer cuGraphicsResourceGetMappedPointer_v2
            cuGraphicsResourceSetMapFlags cuGraphicsResourceSetMapFlags_v2
            cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources
            cuGraphicsUnregisterResource cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxGetDevResource
            cuGreenCtxGetId cuGreenCtxRecordEvent cuGreenCtxStreamCreate cuGreenCtxWaitEvent
            cuImportExternalMemory cuImportExternalSemaphore cuIpcCloseMemHandle cuIpcGetEventHandle
            cuIpcGetMemHandle cuIpcOpenEventHandle cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
            cuKernelGetAttribute cuKernelGetFunction cuKernelGetLibrary cuKernelGetName
            cuKernelGetParamCount cuKernelGetParamInfo cuKernelSetAttribute cuKernelSetCacheConfig
            cuLaunch cuLaunchCooperativeKernelMultiDevice cuLaunchGrid cuLaunchGridAsync
            cuLaunchHostFunc_v2 cuLibraryEnumerateKernels cuLibraryGetGlobal cuLibraryGetKernel
            cuLibraryGetKernelCount cuLibraryGetManaged cuLibraryGetModule
            cuLibraryGetUnifiedFunction cuLibraryLoadData cuLibraryLoadFromFile cuLibraryUnload
            cuLinkAddData cuLinkAddData_v2 cuLinkAddFile cuLinkAddFile_v2 cuLinkComplete
            cuLinkCreate cuLinkCreate_v2 cuLinkDestroy cuLogicalEndpointAddDevice
            cuLogicalEndpointBindAddr cuLogicalEndpointBindMem cuLogicalEndpointCreate
            cuLogicalEndpointDestroy cuLogicalEndpointExport cuLogicalEndpointGetLimits
            cuLogicalEndpointIdRelease cuLogicalEndpointIdReserve cuLogicalEndpointImport
            cuLogicalEndpointQuery cuLogicalEndpointUnbind cuLogsCurrent cuLogsDumpToFile
            cuLogsDumpToMemory cuLogsRegisterCallback cuLogsUnregisterCallback cuMemAddressFree
            cuMemAddressReserve cuMemAdvise cuMemAdvise_v2 cuMemAlloc cuMemAllocHost cuMemAllocPitch
            cuMemAllocPitch_v2 cuMemBatchDecompressAsync cuMemCreate
            cuMemDiscardAndPrefetchBatchAsync cuMemDiscardBatchAsync cuMemExportToShareableHandle
            cuMemFree cuMemGetAccess cuMemGetAddressRange cuMemGetAllocationGranularity
            cuMemGetAllocationPropertiesFromHandle cuMemGetDefaultMemPool
            cuMemGetHandleForAddressRange cuMemGetInfo cuMemGetLocationInfo cuMemGetMemPool
            cuMemHostGetDevicePointer cuMemHostGetDevicePointer_v2 cuMemHostGetFlags
            cuMemHostRegister cuMemImportFromShareableHandle cuMemMap cuMemMapArrayAsync
            cuMemPoolExportPointer cuMemPoolExportToShareableHandle
            cuMemPoolImportFromShareableHandle cuMemPoolImportPointer cuMemPrefetchAsync
            cuMemPrefetchAsync_ptsz cuMemPrefetchAsync_v2 cuMemPrefetchBatchAsync
            cuMemRangeGetAttribute cuMemRangeGetAttributes cuMemRelease cuMemRetainAllocationHandle
            cuMemSetAccess cuMemSetMemPool cuMemUnmap cuMemcpy2D cuMemcpy2DAsync cuMemcpy2DUnaligned
            cuMemcpy3D cuMemcpy3DAsync cuMemcpy3DAsync_v2 cuMemcpy3DBatchAsync
            cuMemcpy3DBatchAsync_ptsz cuMemcpy3DBatchAsync_v2 cuMemcpy3DPeer cuMemcpy3DPeerAsync
            cuMemcpy3DWithAttributesAsync cuMemcpy3D_v2 cuMemcpyAtoA cuMemcpyAtoA_v2 cuMemcpyAtoD
            cuMemcpyAtoD_v2 cuMemcpyAtoH cuMemcpyAtoHAsync cuMemcpyAtoHAsync_v2 cuMemcpyAtoH_v2
            cuMemcpyDtoA cuMemcpyDtoA_v2 cuMemcpyDtoD cuMemcpyDtoDAsync cuMemcpyDtoH
            cuMemcpyDtoHAsync cuMemcpyHtoA cuMemcpyHtoAAsync cuMemcpyHtoAAsync_v2 cuMemcpyHtoA_v2
            cuMemcpyHtoD cuMemcpyHtoDAsync cuMemcpyWithAttributesAsync cuMemsetD16 cuMemsetD2D16
            cuMemsetD2D32 cuMemsetD2D8 cuMemsetD32 cuMemsetD8 cuMipmappedArrayCreate
            cuMipmappedArrayDestroy cuMipmappedArrayGetLevel cuMipmappedArrayGetMemoryRequirements
            cuMipmappedArrayGetSparseProperties cuModuleEnumerateFunctions cuModuleGetFunctionCount
            cuModuleGetGlobal cuModuleGetGlobal_v2 cuModuleGetSurfRef cuModuleGetTexRef
            cuModuleLoadFatBinary cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindAddr_v2
            cuMulticastBindMem cuMulticastBindMem_v2 cuMulticastCreate cuMulticastGetGranularity
            cuMulticastUnbind cuOccupancyMaxActiveClusters cuOccupancyMaxPotentialClusterSize
            cuParamSetSize cuParamSetTexRef cuParamSetf cuParamSeti cuParamSetv
            cuPointerGetAttributes cuPointerSetAttribute cuProfilerInitialize
            cuSignalExternalSemaphoresAsync cuStreamAddCallback cuStreamAttachMemAsync
            cuStreamBeginCaptureToCig cuStreamBeginRecaptureToGraph cuStreamCopyAttributes
            cuStreamDestroy cuStreamEndCaptureToCig cuStreamGetAttribute cuStreamGetCtx_v2
            cuStreamGetDevResource cuStreamGetGreenCtx cuStreamSetAttribute cuSurfObjectCreate
            cuSurfObjectDestroy cuSurfObjectGetResourceDesc cuSurfRefGetArray cuSurfRefSetArray
            cuTensorMapEncodeIm2col cuTensorMapEncodeIm2colWide cuTensorMapEncodeTiled
            cuTensorMapReplaceAddress cuTensorMapSetAllocationClass cuTexObjectCreate
            cuTexObjectDestroy cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
            cuTexObjectGetTextureDesc cuTexRefCreate cuTexRefDestroy cuTexRefGetAddress
            cuTexRefGetAddressMode cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetBorderColor
            cuTexRefGetFilterMode cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy
            cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp
            cuTexRefGetMipmappedArray cuTexRefSetAddress cuTexRefSetAddress2D
            cuTexRefSetAddress2D_v2 cuTexRefSetAddress2D_v3 cuTexRefSetAddressMode
            cuTexRefSetAddress_v2 cuTexRefSetArray cuTexRefSetBorderColor cuTexRefSetFilterMode
            cuTexRefSetFlags cuTexRefSetFormat cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode
            cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray
            cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain cuWaitExternalSemaphoresAsync
        }
    };
}
pub(crate) use unsupported_driver_functions;
