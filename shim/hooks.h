// SPDX-License-Identifier: Apache-2.0
// The entries that need more than their row's rule: launches, and what changes streams, contexts,
// code and captures. Found by Thunk by name, so a function here is a hook. Each refines the rule of
// its row; none returns anything the driver did not, save the failure of work it had to submit. Any
// thread.
#pragma once

#include "runtime/launch.h"
#include "shim/forward.h"

namespace shim {

// The launch that was not the expected one: queued if it may be, else submitted behind what is
// queued.
template <EntryId id>
[[gnu::noinline]] CUresult launch_slowly(const runtime::Launch& launch, void** extra) noexcept;

template <EntryId id>
CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void** kernel_params, void** extra) noexcept {
  const runtime::LaunchShape shape{
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  // Stream 0 of a per-thread twin is another stream than the one that a thread may remember.
  const bool may_be_known = !row(id).per_thread_default() || stream != nullptr;
  if (extra == nullptr && may_be_known &&
      runtime::queue_expected(runtime::launch_key(function), shape, stream, kernel_params))
      [[likely]] {
    return CUDA_SUCCESS;
  }
  if (extra != nullptr && kernel_params == nullptr && may_be_known &&
      runtime::queue_expected(runtime::launch_key(function), shape, stream,
                              runtime::read_packed(extra))) {
    return CUDA_SUCCESS;
  }
  return launch_slowly<id>({function, shape, stream, kernel_params}, extra);
}

struct Hooks {
  // hooks_launch.cpp
  static CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y,
                                         unsigned block_z, unsigned shared_bytes, CUstream stream,
                                         void** kernel_params, void** extra) noexcept {
    return launch_kernel<EntryId::cuLaunchKernel>(function, grid_x, grid_y, grid_z, block_x,
                                                  block_y, block_z, shared_bytes, stream,
                                                  kernel_params, extra);
  }
  static CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
                                              unsigned grid_z, unsigned block_x, unsigned block_y,
                                              unsigned block_z, unsigned shared_bytes,
                                              CUstream stream, void** kernel_params,
                                              void** extra) noexcept {
    return launch_kernel<EntryId::cuLaunchKernel_ptsz>(function, grid_x, grid_y, grid_z, block_x,
                                                       block_y, block_z, shared_bytes, stream,
                                                       kernel_params, extra);
  }
  static CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                           void** kernel_params, void** extra) noexcept;
  static CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function,
                                                void** kernel_params, void** extra) noexcept;
  static CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x,
                                                    unsigned grid_y, unsigned grid_z,
                                                    unsigned block_x, unsigned block_y,
                                                    unsigned block_z, unsigned shared_bytes,
                                                    CUstream stream, void** kernel_params) noexcept;
  static CUresult CUDAAPI cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x,
                                                         unsigned grid_y, unsigned grid_z,
                                                         unsigned block_x, unsigned block_y,
                                                         unsigned block_z, unsigned shared_bytes,
                                                         CUstream stream,
                                                         void** kernel_params) noexcept;
  static CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list,
                                                               unsigned count,
                                                               unsigned flags) noexcept;
  static CUresult CUDAAPI cuLaunch(CUfunction function) noexcept;
  static CUresult CUDAAPI cuLaunchGrid(CUfunction function, int width, int height) noexcept;
  static CUresult CUDAAPI cuLaunchGridAsync(CUfunction function, int width, int height,
                                            CUstream stream) noexcept;
  static CUresult CUDAAPI cuGraphLaunch(CUgraphExec graph, CUstream stream) noexcept;
  static CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) noexcept;

  // hooks_context.cpp
  static CUresult CUDAAPI cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) noexcept;
  static CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned flags,
                                         CUdevice device) noexcept;
  static CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity,
                                         int count, unsigned flags, CUdevice device) noexcept;
  static CUresult CUDAAPI cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params,
                                         unsigned flags, CUdevice device) noexcept;
  static CUresult CUDAAPI cuGLCtxCreate(CUcontext* context, unsigned flags,
                                        CUdevice device) noexcept;
  static CUresult CUDAAPI cuGLCtxCreate_v2(CUcontext* context, unsigned flags,
                                           CUdevice device) noexcept;
  static CUresult CUDAAPI cuVDPAUCtxCreate(CUcontext* context, unsigned flags, CUdevice device,
                                           runtime::interop::Name vdp_device,
                                           runtime::interop::Handle get_proc_address) noexcept;
  static CUresult CUDAAPI cuVDPAUCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device,
                                              runtime::interop::Name vdp_device,
                                              runtime::interop::Handle get_proc_address) noexcept;
  static CUresult CUDAAPI cuCtxDestroy(CUcontext context) noexcept;
  static CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) noexcept;
  static CUresult CUDAAPI cuCtxDetach(CUcontext context) noexcept;
  static CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) noexcept;
  static CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) noexcept;
  static CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) noexcept;
  static CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) noexcept;
  static CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) noexcept;
  static CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) noexcept;
  static CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) noexcept;
  static CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) noexcept;
  static CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) noexcept;
  static CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) noexcept;
  static CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) noexcept;
  static CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx green) noexcept;
  static CUresult CUDAAPI cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) noexcept;

  // hooks_stream.cpp
  static CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned flags) noexcept;
  static CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned flags,
                                                     int priority) noexcept;
  static CUresult CUDAAPI cuStreamDestroy(CUstream stream) noexcept;
  static CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) noexcept;
  static CUresult CUDAAPI cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute,
                                               const CUstreamAttrValue* value) noexcept;
  static CUresult CUDAAPI cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID attribute,
                                                    const CUstreamAttrValue* value) noexcept;
  static CUresult CUDAAPI cuStreamCopyAttributes(CUstream to, CUstream from) noexcept;
  static CUresult CUDAAPI cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) noexcept;
  static CUresult CUDAAPI cuStreamBeginCapture(CUstream stream) noexcept;
  static CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream stream) noexcept;
  static CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream,
                                                  CUstreamCaptureMode mode) noexcept;
  static CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream stream,
                                                       CUstreamCaptureMode mode) noexcept;
  static CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                      const CUgraphNode* dependencies,
                                                      const CUgraphEdgeData* edges, size_t count,
                                                      CUstreamCaptureMode mode) noexcept;
  static CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                           const CUgraphNode* dependencies,
                                                           const CUgraphEdgeData* edges,
                                                           size_t count,
                                                           CUstreamCaptureMode mode) noexcept;
  static CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) noexcept;
  static CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) noexcept;
  static CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event,
                                            unsigned flags) noexcept;
  static CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream stream, CUevent event,
                                                 unsigned flags) noexcept;

  // hooks_code.cpp
  static CUresult CUDAAPI cuModuleUnload(CUmodule module) noexcept;
  static CUresult CUDAAPI cuLibraryUnload(CUlibrary library) noexcept;
  static CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library,
                                             const char* name) noexcept;
  static CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count,
                                                    CUlibrary library) noexcept;
  static CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* path) noexcept;
  static CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) noexcept;
  static CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                             CUjit_option* options, void** values) noexcept;
  static CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* image) noexcept;
  static CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary library) noexcept;
  static CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                             const char* name) noexcept;
  static CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module,
                                              const char* name) noexcept;
  static CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) noexcept;
  static CUresult CUDAAPI cuModuleGetTexRef(CUtexref* reference, CUmodule module,
                                            const char* name) noexcept;
  static CUresult CUDAAPI cuModuleGetSurfRef(CUsurfref* reference, CUmodule module,
                                             const char* name) noexcept;

  // hooks_function.cpp
  static CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                             int value) noexcept;
  static CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value,
                                               CUkernel kernel, CUdevice device) noexcept;
  static CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) noexcept;
  static CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction function,
                                                   CUsharedconfig config) noexcept;
  static CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config,
                                                 CUdevice device) noexcept;
  static CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                             CUfunction function) noexcept;
  static CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                               CUkernel kernel, CUdevice device) noexcept;
  static CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes,
                                                                  CUfunction function, int blocks,
                                                                  int block_size) noexcept;
  static CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                      CUfunction function,
                                                                      int block_size,
                                                                      size_t shared_bytes) noexcept;
  static CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      int* blocks, CUfunction function, int block_size, size_t shared_bytes,
      unsigned flags) noexcept;
  static CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                                       const CUlaunchConfig* config) noexcept;
  static CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* grid, int* block,
                                                           CUfunction function,
                                                           CUoccupancyB2DSize shared_of,
                                                           size_t shared_bytes, int limit) noexcept;
  static CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                                    CUfunction function,
                                                                    CUoccupancyB2DSize shared_of,
                                                                    size_t shared_bytes, int limit,
                                                                    unsigned flags) noexcept;
  static CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                                             const CUlaunchConfig* config) noexcept;
};

}  // namespace shim
