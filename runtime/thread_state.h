// SPDX-License-Identifier: Apache-2.0
// What a thread remembers between launches: its current context and the queues of the streams it
// launched on lately. Plain initial-exec thread-locals: a launch reads them without a call
// (docs/performance.md: +0.0 ns over a static).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/driver.h"
#include "runtime/mutants.h"

namespace runtime {

struct ContextState;
class StreamQueue;

struct RememberedQueue {
  CUstream stream = nullptr;
  StreamQueue* queue = nullptr;
  std::uint32_t epoch = 0;  // see g_queue_epoch
};

struct ThreadState {
  // 8 streams, by their handles: more are launched on in turn by few programs; each costs 24 bytes
  // a thread, forgotten one by one at a context switch.
  static constexpr int kRememberedBits = 3;

  // The current context as the driver last told it; null when unknown, until current_context()
  // asks.
  ContextState* context = nullptr;
  std::uint32_t context_epoch = 0;  // when it was told; any thread may have destroyed it since
  RememberedQueue last;
  RememberedQueue remembered[1 << kRememberedBits];
  bool has_run_unknown_code = false;  // and has not said so yet (unknown_code.h)
  // Counted for the driver profile, which looks at differences.
  std::uint32_t graph_launches = 0;   // batches that this thread submitted as a graph
  std::uint32_t direct_launches = 0;  // launches that it did not queue
};

extern thread_local constinit ThreadState t_thread [[gnu::tls_model("initial-exec")]];

// Moves on when a remembered queue may be wrong: a stream or context went away, deferral was
// switched, we forked. Relaxed: a thread that uses a stream another thread destroyed is ordered
// with it by the program.
extern constinit std::atomic<std::uint32_t> g_queue_epoch;

// Does this thread know that `context` is its current one?
inline bool is_current(const ContextState* context) noexcept {
  return t_thread.context == context &&
         t_thread.context_epoch == g_queue_epoch.load(std::memory_order_relaxed);
}

// The context of this thread changed: ask again at the next launch.
inline void forget_thread_context() noexcept {
  t_thread.context = nullptr;
  t_thread.last = {};
  for (RememberedQueue& each : t_thread.remembered) each = {};
}

inline RememberedQueue& remembered_at(CUstream stream) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(stream) * 0x9E3779B97F4A7C15ull;
  return t_thread.remembered[bits >> (64 - ThreadState::kRememberedBits)];
}

// The queue of a stream that this thread has launched on, while nothing has happened to it; else
// null.
inline StreamQueue* remembered_queue(CUstream stream) noexcept {
  const std::uint32_t epoch = g_queue_epoch.load(std::memory_order_relaxed);
  const auto fits = [=](const RememberedQueue& each) noexcept {
    return each.stream == stream && each.epoch == epoch && each.queue != nullptr;
  };
  ThreadState& thread = t_thread;
  if (fits(thread.last)) [[likely]]
    return thread.last.queue;
  const RememberedQueue& other = remembered_at(stream);
  if (!fits(other)) return nullptr;
  thread.last = other;
  return other.queue;
}

// `epoch`: from before the queue was looked up.
inline void remember_queue(CUstream stream, StreamQueue* queue, std::uint32_t epoch) noexcept {
  t_thread.last = remembered_at(stream) = {stream, queue, epoch};
}
inline void forget_remembered_queues() noexcept {
  if (is_mutant(Mutant::kRememberedQueueKept)) return;
  g_queue_epoch.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace runtime
