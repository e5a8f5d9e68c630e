// SPDX-License-Identifier: Apache-2.0
// What a thread remembers between launches: its current context and the queue of the stream it
// launched on last. Plain initial-exec thread-locals: a launch reads them without a call
// (docs/performance.md: +0.0 ns over a static).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/driver.h"
#include "runtime/mutants.h"

namespace runtime {

struct ContextState;
class StreamQueue;

struct ThreadState {
  // The current context as the driver last told it; null when unknown, until current_context()
  // asks.
  ContextState* context = nullptr;
  std::uint32_t context_epoch = 0;  // when it was told; any thread may have destroyed it since
  CUstream last_stream = nullptr;
  StreamQueue* last_queue = nullptr;
  std::uint32_t epoch = 0;  // of last_queue; see g_queue_epoch
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
  t_thread.last_queue = nullptr;
}
inline void forget_remembered_queues() noexcept {
  if (is_mutant(Mutant::kRememberedQueueKept)) return;
  g_queue_epoch.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace runtime
