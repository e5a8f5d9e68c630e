// SPDX-License-Identifier: Apache-2.0
// Where a launch is queued or refused. The first function is the launch path of steady state: no
// allocation, no system call, no lock but the one of the stream's own queue.
#pragma once

#include "runtime/stream_queue.h"
#include "runtime/thread_state.h"

namespace runtime {

// True: the launch was what the stream's recording expected, and is queued. Everything else is
// queue_launch()'s.
inline bool queue_expected(LaunchKey key, const LaunchShape& shape, CUstream stream,
                           void** kernel_params) noexcept {
  ThreadState& thread = t_thread;
  if (thread.last_queue == nullptr || thread.last_stream != stream || kernel_params == nullptr ||
      thread.epoch != g_queue_epoch.load(std::memory_order_relaxed)) {
    return false;
  }
  QueueGuard guard(thread.last_queue->lock());
  return thread.last_queue->append_expected(guard, key, shape, kernel_params);
}

struct LaunchOutcome {
  // Else the caller submits it, behind what flush_for_launch() sends ahead.
  bool is_queued;
  DirectReason reason;             // when not queued
  CUresult result = CUDA_SUCCESS;  // when queued: of a launch that had to be made at once
};

// Queues the launch if nothing speaks against it. `extra` as for cuLaunchKernel. No lock held by
// the caller.
LaunchOutcome queue_launch(const Launch& launch, void** extra, bool per_thread_default) noexcept;

// Ahead of a launch that goes directly: submits what it must run behind, and counts it.
void flush_for_launch(CUstream stream, bool per_thread_default, DirectReason reason) noexcept;

}  // namespace runtime
