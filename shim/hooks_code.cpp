// SPDX-License-Identifier: Apache-2.0
// Modules, libraries and functions: what is unloaded takes its recordings along, what changes how a
// function launches makes its graphs stale, and what may lazily load code must not wait for work
// that we hold.
#include "profiler/trace/device_timer.h"
#include "profiler/trace/kernel_names.h"
#include "runtime/deferral.h"
#include "shim/hooks.h"

namespace shim {
namespace {

// Owner first forgotten, then unloaded: once the driver has freed a handle, another thread may get
// the value again.
template <EntryId id, typename Owner>
CUresult unload(Owner owner) noexcept {
  if (is_mutant(Mutant::kUnloadUnnoticed)) return runtime::slot_of<id>()(owner);
  before<id>(owner);
  if (owner != nullptr) {
    const ErrnoKeeper keeper;
    runtime::code_unloads(owner);
    if (profiler::times_launches()) profiler::forget_kernel_names();
  }
  return forward_with_rule<id>(owner);
}

template <EntryId id, typename Reference>
CUresult take_reference(Reference* reference, CUmodule module, const char* name) noexcept {
  CUresult result = forward_with_rule<id>(reference, module, name);
  if (result != CUDA_SUCCESS) return result;
  const ErrnoKeeper keeper;
  runtime::code_is_tainted(module);
  return result;
}

bool is_loaded(CUfunction function) noexcept {
  const runtime::FunctionInfo* info = runtime::find_function(function, runtime::current_context());
  return info != nullptr && info->loaded.load(std::memory_order_relaxed);
}
bool is_loaded(CUkernel kernel) noexcept {
  return is_loaded(reinterpret_cast<CUfunction>(kernel));
}

// A question about a function: it may lazily load the code, and then it may wait for the device.
template <EntryId id, typename Function, typename... Args>
CUresult ask(Function function, Args... args) noexcept {
  if (is_loaded(function)) return call_driver<id>(args...);
  return forward_with_rule<id>(args...);
}

void note_change(CUfunction function) noexcept {
  const ErrnoKeeper keeper;
  runtime::function_changed(function);
}

// Cache and bank preferences: read at launch, no getter to compare with.
template <EntryId id, typename... Args>
CUresult change_function(CUfunction function, Args... args) noexcept {
  CUresult result = forward_with_rule<id>(args...);
  if (result == CUDA_SUCCESS) note_change(function);
  return result;
}

}  // namespace

CUresult Hooks::cuModuleUnload(CUmodule module) noexcept {
  return unload<EntryId::cuModuleUnload>(module);
}
CUresult Hooks::cuLibraryUnload(CUlibrary library) noexcept {
  return unload<EntryId::cuLibraryUnload>(library);
}

CUresult Hooks::cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) noexcept {
  CUresult result = runtime::real.cuLibraryGetKernel(kernel, library, name);
  if (result == CUDA_SUCCESS && kernel != nullptr) runtime::note_kernel(*kernel, library);
  return result;
}

CUresult Hooks::cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count,
                                          CUlibrary library) noexcept {
  CUresult result = runtime::real.cuLibraryEnumerateKernels(kernels, count, library);
  if (result != CUDA_SUCCESS || kernels == nullptr) return result;
  unsigned available = 0;
  if (runtime::real.cuLibraryGetKernelCount(&available, library) != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count && i < available; ++i) runtime::note_kernel(kernels[i], library);
  return result;
}

CUresult Hooks::cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name) noexcept {
  return take_reference<EntryId::cuModuleGetTexRef>(reference, module, name);
}
CUresult Hooks::cuModuleGetSurfRef(CUsurfref* reference, CUmodule module,
                                   const char* name) noexcept {
  return take_reference<EntryId::cuModuleGetSurfRef>(reference, module, name);
}

CUresult Hooks::cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                   int value) noexcept {
  int present = 0;
  // GEMM libraries set the same value before every launch: no flush then. Else the queues of every
  // context are submitted: the function may be of another than the current one.
  if (is_loaded(function) &&
      runtime::real.cuFuncGetAttribute(&present, attribute, function) == CUDA_SUCCESS &&
      present == value) {
    return runtime::real.cuFuncSetAttribute(function, attribute, value);
  }
  return change_function<EntryId::cuFuncSetAttribute>(function, function, attribute, value);
}

CUresult Hooks::cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                     CUdevice device) noexcept {
  int present = 0;
  if (is_loaded(kernel) &&
      runtime::real.cuKernelGetAttribute(&present, attribute, kernel, device) == CUDA_SUCCESS &&
      present == value) {
    return runtime::real.cuKernelSetAttribute(attribute, value, kernel, device);
  }
  return change_function<EntryId::cuKernelSetAttribute>(reinterpret_cast<CUfunction>(kernel),
                                                        attribute, value, kernel, device);
}

CUresult Hooks::cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) noexcept {
  return change_function<EntryId::cuFuncSetCacheConfig>(function, function, config);
}
CUresult Hooks::cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) noexcept {
  return change_function<EntryId::cuFuncSetSharedMemConfig>(function, function, config);
}
CUresult Hooks::cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config,
                                       CUdevice device) noexcept {
  return change_function<EntryId::cuKernelSetCacheConfig>(reinterpret_cast<CUfunction>(kernel),
                                                          kernel, config, device);
}

CUresult Hooks::cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                   CUfunction function) noexcept {
  return ask<EntryId::cuFuncGetAttribute>(function, value, attribute, function);
}
CUresult Hooks::cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                     CUdevice device) noexcept {
  return ask<EntryId::cuKernelGetAttribute>(kernel, value, attribute, kernel, device);
}
CUresult Hooks::cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function,
                                                        int blocks, int block_size) noexcept {
  return ask<EntryId::cuOccupancyAvailableDynamicSMemPerBlock>(function, bytes, function, blocks,
                                                               block_size);
}
CUresult Hooks::cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                            int block_size,
                                                            size_t shared_bytes) noexcept {
  return ask<EntryId::cuOccupancyMaxActiveBlocksPerMultiprocessor>(function, blocks, function,
                                                                   block_size, shared_bytes);
}
CUresult Hooks::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                     CUfunction function,
                                                                     int block_size,
                                                                     size_t shared_bytes,
                                                                     unsigned flags) noexcept {
  return ask<EntryId::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>(
      function, blocks, function, block_size, shared_bytes, flags);
}
CUresult Hooks::cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                             const CUlaunchConfig* config) noexcept {
  return ask<EntryId::cuOccupancyMaxActiveClusters>(function, clusters, function, config);
}
CUresult Hooks::cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                 CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                                 int limit) noexcept {
  return ask<EntryId::cuOccupancyMaxPotentialBlockSize>(function, grid, block, function, shared_of,
                                                        shared_bytes, limit);
}
CUresult Hooks::cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                          CUfunction function,
                                                          CUoccupancyB2DSize shared_of,
                                                          size_t shared_bytes, int limit,
                                                          unsigned flags) noexcept {
  return ask<EntryId::cuOccupancyMaxPotentialBlockSizeWithFlags>(
      function, grid, block, function, shared_of, shared_bytes, limit, flags);
}
CUresult Hooks::cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                                   const CUlaunchConfig* config) noexcept {
  return ask<EntryId::cuOccupancyMaxPotentialClusterSize>(function, size, function, config);
}

}  // namespace shim
