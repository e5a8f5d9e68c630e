// SPDX-License-Identifier: Apache-2.0
// The table of function handles: a fixed array of chains, read without a lock, written under one
// mutex.
#include "runtime/function_info.h"

#include <new>

#include "runtime/mutex.h"

namespace runtime {
namespace {

// 4096 chains: a large application has a few thousand kernels; 32 KiB of static memory.
constexpr std::size_t kChains = 4096;
constinit std::atomic<FunctionInfo*> g_chains[kChains]{};
constinit Mutex g_mutex;
constinit std::uint64_t g_next_token = 1;     // guarded by g_mutex
constinit Array<void*>* g_kernels = nullptr;  // CUkernel handles, guarded by g_mutex
constinit Array<void*>* g_tainted =
    nullptr;  // owners whose functions go directly, guarded by g_mutex

std::size_t chain_of(CUfunction handle) noexcept {
  auto bits = reinterpret_cast<std::uintptr_t>(handle);
  return ((bits >> 4) * 0x9E3779B97F4A7C15ull >> 40) % kChains;
}

FunctionInfo* find_any(CUfunction handle) noexcept {
  // Acquire pairs with the release in publish(): the entry's fields are complete.
  FunctionInfo* info = g_chains[chain_of(handle)].load(std::memory_order_acquire);
  while (info != nullptr && info->handle != handle) info = info->next;
  return info;
}

bool contains(const Array<void*>* list, void* value) noexcept {
  if (list == nullptr) return false;
  for (void* item : *list) {
    if (item == value) return true;
  }
  return false;
}

bool add(Array<void*>*& list, void* value) noexcept {
  if (list == nullptr) list = new (std::nothrow) Array<void*>;
  return list != nullptr && (contains(list, value) || list->push_back(value));
}

void remove(Array<void*>* list, void* value) noexcept {
  if (list == nullptr) return;
  std::size_t kept = 0;
  for (void* item : *list) {
    if (item != value) (*list)[kept++] = item;
  }
  list->truncate(kept);
}

// Fills `parameters`. False: the driver cannot tell.
bool read_layout(FunctionInfo* info) noexcept {
  info->parameters.clear();
  info->argument_bytes = 0;
  for (std::size_t index = 0;; ++index) {
    std::size_t offset = 0, size = 0;
    CUresult result = info->is_kernel
                          ? real.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(info->handle),
                                                      index, &offset, &size)
                          : real.cuFuncGetParamInfo(info->handle, index, &offset, &size);
    // "INVALID_VALUE when the index is past the last parameter" (cuda.h, cuFuncGetParamInfo, 12.4).
    if (result == CUDA_ERROR_INVALID_VALUE) return true;
    if (result != CUDA_SUCCESS || offset + size > UINT16_MAX) return false;
    ParameterSpec spec{static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(size)};
    if (!info->parameters.push_back(spec)) return false;
    info->argument_bytes = static_cast<std::uint32_t>(offset + size);
  }
}

bool attribute(CUfunction function, CUfunction_attribute which, int* value) noexcept {
  return real.cuFuncGetAttribute(value, which, function) == CUDA_SUCCESS;
}

// The CUfunction of the current context; loads the code of a kernel.
CUfunction resolve(const FunctionInfo& info) noexcept {
  if (!info.is_kernel) return info.handle;
  CUfunction function = nullptr;
  CUresult result = real.cuKernelGetFunction(&function, reinterpret_cast<CUkernel>(info.handle));
  return result == CUDA_SUCCESS ? function : nullptr;
}

bool read_limits(FunctionInfo* info, CUfunction function) noexcept {
  int threads = 0, shared = 0, cluster = 0;
  if (!attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads)) return false;
  if (!attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &shared)) {
    return false;
  }
  // A compiled-in cluster shape is a launch attribute in disguise.
  if (attribute(function, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &cluster) && cluster != 0) {
    return false;
  }
  if (attribute(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &cluster) && cluster != 0) {
    return false;
  }
  info->max_threads = static_cast<std::uint32_t>(threads);
  info->max_dynamic_shared = static_cast<std::uint32_t>(shared);
  return true;
}

void* owner_of(const FunctionInfo& info) noexcept {
  if (info.is_kernel) {
    CUlibrary library = nullptr;
    real.cuKernelGetLibrary(&library, reinterpret_cast<CUkernel>(info.handle));
    return library;
  }
  CUmodule module = nullptr;
  real.cuFuncGetModule(&module, info.handle);
  return module;
}

