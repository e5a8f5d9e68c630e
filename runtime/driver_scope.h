// SPDX-License-Identifier: Apache-2.0
// Our own driver calls on behalf of a queue: makes the queue's context current, takes the reentry
// guard so that hooks hit from inside the driver only forward, and while the program captures
// anywhere exchanges the thread's capture mode for relaxed (cuThreadExchangeStreamCaptureMode: a
// global capture bars unsafe calls in every thread). Restores all of it.
#pragma once

#include <cerrno>

#include "runtime/context_state.h"
#include "runtime/mutants.h"
#include "runtime/reentry.h"
#include "runtime/thread_state.h"
#include "runtime/unknown_code.h"

namespace runtime {

// Active captures of the program, all contexts.
extern constinit std::atomic<int> g_active_captures;

class DriverScope {
 public:
  // `always_relaxed`: for calls a bare program would not make here (graph building, queries).
  explicit DriverScope(const ContextState* context, bool always_relaxed = false) noexcept {
    saved_errno_ = errno;
    if (context != nullptr && !is_current(context) && !is_mutant(Mutant::kWrongContext)) {
      pushed_ =
          real.cuCtxPushCurrent_v2(context->handle.load(std::memory_order_relaxed)) == CUDA_SUCCESS;
    }
    if (is_mutant(Mutant::kCaptureModeKept)) return;
    if (always_relaxed || g_active_captures.load(std::memory_order_relaxed) != 0 ||
        has_unknown_code_run()) {
      exchanged_ = real.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
    }
  }
  ~DriverScope() {
    if (exchanged_) real.cuThreadExchangeStreamCaptureMode(&mode_);
    if (pushed_) {
      CUcontext popped = nullptr;
      real.cuCtxPopCurrent_v2(&popped);
    }
    errno = saved_errno_;
  }
  DriverScope(const DriverScope&) = delete;
  DriverScope& operator=(const DriverScope&) = delete;

 private:
  ReentryGuard guard_;
  int saved_errno_ = 0;
  bool pushed_ = false;
  bool exchanged_ = false;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace runtime
