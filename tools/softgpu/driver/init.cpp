// SPDX-License-Identifier: Apache-2.0
// cuInit, the driver version, and what a forked child sees: a driver that was never initialised and
// never will be.

#include <pthread.h>

#include <atomic>

#include "tools/softgpu/driver/counters.h"
#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/host_function.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/options.h"

namespace softgpu {
namespace {

enum class Life { kFresh, kInitialized, kForked };
std::atomic<Life> g_life{Life::kFresh};

void before_fork() {
  driver_mutex().lock();
}
void after_fork_in_parent() {
  driver_mutex().unlock();
}
void after_fork_in_child() {
  g_life.store(Life::kForked);
  stop_counters();
  Engine::get().forget_threads();
  forget_host_thread();
  driver_mutex().unlock();
}

CUresult initialize(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  DriverLock lock;
  if (g_life.load() == Life::kForked) return CUDA_ERROR_NOT_INITIALIZED;
  if (options().devices == 0) return CUDA_ERROR_NO_DEVICE;
  if (g_life.load() == Life::kFresh) {
    Engine::get();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    watch_for_leaks();
    g_life.store(Life::kInitialized);
  }
  return CUDA_SUCCESS;
}

}  // namespace

std::mutex& driver_mutex() {
  static std::mutex* const mutex = new std::mutex();
  return *mutex;
}

bool is_initialized() {
  return g_life.load(std::memory_order_acquire) == Life::kInitialized;
}

}  // namespace softgpu

using softgpu::EntryId;

extern "C" CUresult CUDAAPI cuInit(unsigned int flags) {
  return softgpu::call_unlocked(EntryId::cuInit, [&] { return softgpu::initialize(flags); });
}

extern "C" CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return softgpu::call_unlocked(EntryId::cuDriverGetVersion, [&]() -> CUresult {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = softgpu::options().driver_version;
    return CUDA_SUCCESS;
  });
}
