// SPDX-License-Identifier: Apache-2.0
// Where a launch is queued or refused. The first function is the launch path of steady state: no
// allocation, no system call, no lock but the one of the stream's own queue.
#pragma once

#include "runtime/stream_queue.h"
#include "runtime/thread_state.h"

namespace runtime {

// True: the launch was what the stream's recording expected, and is queued. Everything else is
// queue_launch()'s.
// `arguments`: the kernel_params, or a PackedArguments.
template <typename Arguments>
inline bool queue_expected(LaunchKey key, const LaunchShape& shape, CUstream stream,
                           Arguments arguments) noexcept {
  StreamQueue* queue = remembered_queue(stream);
  if (queue == nullptr) [[unlikely]]
    return false;
  const QueueGuard guard(queue->lock());
  return queue->append_expected(guard, key, shape, arguments);
}

// What an `extra` of cuLaunchKernel says; no bytes unless it has the documented form.
inline PackedArguments read_packed(void** extra) noexcept {
  const std::byte* bytes = nullptr;
  const std::size_t* size = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      bytes = static_cast<const std::byte*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const std::size_t*>(extra[1]);
    } else {
      return {};
    }
  }
  return size != nullptr ? PackedArguments{bytes, *size} : PackedArguments{};
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
