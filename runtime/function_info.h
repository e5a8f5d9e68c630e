// SPDX-License-Identifier: Apache-2.0
// What the library knows of each function handle it has seen launched: parameter layout, limits,
// owner. An entry of the table is a version: it never changes, and what changes replaces it.
// Sequences count the versions they name; readers without a sequence say so on their queue
// (FunctionReading). A version that was replaced is freed when neither is left.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/array.h"
#include "runtime/code_owners.h"
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

// The first cache line is what launches read; all that changes stands in the second.
struct alignas(64) FunctionInfo {
  Array<ParameterSpec> parameters;
  CUfunction handle = nullptr;            // a CUfunction, or a CUkernel cast to one
  const ContextState* context = nullptr;  // it was learned in; what follows is true there alone
  std::uint64_t token = 0;                // identity of the version
  std::uint32_t max_threads = 0;          // per block
  std::uint32_t max_dynamic_shared = 0;   // bytes
  std::uint32_t argument_bytes = 0;
  bool is_kernel = false;  // CUkernel: no context of its own
  bool queueable = false;
  bool allows_large_clusters = false;
  DirectReason reason = DirectReason::kUnknownLayout;  // why not queueable

  // False once the version has been taken out of the table: its code is unloaded, or it launches
  // differently from now on. Never true again.
  std::atomic<bool> alive{false};
  mutable std::atomic<bool> loaded{false};  // code is on the device, or a launch has put it there
  mutable std::atomic<std::uint32_t> users{0};  // launches in sequences
  // What the device holds of it at once, with the question (launch_attributes.cpp). 0: not asked.
  mutable std::atomic<std::uint64_t> resident{0};
  CodeOwner owner;
  std::atomic<FunctionInfo*> next{nullptr};  // hash chain
  FunctionInfo* next_retired = nullptr;      // with the mutex of the table, like the next
  std::uint64_t retired_at = 0;

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

  void hold() const noexcept { users.fetch_add(1, std::memory_order_relaxed); }
  // Release pairs with the acquire in free_retired_functions().
  void let_go() const noexcept { users.fetch_sub(1, std::memory_order_release); }

 private:
  template <typename At>
  bool update(std::byte* stored, At at) const noexcept;
};

// While it lives the versions that find_function() returns are not freed. `readers` is the count
// of the queue that the launch is for: threads on different streams share no line.
class FunctionReading {
 public:
  // Sequentially consistent, as is the look in free_old_functions(): a reader that is not seen
  // there finds no version that had been taken out before.
  explicit FunctionReading(std::atomic<std::uint32_t>& readers) noexcept : readers_(readers) {
    readers_.fetch_add(1);
  }
  // Release pairs with that look: what was read there is freed behind it.
  ~FunctionReading() { readers_.fetch_sub(1, std::memory_order_release); }
  FunctionReading(const FunctionReading&) = delete;
  FunctionReading& operator=(const FunctionReading&) = delete;

 private:
  std::atomic<std::uint32_t>& readers_;
};

// The version in force in that context, or null. No lock: any thread, within a FunctionReading.
const FunctionInfo* find_function(CUfunction handle, const ContextState* context) noexcept;
// Whether it is known and its code is on the device.
bool is_function_loaded(CUfunction handle, const ContextState* context) noexcept;

// Makes a version: asks the driver for layout, limits and owner and loads the code, as a bare first
// launch would do now. `context` must be current: the one the function will run in. Calls the
// driver; nothing may be queued that the load could wait for. A function that others change all the
// while is not queueable this time. Null only when out of memory. Within a FunctionReading.
const FunctionInfo* learn_function(CUfunction handle, const ContextState& context) noexcept;

// Takes the versions that it reaches out of the table. How many there were.
std::size_t retire_functions(const CodeScope& scope) noexcept;
// The context has gone and its modules with it; their handles may come back as other functions.
void retire_functions_in(const ContextState& context) noexcept;

// Of the versions taken out so far the latest; 0: none waits to be freed.
std::uint64_t last_retired_function() noexcept;
// Frees those up to `last` that no sequence names. No reader may be left that was there when they
// were taken out.
void free_retired_functions(std::uint64_t last) noexcept;
std::size_t count_retired_functions() noexcept;

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
