// SPDX-License-Identifier: Apache-2.0
#include "runtime/context_state.h"

#include <algorithm>
#include <new>

#include "runtime/mutex.h"
#include "runtime/thread_state.h"

namespace runtime {

thread_local constinit ThreadState t_thread [[gnu::tls_model("initial-exec")]];
constinit std::atomic<std::uint32_t> g_queue_epoch{1};
constinit std::atomic<ContextState*> g_contexts{nullptr};

namespace {

constinit Mutex g_mutex;  // guards appending to g_contexts

ContextState* find(CUcontext handle) noexcept {
  // Acquire pairs with the release store in context_state(): fields of a found object are
  // initialised.
  ContextState* state = g_contexts.load(std::memory_order_acquire);
  while (state != nullptr && state->handle.load(std::memory_order_relaxed) != handle) {
    state = state->next;
  }
  return state;
}

}  // namespace

ContextState* context_state(CUcontext handle) noexcept {
  ContextState* state = find(handle);
  if (state != nullptr) return state;
  MutexGuard guard(g_mutex);
  state = find(handle);
  if (state != nullptr) return state;
  state = new (std::nothrow) ContextState;
  if (state == nullptr) return nullptr;
  state->handle.store(handle, std::memory_order_relaxed);
  state->next = g_contexts.load(std::memory_order_relaxed);
  g_contexts.store(state, std::memory_order_release);
  return state;
}

ContextState* current_context() noexcept {
  if (t_thread.context != nullptr && is_current(t_thread.context)) return t_thread.context;
  forget_thread_context();
  std::uint32_t epoch = g_queue_epoch.load(std::memory_order_relaxed);
  CUcontext handle = nullptr;
  CUdevice device = 0;
  // A destroyed context is still the current one, and another may have its handle by now: the
  // driver knows them apart.
  if (real.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || handle == nullptr ||
      real.cuCtxGetDevice(&device) != CUDA_SUCCESS) {
    return nullptr;
  }
  t_thread.context = context_state(handle);
  t_thread.context_epoch = epoch;
  return t_thread.context;
}

void context_switched() noexcept {
  if (is_mutant(Mutant::kContextSwitchUnnoticed)) return;
  CUcontext now = nullptr;
  if (t_thread.context != nullptr && t_thread.last.queue != nullptr &&
      real.cuCtxGetCurrent(&now) == CUDA_SUCCESS &&
      now == t_thread.context->handle.load(std::memory_order_relaxed)) {
    return;
  }
  forget_thread_context();
}

namespace {

// Of the current context: all of the device, or what an execution affinity leaves of it (MPS).
std::uint32_t usable_multiprocessors(int on_device) noexcept {
  auto all = static_cast<std::uint32_t>(on_device);
  CUexecAffinityParam affinity{};
  if (real.cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT) != CUDA_SUCCESS ||
      affinity.param.smCount.val == 0) {
    return all;
  }
  return std::min(all, affinity.param.smCount.val);
}

}  // namespace

bool read_limits(ContextState& context) noexcept {
  if (context.limits_known.load(std::memory_order_acquire)) return true;
  CUdevice device = 0;
  if (real.cuCtxGetDevice(&device) != CUDA_SUCCESS) return false;
  struct Limit {
    CUdevice_attribute attribute;
    int* value;
  };
  int grid[3], block[3], threads, multiprocessors, cooperative;
  const Limit limits[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &grid[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &block[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &block[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &block[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &multiprocessors},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperative},
  };
  for (const Limit& limit : limits) {
    if (real.cuDeviceGetAttribute(limit.value, limit.attribute, device) != CUDA_SUCCESS) {
      return false;
    }
  }
  int clusters = 0;  // a driver before CUDA 11.8 does not know the attribute
  real.cuDeviceGetAttribute(&clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device);
  std::uint32_t usable = usable_multiprocessors(multiprocessors);
  static constinit Mutex mutex;
  MutexGuard guard(mutex);
  if (context.limits_known.load(std::memory_order_relaxed)) return true;
  for (int axis = 0; axis < 3; ++axis) {
    context.max_grid[axis] = static_cast<std::uint32_t>(grid[axis]);
    context.max_block[axis] = static_cast<std::uint32_t>(block[axis]);
  }
  context.max_threads = static_cast<std::uint32_t>(threads);
  context.multiprocessors = usable;
  context.has_cooperative = cooperative != 0;
  context.has_clusters = clusters != 0;
  // Release pairs with the acquire above.
  context.limits_known.store(true, std::memory_order_release);
  return true;
}

}  // namespace runtime
