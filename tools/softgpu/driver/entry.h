// SPDX-License-Identifier: Apache-2.0
// What every driver entry does first and last: count the call, fail it on demand, make progress
// when the order policy says so, refuse it before cuInit and in host functions, take the driver
// lock, turn exceptions into a CUresult, note misuse, and spend its host cost.
//
//   extern "C" CUresult CUDAAPI cuFoo(int* out) {
//     return softgpu::call(EntryId::cuFoo, [&]() -> CUresult { ...; return CUDA_SUCCESS; });
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

#include "tools/softgpu/driver/entry_table.h"
#include "tools/softgpu/driver/state.h"
#include "tools/softgpu/ptx/float_environment.h"

namespace softgpu {

// Prologue and epilogue of one call. Costs two loads and two looks at the floating-point
// environment when nothing is asked for that has to see calls.
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

  // CUDA_SUCCESS, or why the call must not do anything: it is to fail, or this driver lacks it.
  CUresult verdict() const { return verdict_; }
  // CUDA_SUCCESS, or why no entry may do anything now: not initialised, or in a host function.
  static CUresult refusal();
  // Every result passes through here.
  CUresult leave(CUresult code) const {
    if (code != CUDA_SUCCESS && is_watched_) [[unlikely]]
      note_result(code);
    return code;
  }

  // The watched call that runs on this thread.
  static std::optional<EntryId> current();

  // True until the options are read, then whether anything wants to see calls.
  static std::atomic<bool> watched;

 private:
  void begin(EntryId id);
  void end();
  void note_result(CUresult code) const;

  // All work of the device that the program's threads do, they do in a call.
  const DefaultFloats floats_;
  bool is_watched_ = false;
  EntryId id_{};
  CUresult verdict_ = CUDA_SUCCESS;
  std::uint64_t start_ns_ = 0;
};

// The body of the exception handler of call(): what the exception in flight means.
CUresult result_of_exception() noexcept;

// Runs `body` with the driver lock held.
template <class Body>
CUresult call(EntryId id, Body&& body) noexcept {
  Call prologue(id);
  try {
    if (prologue.verdict() != CUDA_SUCCESS) return prologue.verdict();
    if (const CUresult refused = Call::refusal(); refused != CUDA_SUCCESS) return refused;
    DriverLock lock;
    return prologue.leave(body());
  } catch (...) {
    return prologue.leave(result_of_exception());
  }
}

// Runs `body` without the lock, even before cuInit: for entries that touch no driver object.
template <class Body>
CUresult call_unlocked(EntryId id, Body&& body) noexcept {
  Call prologue(id);
  try {
    if (prologue.verdict() != CUDA_SUCCESS) return prologue.verdict();
    return prologue.leave(body());
  } catch (...) {
    return prologue.leave(result_of_exception());
  }
}

// Adds host cost for `nodes` graph nodes to the call in progress on this thread, by the cost
// profile (driver/costs.h). Free when no profile is chosen.
void charge_nodes(std::size_t nodes);

}  // namespace softgpu
