// SPDX-License-Identifier: Apache-2.0
#include "runtime/deferral.h"

#include "runtime/deadline.h"
#include "runtime/driver_scope.h"
#include "runtime/flush.h"
#include "runtime/flush_queues.h"
#include "runtime/function_settings.h"
#include "runtime/log.h"
#include "runtime/lookups.h"
#include "runtime/mutants.h"

namespace runtime {

constinit std::atomic<int> g_active_captures{0};

namespace {

enum class State : std::uint8_t { kOff, kQueueing, kStopped };

// Relaxed readers: a thread with a late view queues one launch more, which the flush of
// stop_queueing() or the next submission point sends on.
constinit std::atomic<State> g_state{State::kOff};
constinit std::atomic<bool> g_may_queue{false};  // a stream that asks for it may queue
constinit std::atomic<bool> g_is_timing{false};  // the profiler times each launch

void purge_all(StreamQueue& queue, const SubmitTurn& turn, FlushReason reason) noexcept {
  queue.close(turn, reason);
  DriverScope scope(queue.context(), true);
  queue.purge(turn, BatchSink::Purge::kAll);
}

// Not waiting for somebody who submits just now: he does it when he is done.
void purge_dead_functions(StreamQueue& queue) noexcept {
  for (;;) {
    const SubmitTurn turn = SubmitTurn::at_once(queue);
    if (turn) return queue.purge_dead_functions(turn);
    if (queue.leave_purge_to_holder()) return;
  }
}

// Taken out of the table first: a launch that has found the old version cannot append it behind
// this.
void replace(const CodeScope& scope) noexcept {
  if (retire_functions(scope) == 0) return;
  for_each_queue(nullptr, [](StreamQueue& queue) { purge_dead_functions(queue); });
  free_old_functions();
}

// The same for code that is about to go: no graph of ours outlives it.
void remove(const CodeScope& scope) noexcept {
  if (retire_functions(scope) == 0) return;
  for_each_queue(nullptr, [](StreamQueue& queue) {
    const SubmitTurn turn(queue);
    queue.purge_dead_functions(turn);
  });
  free_old_functions();
}

}  // namespace

bool start(const Options& options) noexcept {
  bool may_queue = options.defer != DeferMode::kNever && !options.launch_blocking &&
                   !options.is_timing_launches();
  g_is_timing.store(options.is_timing_launches(), std::memory_order_relaxed);
  bool by_default = may_queue && options.defer == DeferMode::kAll;
  if (may_queue) Deadline::configure(options.deadline_us);
  set_default_deferral(by_default);
  g_state.store(by_default ? State::kQueueing : State::kOff, std::memory_order_relaxed);
  g_may_queue.store(may_queue);
  return by_default;
}

CUresult set_deferred(CUstream stream, bool deferred) noexcept {
  CUresult submitted = deferred ? CUDA_SUCCESS : submit_stream(stream);
  StreamQueue* queue = find_or_make_stream(stream, false).queue;
  if (queue == nullptr) return submitted;
  {
    const SubmitTurn turn(*queue);
    if (!deferred) queue->close(turn, FlushReason::kApi);
    queue->set_deferred(deferred);
  }
  State off = State::kOff;
  if (deferred && g_may_queue.load()) g_state.compare_exchange_strong(off, State::kQueueing);
  return submitted;
}

bool is_queueing() noexcept {
  return g_state.load(std::memory_order_relaxed) == State::kQueueing;
}

DirectReason queueing_stopped_reason() noexcept {
  if (g_state.load(std::memory_order_relaxed) == State::kStopped) return DirectReason::kStopped;
  return g_is_timing.load(std::memory_order_relaxed) ? DirectReason::kProfiler
                                                     : DirectReason::kNotDeferred;
}

void stop_queueing(const char* why) noexcept {
  g_may_queue.store(false);
  if (g_state.exchange(State::kStopped) == State::kQueueing) {
    warn("queueing stops for this process: %s", why);
  }
  forget_remembered_queues();
  flush_queues(nullptr, FlushReason::kStopped);
}

void forked_child() noexcept {
  g_may_queue.store(false);
  g_state.store(State::kStopped, std::memory_order_relaxed);
  g_nonempty_queues.store(0, std::memory_order_relaxed);
  forget_remembered_queues();
  forget_thread_context();
  Deadline::forget();
}

std::uint32_t flush_at_exit() noexcept {
  flush_for_exit();
  Deadline::stop();
  // Launches of threads that still run go directly from here on; what they queued meanwhile goes
  // now.
  g_may_queue.store(false);
  State queueing = State::kQueueing;
  g_state.compare_exchange_strong(queueing, State::kStopped);
  forget_remembered_queues();
  flush_for_exit();
  std::uint32_t untold = 0;
  ContextState* context = g_contexts.load(std::memory_order_acquire);
  for (; context != nullptr; context = context->next) untold += context->errors.forget();
  return untold;
}

bool is_capturing(CUstream stream, bool per_thread_default) noexcept {
  const ReentryGuard guard;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = per_thread_default ? real.cuStreamIsCapturing_ptsz(stream, &status)
                                       : real.cuStreamIsCapturing(stream, &status);
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

ContextState* capture_begins(CUstream stream, bool per_thread_default) noexcept {
  ContextState* context = find_or_make_stream(stream, per_thread_default).context;
  if (is_mutant(Mutant::kCaptureUnnoticed)) return nullptr;
  g_active_captures.fetch_add(1);
  if (context == nullptr) return nullptr;
  context->captures.fetch_add(1);
  if (is_mutant(Mutant::kCaptureFlushDropped)) return context;
  flush_queues(context, FlushReason::kCapture);
  return context;
}

void capture_began(CUstream stream, bool per_thread_default) noexcept {
  StreamTarget target = find_stream(stream, per_thread_default);
  if (target.queue != nullptr) target.queue->is_capture_origin.store(true);
}

ContextState* capture_of(CUstream stream) noexcept {
  StreamTarget target = find_stream(stream, false);
  bool is_origin = target.queue != nullptr && target.queue->is_capture_origin.load();
  return is_origin ? target.context : nullptr;
}

void capture_ended_on(CUstream stream, bool per_thread_default) noexcept {
  StreamTarget target = find_stream(stream, per_thread_default);
  // One that an unknown entry began was not counted.
  if (target.queue != nullptr && !target.queue->is_capture_origin.exchange(false) &&
      has_unknown_code_run()) {
    return;
  }
  capture_ended(target.context);
}

void capture_ended(ContextState* context) noexcept {
  if (is_mutant(Mutant::kCaptureEndUnnoticed)) return;
  if (context != nullptr) context->captures.fetch_sub(1);
  if (g_active_captures.fetch_sub(1) != 1) return;
  ContextState* joined = g_contexts.load(std::memory_order_acquire);
  for (; joined != nullptr; joined = joined->next) {
    if (joined->has_joined_capture.exchange(false)) joined->captures.fetch_sub(1);
  }
}

void stream_waited(CUstream stream, bool per_thread_default) noexcept {
  if (g_active_captures.load(std::memory_order_relaxed) == 0) return;
  ContextState* context = find_stream(stream, per_thread_default).context;
  if (context == nullptr || context->captures.load() != 0 ||
      !is_capturing(stream, per_thread_default)) {
    return;
  }
  if (context->has_joined_capture.exchange(true)) return;
  context->captures.fetch_add(1);
  flush_queues(context, FlushReason::kCapture);
}

void stream_attributes_changed(CUstream stream, bool per_thread_default) noexcept {
  if (is_mutant(Mutant::kStreamAttributesIgnored)) return;
  StreamTarget target = find_or_make_stream(stream, per_thread_default);
  if (target.queue == nullptr) return;
  const SubmitTurn turn(*target.queue);
  target.queue->close(turn, FlushReason::kStreamEnd);
  target.queue->gate(turn, DirectReason::kStreamAttributes);
}

void code_unloads(CUmodule module) noexcept {
  if (!is_mutant(Mutant::kHandleReuseUnnoticed)) remove(CodeScope::of_module(module));
  forget_module(module);
  forget_lookups_of(module);
  forget_settings();
}

void code_unloads(CUlibrary library) noexcept {
  if (!is_mutant(Mutant::kHandleReuseUnnoticed)) remove(CodeScope::of_library(library));
  forget_library(library);
  forget_all_lookups();  // those of its modules too
  forget_settings();
}

void forget_code_of(ContextState& context) noexcept {
  retire_functions_in(context);
  for_each_queue(&context, [](StreamQueue& queue) { purge_dead_functions(queue); });
  forget_code_in(context);
  forget_all_lookups();
  forget_settings();
  free_old_functions();
}

void code_is_tainted(CUmodule module) noexcept {
  if (is_mutant(Mutant::kTextureReferenceIgnored)) return;
  replace(taint_module(module, current_context()));
}

void submit_holders(const CodeScope& scope, EntryId why) noexcept {
  if (!anything_queued()) return;
  // Launches of a stream that stays stuck for longer had not been made in a bare run either.
  constexpr int kPatienceMs = 2;
  OldestFirst open(nullptr);
  for (StreamQueue* queue : open) {
    const SubmitTurn turn = SubmitTurn::within(*queue, kPatienceMs);
    if (!turn) continue;
    const bool holds = queue->any_function(turn, [&scope](const FunctionInfo& info) {
      return scope.reaches(info.handle, info.owner);
    });
    if (holds) queue->close(turn, why);
  }
  if (open.is_cut()) flush_queues(nullptr, why);
}

void functions_changed(const CodeScope& scope) noexcept {
  if (!is_mutant(Mutant::kFunctionChangeUnnoticed)) replace(scope);
}

bool give_back_graphs() noexcept {
  if (g_counters.exec_bytes.load(std::memory_order_relaxed) == 0) return false;
  for_each_queue(nullptr, [](StreamQueue& queue) {
    // What somebody submits right now stays: to wait for it is not this call's business.
    const SubmitTurn turn = SubmitTurn::at_once(queue);
    if (turn) purge_all(queue, turn, FlushReason::kMemory);
  });
  return true;
}

void context_dies(ContextState& context) noexcept {
  for_each_queue(&context, [](StreamQueue& queue) {
    const SubmitTurn turn(queue);
    purge_all(queue, turn, FlushReason::kContextEnd);
  });
}

}  // namespace runtime
