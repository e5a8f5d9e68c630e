// SPDX-License-Identifier: Apache-2.0
#include "runtime/context_state.h"

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
  if (t_thread.context != nullptr) return t_thread.context;
  CUcontext handle = nullptr;
  if (real.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || handle == nullptr) return nullptr;
  t_thread.context = context_state(handle);
  t_thread.last_queue = nullptr;
  return t_thread.context;
}

bool read_limits(ContextState& context) noexcept {
  if (context.limits_known.load(std::memory_order_acquire)) return true;
  CUdevice device = 0;
  if (real.cuCtxGetDevice(&device) != CUDA_SUCCESS) return false;
  struct Limit {
    CUdevice_attribute attribute;
    std::uint32_t* value;
  };
  std::uint32_t grid[3], block[3], threads;
  const Limit limits[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &grid[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &block[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &block[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &block[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads},
  };
  for (const Limit& limit : limits) {
    int value = 0;
    if (real.cuDeviceGetAttribute(&value, limit.attribute, device) != CUDA_SUCCESS) return false;
    *limit.value = static_cast<std::uint32_t>(value);
  }
  static constinit Mutex mutex;
  MutexGuard guard(mutex);
  if (context.limits_known.load(std::memory_order_relaxed)) return true;
  for (int axis = 0; axis < 3; ++axis) {
    context.max_grid[axis] = grid[axis];
    context.max_block[axis] = block[axis];
  }
  context.max_threads = threads;
  // Release pairs with the acquire above.
  context.limits_known.store(true, std::memory_order_release);
  return true;
}

}  // namespace runtime
