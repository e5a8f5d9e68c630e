// SPDX-License-Identifier: Apache-2.0
// The table of function handles: a fixed array of chains, read without a lock, written under one
// mutex.
#include "runtime/function_info.h"

#include <new>

#include "runtime/mutants.h"
#include "runtime/mutex.h"

namespace runtime {
namespace {

// 4096 chains: a large application has a few thousand kernels; 32 KiB of static memory.
constexpr std::size_t kChains = 4096;
constinit std::atomic<FunctionInfo*> g_chains[kChains]{};
constinit Mutex g_mutex;
constinit std::uint64_t g_next_token = 1;  // guarded by g_mutex
struct KnownKernel {
  void* handle;
  void* library;
};
constinit Array<KnownKernel>* g_kernels = nullptr;  // CUkernel handles, guarded by g_mutex
constinit Array<void*>* g_tainted =
    nullptr;  // owners whose functions go directly, guarded by g_mutex

std::size_t chain_of(CUfunction handle) noexcept {
  auto bits = reinterpret_cast<std::uintptr_t>(handle);
  return ((bits >> 4) * 0x9E3779B97F4A7C15ull >> 40) % kChains;
}

FunctionInfo* find_any(CUfunction handle, const ContextState* context) noexcept {
  // Acquire pairs with the release in publish(): the entry's fields are complete.
  FunctionInfo* info = g_chains[chain_of(handle)].load(std::memory_order_acquire);
  while (info != nullptr && !(info->handle == handle && info->context == context)) {
    info = info->next;
  }
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

KnownKernel* find_kernel(void* handle) noexcept {
  if (g_kernels == nullptr) return nullptr;
  for (KnownKernel& kernel : *g_kernels) {
    if (kernel.handle == handle) return &kernel;
  }
  return nullptr;
}

// Those that were never launched included: their handles may come back as functions of a module.
void forget_kernels_of(void* library) noexcept {
  if (g_kernels == nullptr) return;
  std::size_t kept = 0;
  for (const KnownKernel& kernel : *g_kernels) {
    if (kernel.library != library) (*g_kernels)[kept++] = kernel;
  }
  g_kernels->truncate(kept);
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
    if (is_mutant(Mutant::kArgumentShort)) --spec.size;
    if (is_mutant(Mutant::kArgumentLong)) ++spec.size;
    if (is_mutant(Mutant::kArgumentMoved) && index != 0) spec.offset += 4;
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
  int threads = 0, shared = 0, cluster = 0, large = 0;
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
  info->allows_large_clusters =
      attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &large) &&
      large != 0;
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
  FunctionInfo* info = find_any(found.handle, found.context);
  bool is_new = info == nullptr;
  if (is_new) info = new (std::nothrow) FunctionInfo;
  if (info == nullptr) return nullptr;
  if (is_new) {  // readers without a lock look at these in the entries of a chain, dead ones too
    info->handle = found.handle;
    info->context = found.context;
  }
  info->is_kernel = found.is_kernel;
  info->queueable = found.queueable;
  info->loaded.store(found.loaded.load(std::memory_order_relaxed), std::memory_order_relaxed);
  info->reason = found.reason;
  info->owner = found.owner;
  info->token = g_next_token++ * 0x9E3779B97F4A7C15ull;
  info->allows_large_clusters = found.allows_large_clusters;
  info->resident.store(0, std::memory_order_relaxed);
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

// A CUfunction belongs to one context. Called with g_mutex held.
bool belongs_elsewhere(CUfunction handle, const ContextState& context) noexcept {
  FunctionInfo* info = g_chains[chain_of(handle)].load(std::memory_order_relaxed);
  for (; info != nullptr; info = info->next) {
    if (info->handle == handle && info->context != &context && !info->is_kernel &&
        info->queueable && info->alive.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool update_bytes(std::byte* to, const void* from, std::size_t size) noexcept {
  if (std::memcmp(to, from, size) == 0) return false;
  std::memcpy(to, from, size);
  return true;
}

FunctionInfo* find_function(CUfunction handle, const ContextState* context) noexcept {
  FunctionInfo* info = find_any(handle, context);
  // Acquire pairs with the release store in learn_function(): a revived entry is complete.
  return info != nullptr && info->alive.load(std::memory_order_acquire) ? info : nullptr;
}

FunctionInfo* learn_function(CUfunction handle, const ContextState& context) noexcept {
  FunctionInfo found;
  found.handle = handle;
  found.context = &context;
  {
    MutexGuard guard(g_mutex);
    found.is_kernel = find_kernel(handle) != nullptr;
  }
  inspect(&found);  // calls the driver, so without the lock
  MutexGuard guard(g_mutex);
  if (!found.is_kernel && belongs_elsewhere(handle, context)) {
    refuse(&found, DirectReason::kStream);  // the driver will say what it thinks of that
  }
  FunctionInfo* known = find_function(handle, &context);
  return known != nullptr ? known : publish(found);
}

void note_kernel(CUkernel kernel, CUlibrary library) noexcept {
  MutexGuard guard(g_mutex);
  if (KnownKernel* known = find_kernel(kernel); known != nullptr) {
    known->library = library;
    return;
  }
  if (g_kernels == nullptr) g_kernels = new (std::nothrow) Array<KnownKernel>;
  // Without memory for it the kernel is taken for a function, and its layout stays unknown.
  if (g_kernels != nullptr) static_cast<void>(g_kernels->push_back({kernel, library}));
}

void forget_functions_of(void* owner) noexcept {
  MutexGuard guard(g_mutex);
  for (std::atomic<FunctionInfo*>& chain : g_chains) {
    for (FunctionInfo* info = chain.load(std::memory_order_relaxed); info; info = info->next) {
      if (info->owner != owner || is_mutant(Mutant::kHandleReuseUnnoticed)) continue;
      info->alive.store(false, std::memory_order_release);
    }
  }
  forget_kernels_of(owner);
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

void forget_functions_in(const ContextState& context) noexcept {
  MutexGuard guard(g_mutex);
  for (std::atomic<FunctionInfo*>& chain : g_chains) {
    for (FunctionInfo* info = chain.load(std::memory_order_relaxed); info; info = info->next) {
      if (info->context == &context) info->alive.store(false, std::memory_order_release);
    }
  }
}

void refresh_function(CUfunction handle) noexcept {
  MutexGuard guard(g_mutex);
  FunctionInfo* info = g_chains[chain_of(handle)].load(std::memory_order_relaxed);
  for (; info != nullptr; info = info->next) {
    if (info->handle == handle) info->alive.store(false, std::memory_order_release);
  }
}

}  // namespace runtime
