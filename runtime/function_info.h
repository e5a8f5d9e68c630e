// SPDX-License-Identifier: Apache-2.0
// What the library knows of each function handle it has seen launched: parameter layout, limits,
// owner. Entries are found without a lock, made under one, and never freed: a handle that dies
// keeps its entry, which is revived with a new token when the driver hands the same value out
// again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/array.h"
#include "runtime/counters.h"
#include "runtime/driver.h"

namespace runtime {

struct ContextState;

// One kernel parameter: where the driver wants it in the packed buffer.
struct ParameterSpec {
  std::uint16_t offset;  // bytes; the whole buffer is at most 32,764 (CUDA 12.1 and later)
  std::uint16_t size;
};

// Arguments as they lie in a launch's `extra` buffer: each parameter at its offset.
struct PackedArguments {
  const std::byte* bytes = nullptr;
  std::size_t size = 0;
};

struct FunctionInfo {
  CUfunction handle = nullptr;            // a CUfunction, or a CUkernel cast to one
  const ContextState* context = nullptr;  // it was learned in; what follows is true there alone
  std::atomic<bool> alive{false};         // false once its module or library is unloaded
  bool is_kernel = false;                 // CUkernel: no context of its own
  bool queueable = false;
  bool allows_large_clusters = false;
  mutable std::atomic<bool> loaded{false};  // code is on the device, or a launch has put it there
  DirectReason reason = DirectReason::kUnknownLayout;  // why not queueable
  void* owner = nullptr;                               // CUmodule, or CUlibrary of a kernel
  std::uint64_t token = 0;               // identity: unique for each life of the handle
  std::uint32_t max_threads = 0;         // per block
  std::uint32_t max_dynamic_shared = 0;  // bytes
  std::uint32_t argument_bytes = 0;
  // What the device holds of it at once, with the question (launch_attributes.cpp). 0: not asked.
  mutable std::atomic<std::uint64_t> resident{0};
  Array<ParameterSpec> parameters;
  FunctionInfo* next = nullptr;  // hash chain; written before the entry is published

  // Copies the arguments behind `kernel_params` over `stored` and tells whether any byte differed.
  bool update_arguments(std::byte* stored, void* const* kernel_params) const noexcept {
    return update(stored, [&](std::size_t i) noexcept { return kernel_params[i]; });
  }
  bool update_arguments(std::byte* stored, PackedArguments packed) const noexcept {
    return update(stored, [&](std::size_t i) noexcept -> const void* {
      return packed.bytes + parameters[i].offset;
    });
  }
  // Whether the launch has said what the parameters are.
  bool takes(void* const* kernel_params) const noexcept {
    return kernel_params != nullptr || parameters.empty();
  }
  bool takes(PackedArguments packed) const noexcept {
    return packed.bytes != nullptr && packed.size == argument_bytes;
  }

 private:
  template <typename At>
  bool update(std::byte* stored, At at) const noexcept;
};

// Known in that context and alive, or null. No lock: any thread.
FunctionInfo* find_function(CUfunction handle, const ContextState* context) noexcept;

// Makes or revives the entry: asks the driver for layout, limits and owner and loads the code, as a
// bare first launch would do now. `context` must be current: the one the function will run in.
// Calls the driver; nothing may be queued that the load could wait for. Null only when out of
// memory.
FunctionInfo* learn_function(CUfunction handle, const ContextState& context) noexcept;

// Remembers that the handle is a CUkernel (returned by cuLibraryGetKernel or
// cuLibraryEnumerateKernels) until the library is unloaded.
void note_kernel(CUkernel kernel, CUlibrary library) noexcept;

// The module or library is gone, or its functions may not be queued any more.
void forget_functions_of(void* owner) noexcept;
void taint_functions_of(void* owner, DirectReason reason) noexcept;
// The context has gone and its modules with it; their handles may come back as other functions.
void forget_functions_in(const ContextState& context) noexcept;
// A function attribute changed: limits are asked again at the next launch.
void refresh_function(CUfunction handle) noexcept;

// Arguments that are neither 4 nor 8 bytes: rarer, and the call to libc costs more than the call to
// here.
[[gnu::noinline]] bool update_bytes(std::byte* to, const void* from, std::size_t size) noexcept;

template <typename Word>
inline Word update_word(std::byte* to, const void* from) noexcept {
  Word now, then;
  std::memcpy(&now, from, sizeof now);
  std::memcpy(&then, to, sizeof then);
  std::memcpy(to, &now, sizeof now);  // always: a store costs less than a branch that guesses wrong
  return now ^ then;
}

// `at(i)` is where the program has parameter i.
template <typename At>
inline bool FunctionInfo::update(std::byte* stored, At at) const noexcept {
  std::uint64_t difference = 0;
  const ParameterSpec* spec = parameters.data();
  const std::size_t count = parameters.size();
  // By size, not memcmp: 13-15 ns for 8 arguments against 30 ns (docs/performance.md).
  for (std::size_t i = 0; i < count; ++i, ++spec) {
    std::byte* to = stored + spec->offset;
    if (spec->size == 8) [[likely]] {
      difference |= update_word<std::uint64_t>(to, at(i));
    } else if (spec->size == 4) {
      difference |= update_word<std::uint32_t>(to, at(i));
    } else {
      difference |= update_bytes(to, at(i), spec->size) ? 1 : 0;
    }
  }
  return difference != 0;
}

}  // namespace runtime
