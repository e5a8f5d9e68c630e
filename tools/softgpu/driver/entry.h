// SPDX-License-Identifier: Apache-2.0
// What every driver entry does first and last: count the call, make progress when the order policy
// says so, refuse it before cuInit and in host functions, take the driver lock, turn exceptions
// into a CUresult, and spend its host cost.
//
//   extern "C" CUresult CUDAAPI cuFoo(int* out) {
//     return softgpu::call(EntryId::cuFoo, [&]() -> CUresult { ...; return CUDA_SUCCESS; });
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "tools/softgpu/driver/state.h"

namespace softgpu {

// One enumerator per exported symbol, in table order.
enum class EntryId : std::uint16_t {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream) symbol,
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
};

inline constexpr std::size_t kEntryCount = 0
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream) +1
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
    ;

struct EntryRow {
  const char* symbol;
  const char* api;      // the name cuGetProcAddress knows
  int since;            // 4000 = CUDA 4.0
  const char* flavour;  // "", "_ptsz" or "_ptds"
  constexpr bool per_thread_default() const { return flavour[0] != '\0'; }
};
extern const EntryRow kEntryTable[kEntryCount];
inline const EntryRow& row(EntryId id) {
  return kEntryTable[static_cast<std::size_t>(id)];
}

// Prologue and epilogue of one call. Costs two loads when no counter, cost profile or progress is
// asked for.
class Call {
 public:
  explicit Call(EntryId id) {
    if (watched.load(std::memory_order_relaxed)) [[unlikely]]
      begin(id);
  }
  ~Call() {
    if (is_watched_) [[unlikely]]
      end();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // CUDA_SUCCESS, or why no entry may do anything now: not initialised, or in a host function.
  static CUresult refusal();

  // True until the options are read, then whether anything wants to see calls.
  static std::atomic<bool> watched;

 private:
  void begin(EntryId id);
  void end();

  bool is_watched_ = false;
  std::uint64_t start_ns_ = 0;
};

// The body of the exception handler of call(): what the exception in flight means.
CUresult result_of_exception() noexcept;

// Runs `body` with the driver lock held.
template <class Body>
CUresult call(EntryId id, Body&& body) noexcept {
  Call prologue(id);
  try {
    if (const CUresult refused = Call::refusal(); refused != CUDA_SUCCESS) return refused;
    DriverLock lock;
    return body();
  } catch (...) {
    return result_of_exception();
  }
}

// Runs `body` without the lock, even before cuInit: for entries that touch no driver object.
template <class Body>
CUresult call_unlocked(EntryId id, Body&& body) noexcept {
  Call prologue(id);
  try {
    return body();
  } catch (...) {
    return result_of_exception();
  }
}

// Adds host cost for `nodes` graph nodes to the call in progress on this thread, by the cost
// profile (driver/costs.h). Free when no profile is chosen.
void charge_nodes(std::size_t nodes);

}  // namespace softgpu
