// SPDX-License-Identifier: Apache-2.0
#include "runtime/unknown_code.h"

#include "runtime/deferral.h"
#include "runtime/driver_scope.h"
#include "runtime/stream_map.h"
#include "runtime/thread_state.h"

namespace runtime {

constinit std::atomic<std::uint32_t> g_unknown_code{0};

namespace {

// The handle may be another stream's by now: it need not be of the same context or kind.
bool is_unchanged(const StreamQueue& queue, const ContextState& context) noexcept {
  CUcontext owner = nullptr;
  unsigned flags = 0;
  if (real.cuStreamGetCtx(queue.stream(), &owner) != CUDA_SUCCESS ||
      real.cuStreamGetFlags(queue.stream(), &flags) != CUDA_SUCCESS) {
    return false;
  }
  const bool is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  return owner == context.handle.load(std::memory_order_relaxed) &&
         is_blocking == (queue.kind() == StreamKind::kBlocking);
}

void verify_streams(ContextState& context) noexcept {
  for_each_queue(&context, [&](StreamQueue& queue) {
    if (queue.kind() == StreamKind::kLegacy || queue.stream() == nullptr) return;
    bool is_same = false;
    {
      const DriverScope scope(&context, true);
      is_same = is_unchanged(queue, context);
    }
    if (!is_same) stream_destroyed(queue.stream());
  });
}

bool any_stream_captures(const ContextState& context) noexcept {
  bool any = false;
  for_each_queue(&context,
                 [&](StreamQueue& queue) { any = any || is_capturing(queue.stream(), false); });
  return any;
}

}  // namespace

void unknown_code_runs(bool is_tame) noexcept {
  forget_thread_context();
  if (is_tame) return;
  g_unknown_code.fetch_add(1);
  // What it does comes after this: its own thread says so once more.
  t_thread.has_run_unknown_code = true;
  forget_remembered_queues();
}

DirectReason verify_context(ContextState& context) noexcept {
  if (t_thread.has_run_unknown_code) {
    t_thread.has_run_unknown_code = false;
    g_unknown_code.fetch_add(1);
  }
  const std::uint32_t now = g_unknown_code.load();
  if (context.verified_at.load() != now) {
    verify_streams(context);
    forget_code_of(context);
    // Only now: a launch of another thread must not rely on what is still being asked.
    context.verified_at.store(now);
  }
  return any_stream_captures(context) ? DirectReason::kCapture : DirectReason::kCount;
}

}  // namespace runtime
