// SPDX-License-Identifier: Apache-2.0
// What the library knows of a CUDA context: launch limits, its legacy queue, active captures, and
// the order group that keeps the legacy stream and the blocking streams in program order. Never
// freed: a handle that comes back after a destroy or a primary-context reset gets the same object,
// emptied.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/error_ledger.h"

namespace runtime {

class StreamQueue;

// The order group of one context: its legacy queue and its blocking queues are never open at the
// same time (cuda-driver-api, stream synchronization behavior: legacy work waits for all blocking
// streams and holds them back).
class OrderGroup {
 public:
  // False: the other side is open; flush it and try again. Sequentially consistent, so of two
  // threads that open opposite sides at once one sees the other.
  bool try_open_legacy() noexcept {
    std::uint32_t expected = 0;
    return state_.compare_exchange_strong(expected, kLegacy);
  }
  bool try_open_blocking() noexcept {
    std::uint32_t state = state_.load();
    while (state != kLegacy) {
      if (state_.compare_exchange_weak(state, state + 1)) return true;
    }
    return false;
  }
  void close_legacy() noexcept { state_.store(0); }
  void close_blocking() noexcept { state_.fetch_sub(1); }
  bool is_legacy_open() const noexcept { return state_.load() == kLegacy; }
  bool is_blocking_open() const noexcept {
    std::uint32_t state = state_.load();
    return state != 0 && state != kLegacy;
  }

 private:
  static constexpr std::uint32_t kLegacy = 1u << 31;
  std::atomic<std::uint32_t> state_{0};  // kLegacy, or how many blocking queues are open
};

struct ContextState {
  std::atomic<CUcontext> handle{nullptr};
  ContextState* next = nullptr;  // written before the object is published
  OrderGroup group;
  std::atomic<StreamQueue*> legacy_queue{nullptr};
  std::atomic<int> captures{0};  // active stream captures; nothing is queued meanwhile
  // A capture of another context has taken in a stream of this one; counted in `captures`.
  std::atomic<bool> has_joined_capture{false};
  ErrorLedger errors;  // of queued launches, not told yet
  // A fault has been reported, perhaps of this context: nothing is queued until a launch succeeds.
  std::atomic<bool> is_suspect{false};
  std::atomic<std::uint32_t> verified_at{0};  // of g_unknown_code (unknown_code.h)
  std::atomic<bool> limits_known{false};
  std::atomic<bool> direct_only{false};  // green contexts; any thread may find out
  std::uint32_t max_grid[3] = {};
  std::uint32_t max_block[3] = {};
  std::uint32_t max_threads = 0;
  std::uint32_t multiprocessors = 0;  // that the context may use
  bool has_cooperative = false;
  bool has_clusters = false;
};

// The state of the calling thread's current context; null when there is none. Asks the driver only
// after the thread's context may have changed.
ContextState* current_context() noexcept;
// The calling thread's current context may have changed. A thread that remembers a queue asks the
// driver now and keeps it when the context is the same (frameworks set theirs before every call).
void context_switched() noexcept;
// Find or make; null only when out of memory.
ContextState* context_state(CUcontext handle) noexcept;
// Asks the driver for the launch limits once. The context must be current. False: unknown.
bool read_limits(ContextState& context) noexcept;

extern constinit std::atomic<ContextState*> g_contexts;  // append-only list

}  // namespace runtime
