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
// 4: enough for a change now and then; against a thread that changes the function in a loop no
// number is.
constexpr int kLearnAttempts = 4;

// A version that is being made. It holds what the driver said at different moments.
struct Learning {
  CUfunction handle;
  const ContextState* context;
  CodeOwner owner;
  bool is_spoiled = false;  // what was asked may have changed since
  Learning* next = nullptr;
};

constinit std::atomic<FunctionInfo*> g_chains[kChains]{};  // only versions in force
constinit Mutex g_mutex;  // guards writing to the chains, and all that follows
constinit std::uint64_t g_next_token = 1;
constinit Learning* g_learning = nullptr;
constinit FunctionInfo* g_retired = nullptr;
constinit std::uint64_t g_last_retired = 0;

std::size_t chain_of(CUfunction handle) noexcept {
  auto bits = reinterpret_cast<std::uintptr_t>(handle);
  return ((bits >> 4) * 0x9E3779B97F4A7C15ull >> 40) % kChains;
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
  if (!info->owner.is_known()) return refuse(info, DirectReason::kUnknownLayout);
  CUfunction function = resolve(*info);
  if (function == nullptr || !read_layout(info)) {
    return refuse(info, DirectReason::kUnknownLayout);
  }
  info->loaded = load(*info, function);
  if (!read_limits(info, function)) return refuse(info, DirectReason::kAttributes);
  if (info->owner.is_tainted) return refuse(info, DirectReason::kTextureReference);
  info->queueable = true;
}

// Calls the driver.
FunctionInfo* make_version(const Learning& learning) noexcept {
  auto* info = new (std::nothrow) FunctionInfo;
  if (info == nullptr) return nullptr;
  info->handle = learning.handle;
  info->context = learning.context;
  info->owner = learning.owner;
  info->is_kernel = reinterpret_cast<CUfunction>(learning.owner.kernel) == learning.handle;
  inspect(info);
  return info;
}

// With g_mutex held, like all below.
void begin(Learning* learning) noexcept {
  learning->next = g_learning;
  g_learning = learning;
}

void end(Learning* learning) noexcept {
  Learning** link = &g_learning;
  while (*link != learning) link = &(*link)->next;
  *link = learning->next;
}

// A CUfunction belongs to one context.
bool belongs_elsewhere(const FunctionInfo& info) noexcept {
  if (info.is_kernel) return false;
  FunctionInfo* other = g_chains[chain_of(info.handle)].load(std::memory_order_relaxed);
  for (; other != nullptr; other = other->next.load(std::memory_order_relaxed)) {
    if (other->handle == info.handle && other->context != info.context && !other->is_kernel &&
        other->queueable) {
      return true;
    }
  }
  return false;
}

void publish(FunctionInfo* info) noexcept {
  info->token = g_next_token++ * 0x9E3779B97F4A7C15ull;
  // The driver will say what it thinks of that.
  if (belongs_elsewhere(*info)) refuse(info, DirectReason::kStream);
  info->alive.store(true, std::memory_order_relaxed);
  std::atomic<FunctionInfo*>& chain = g_chains[chain_of(info->handle)];
  info->next.store(chain.load(std::memory_order_relaxed), std::memory_order_relaxed);
  // Release pairs with the acquire in find_function(): what it finds is complete.
  chain.store(info, std::memory_order_release);
}

void retire(FunctionInfo* info) noexcept {
  // Release pairs with the acquire of those who append: a queue is looked at behind this.
  info->alive.store(false, std::memory_order_release);
  info->retired_at = ++g_last_retired;
  info->next_retired = g_retired;
  g_retired = info;
}

// Readers may stand on a version that is taken out: its own link stays.
template <typename Claim>
std::size_t retire_if(Claim claim) noexcept {
  std::size_t retired = 0;
  for (std::atomic<FunctionInfo*>& chain : g_chains) {
    std::atomic<FunctionInfo*>* link = &chain;
    while (FunctionInfo* info = link->load(std::memory_order_relaxed)) {
      if (!claim(info->handle, info->context, info->owner)) {
        link = &info->next;
        continue;
      }
      // Release pairs with the acquire in find_function(): the rest of the chain is complete.
      link->store(info->next.load(std::memory_order_relaxed), std::memory_order_release);
      retire(info);
      ++retired;
    }
  }
  for (Learning* learning = g_learning; learning != nullptr; learning = learning->next) {
    if (is_mutant(Mutant::kChangeWhileLearning)) break;
    learning->is_spoiled |= claim(learning->handle, learning->context, learning->owner);
  }
  return retired;
}

}  // namespace

bool update_bytes(std::byte* to, const void* from, std::size_t size) noexcept {
  if (std::memcmp(to, from, size) == 0) return false;
  std::memcpy(to, from, size);
  return true;
}

const FunctionInfo* find_function(CUfunction handle, const ContextState* context) noexcept {
  const FunctionInfo* info = g_chains[chain_of(handle)].load(std::memory_order_acquire);
  while (info != nullptr && !(info->handle == handle && info->context == context)) {
    info = info->next.load(std::memory_order_acquire);
  }
  return info;
}

bool is_function_loaded(CUfunction handle, const ContextState* context) noexcept {
  const MutexGuard guard(g_mutex);  // instead of a FunctionReading
  const FunctionInfo* info = find_function(handle, context);
  return info != nullptr && info->loaded.load(std::memory_order_relaxed);
}

const FunctionInfo* learn_function(CUfunction handle, const ContextState& context) noexcept {
  for (int attempt = 1;; ++attempt) {
    Learning learning{handle, &context, owner_of(handle)};
    {
      const MutexGuard guard(g_mutex);
      begin(&learning);
    }
    FunctionInfo* made = make_version(learning);  // calls the driver, so without the lock
    {
      const MutexGuard guard(g_mutex);
      end(&learning);
      const FunctionInfo* known = find_function(handle, &context);
      if (known == nullptr && made != nullptr && !learning.is_spoiled) {
        publish(made);
        return made;
      }
      if (known == nullptr && made != nullptr && attempt == kLearnAttempts) {
        refuse(made, DirectReason::kAttributes);
        retire(made);
        return made;
      }
      if (known != nullptr || made == nullptr) {
        delete made;
        return known;
      }
    }
    delete made;
  }
}

std::size_t retire_functions(const CodeScope& scope) noexcept {
  const MutexGuard guard(g_mutex);
  return retire_if([&scope](CUfunction handle, const ContextState*, const CodeOwner& owner) {
    return scope.reaches(handle, owner);
  });
}

void retire_functions_in(const ContextState& context) noexcept {
  const MutexGuard guard(g_mutex);
  retire_if([&context](CUfunction, const ContextState* learned_in, const CodeOwner&) {
    return learned_in == &context;
  });
}

std::uint64_t last_retired_function() noexcept {
  const MutexGuard guard(g_mutex);
  return g_retired == nullptr ? 0 : g_last_retired;
}

void free_retired_functions(std::uint64_t last) noexcept {
  const MutexGuard guard(g_mutex);
  FunctionInfo** link = &g_retired;
  while (FunctionInfo* info = *link) {
    const bool is_named =
        info->users.load(std::memory_order_acquire) != 0 && !is_mutant(Mutant::kOldVersionFreed);
    if (info->retired_at > last || is_named) {
      link = &info->next_retired;
      continue;
    }
    *link = info->next_retired;
    delete info;
  }
}

std::size_t count_retired_functions() noexcept {
  const MutexGuard guard(g_mutex);
  std::size_t count = 0;
  for (const FunctionInfo* info = g_retired; info != nullptr; info = info->next_retired) ++count;
  return count;
}

}  // namespace runtime