// A bare launch loads the function now; so do we (cuda.h: lazy loading). Returns false when this
// driver cannot do it without launching (no cuFuncLoad before 12.4): the first launch then goes
// directly.
bool load(const FunctionInfo& info, CUfunction function) noexcept {
  if (info.is_kernel) return true;  // cuKernelGetFunction has done it
  return real.cuFuncLoad(function) == CUDA_SUCCESS;
}

void refuse(FunctionInfo* info, DirectReason reason) noexcept {
  info->queueable = false;
  info->reason = reason;
}

void inspect(FunctionInfo* info) noexcept {
  info->owner = owner_of(*info);
  if (info->owner == nullptr) return refuse(info, DirectReason::kUnknownLayout);
  CUfunction function = resolve(*info);
  if (function == nullptr || !read_layout(info)) {
    return refuse(info, DirectReason::kUnknownLayout);
  }
  info->loaded = load(*info, function);
  if (!read_limits(info, function)) return refuse(info, DirectReason::kAttributes);
  info->queueable = true;
}

// Puts what inspect() found into the entry of the handle. Called with g_mutex held.
FunctionInfo* publish(FunctionInfo& found) noexcept {
  FunctionInfo* info = find_any(found.handle);
  bool is_new = info == nullptr;
  if (is_new) info = new (std::nothrow) FunctionInfo;
  if (info == nullptr) return nullptr;
  info->handle = found.handle;
  info->is_kernel = found.is_kernel;
  info->queueable = found.queueable;
  info->loaded.store(found.loaded.load(std::memory_order_relaxed), std::memory_order_relaxed);
  info->reason = found.reason;
  info->owner = found.owner;
  info->token = g_next_token++ * 0x9E3779B97F4A7C15ull;
  info->max_threads = found.max_threads;
  info->max_dynamic_shared = found.max_dynamic_shared;
  info->argument_bytes = found.argument_bytes;
  info->parameters.swap(found.parameters);
  if (contains(g_tainted, info->owner)) refuse(info, DirectReason::kTextureReference);
  info->alive.store(true, std::memory_order_release);
  if (is_new) {
    std::atomic<FunctionInfo*>& chain = g_chains[chain_of(info->handle)];
    info->next = chain.load(std::memory_order_relaxed);
    chain.store(info, std::memory_order_release);
  }
  return info;
}

}  // namespace

bool update_bytes(std::byte* to, const void* from, std::size_t size) noexcept {
  if (std::memcmp(to, from, size) == 0) return false;
  std::memcpy(to, from, size);
  return true;
}

FunctionInfo* find_function(CUfunction handle) noexcept {
  FunctionInfo* info = find_any(handle);
  // Acquire pairs with the release store in learn_function(): a revived entry is complete.
  return info != nullptr && info->alive.load(std::memory_order_acquire) ? info : nullptr;
}

FunctionInfo* learn_function(CUfunction handle) noexcept {
  FunctionInfo found;
  found.handle = handle;
  {
    MutexGuard guard(g_mutex);
    found.is_kernel = contains(g_kernels, handle);
  }
  inspect(&found);  // calls the driver, so without the lock
  MutexGuard guard(g_mutex);
  FunctionInfo* known = find_function(handle);
  return known != nullptr ? known : publish(found);
}

void note_kernel(CUkernel kernel) noexcept {
  MutexGuard guard(g_mutex);
  add(g_kernels, kernel);
}

void forget_functions_of(void* owner) noexcept {
  MutexGuard guard(g_mutex);
  for (std::atomic<FunctionInfo*>& chain : g_chains) {
    for (FunctionInfo* info = chain.load(std::memory_order_relaxed); info; info = info->next) {
      if (info->owner != owner) continue;
      info->alive.store(false, std::memory_order_release);
      if (info->is_kernel) remove(g_kernels, info->handle);
    }
  }
  remove(g_tainted, owner);
}

void taint_functions_of(void* owner, DirectReason reason) noexcept {
  MutexGuard guard(g_mutex);
  add(g_tainted, owner);
  for (std::atomic<FunctionInfo*>& chain : g_chains) {
    for (FunctionInfo* info = chain.load(std::memory_order_relaxed); info; info = info->next) {
      if (info->owner == owner) refuse(info, reason);
    }
  }
}

void refresh_function(CUfunction handle) noexcept {
  MutexGuard guard(g_mutex);
  FunctionInfo* info = find_any(handle);
  if (info != nullptr) info->alive.store(false, std::memory_order_release);
}

}  // namespace runtime
