// SPDX-License-Identifier: Apache-2.0
// What functions are set to and asked about: what changes how a function launches makes its graphs
// stale, a value that is set again changes nothing, and a question may lazily load code, which must
// not wait for work that we hold.
#include "runtime/deferral.h"
#include "runtime/function_settings.h"
#include "runtime/lookups.h"
#include "shim/hooks.h"

namespace shim {
namespace {

using runtime::CodeScope;
using runtime::FunctionSetting;

CUfunction as_function(CUfunction function) noexcept {
  return function;
}
CUfunction as_function(CUkernel kernel) noexcept {
  return reinterpret_cast<CUfunction>(kernel);
}
CodeScope scope_of(CUfunction function) noexcept {
  return CodeScope::of_function(function);
}
CodeScope scope_of(CUkernel kernel) noexcept {
  return CodeScope::of_kernel(kernel);
}

// As the driver says, which loads nothing for it. A driver before CUDA 12.4 does not tell.
bool says_loaded(CUfunction function) noexcept {
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  return runtime::real.cuFuncIsLoaded(&state, function) == CUDA_SUCCESS &&
         state == CU_FUNCTION_LOADING_STATE_LOADED;
}
bool says_loaded(CUkernel) noexcept {
  return false;
}

// Its code is on the device: in the current context nothing more is loaded for it.
template <typename Function>
bool is_loaded(Function function) noexcept {
  const ErrnoKeeper keeper;
  const runtime::ContextState* context = runtime::current_context();
  return runtime::is_function_loaded(as_function(function), context) ||
         runtime::Lookup::of_question(as_function(function), context).is_known() ||
         (runtime::anything_queued() && says_loaded(function));
}

// A question about a function: it may lazily load the code, and then it may wait for the device.
template <EntryId id, typename Function, typename... Args>
CUresult ask(Function function, Args... args) noexcept {
  if (is_loaded(function)) return call_driver<id>(args...);
  CUresult result = forward_with_rule<id>(args...);
  if (result != CUDA_SUCCESS) return result;
  const ErrnoKeeper keeper;
  runtime::Lookup::of_question(as_function(function), runtime::current_context()).remember();
  return result;
}

template <typename Function>
void note_change(Function function) noexcept {
  const ErrnoKeeper keeper;
  runtime::functions_changed(scope_of(function));
}

// Submitted are the queues that hold the function; all, when the call may have to load it.
template <EntryId id, typename Function, typename... Args>
CUresult change(Function function, const FunctionSetting& setting, Args... args) noexcept {
  std::uint64_t changes = 0;
  {
    const ErrnoKeeper keeper;
    const CodeScope scope = scope_of(function);
    if (is_loaded(function)) {
      runtime::submit_holders(scope, id);
    } else {
      before<id>(args...);
    }
    changes = runtime::begin_setting(setting, scope.has_aliases());
  }
  CUresult result = call_driver<id>(args...);
  if (result == CUDA_SUCCESS) {
    note_change(function);
    runtime::note_setting(setting, changes);
  }
  return result;
}

// What the driver says that it is set to now. Only of loaded functions: it may load others.
template <typename Function, typename Read>
bool reads_as(Function function, const FunctionSetting& setting, Read read) noexcept {
  int present = 0;
  return is_loaded(function) && read(&present) == CUDA_SUCCESS && present == setting.value;
}

// GEMM libraries set the same value ahead of every launch: nothing is submitted then. `read` asks
// the driver.
template <EntryId id, typename Function, typename Read, typename... Args>
CUresult set(Function function, const FunctionSetting& setting, Read read, Args... args) noexcept {
  const bool was_set = runtime::is_set(setting);
  const std::uint64_t changes = runtime::setting_changes();
  if (!was_set && !reads_as(function, setting, read)) {
    return change<id>(function, setting, args...);
  }
  CUresult result = call_driver<id>(args...);
  if (result != CUDA_SUCCESS) return result;
  runtime::note_setting(setting, changes);
  if (runtime::is_set(setting)) return result;
  // Another thread has set another value meanwhile, and which came last cannot be told.
  runtime::begin_setting(setting, false);
  note_change(function);
  return result;
}

// Cache and bank preferences: read at launch, no getter to compare with.
template <EntryId id, typename Function, typename... Args>
CUresult prefer(Function function, const FunctionSetting& setting, Args... args) noexcept {
  const auto cannot_read = [](int*) { return CUDA_ERROR_NOT_SUPPORTED; };
  return set<id>(function, setting, cannot_read, args...);
}

}  // namespace

CUresult Hooks::cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                   int value) noexcept {
  const auto read = [=](int* present) {
    return runtime::real.cuFuncGetAttribute(present, attribute, function);
  };
  return set<EntryId::cuFuncSetAttribute>(function, {function, attribute, 0, value}, read, function,
                                          attribute, value);
}

CUresult Hooks::cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                     CUdevice device) noexcept {
  const auto read = [=](int* present) {
    return runtime::real.cuKernelGetAttribute(present, attribute, kernel, device);
  };
  return set<EntryId::cuKernelSetAttribute>(kernel, {kernel, attribute, device, value}, read,
                                            attribute, value, kernel, device);
}

CUresult Hooks::cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) noexcept {
  return prefer<EntryId::cuFuncSetCacheConfig>(
      function, {function, FunctionSetting::kCacheConfig, 0, config}, function, config);
}
CUresult Hooks::cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) noexcept {
  return prefer<EntryId::cuFuncSetSharedMemConfig>(
      function, {function, FunctionSetting::kSharedMemConfig, 0, config}, function, config);
}
CUresult Hooks::cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config,
                                       CUdevice device) noexcept {
  return prefer<EntryId::cuKernelSetCacheConfig>(
      kernel, {kernel, FunctionSetting::kCacheConfig, device, config}, kernel, config, device);
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
