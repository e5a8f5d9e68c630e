// SPDX-License-Identifier: Apache-2.0
// Failures of queued launches that the program has not been told of: their launch calls have
// returned success. Each is told exactly once, in the order in which they happened, by a call that
// CUDA lets report earlier work and whose repetition changes nothing (the rows that tell:
// runtime/driver_entries.def). A call that took effect, or that fails itself, leaves them here. One
// ledger a context. Any thread; takes no lock that is held across a driver call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/driver.h"
#include "runtime/mutex.h"

namespace runtime {

// Failures in all ledgers. Relaxed: a thread is to be told what the program has ordered before its
// call, and that order carries the count too.
extern constinit std::atomic<std::uint32_t> g_untold;

inline bool anything_untold() noexcept {
  return g_untold.load(std::memory_order_relaxed) != 0;
}

// The codes that a context keeps (cuda.h: "the process must be terminated", "the context cannot be
// used"), and those that may be such: every later call returns them.
bool is_fault(CUresult result) noexcept;

class ErrorLedger {
 public:
  void enter(CUresult failure) noexcept;
  // What a call tells that the driver has answered with `called`: the oldest failure, if the answer
  // leaves room for it. An answer that is a fault tells all faults.
  CUresult tell(CUresult called) noexcept;
  // The context is gone, or the process ends. How many had not been told.
  std::uint32_t forget() noexcept;

 private:
  // A run of equal failures. 32: more different ones in a row than a program survives; later ones
  // count as the last.
  struct Run {
    CUresult failure;
    std::uint32_t count;
  };
  static constexpr std::size_t kRuns = 32;

  void drop_faults() noexcept;
  CUresult take() noexcept;

  Mutex mutex_;  // guards the rest; innermost
  Run runs_[kRuns] = {};
  std::size_t size_ = 0;
};

}  // namespace runtime
