// SPDX-License-Identifier: Apache-2.0
// The checks between a launch call and its queue. Anything in doubt goes to the driver, so that its
// own error comes back.
#include "runtime/launch.h"

#include "runtime/deadline.h"
#include "runtime/deferral.h"
#include "runtime/driver_scope.h"
#include "runtime/flush.h"
#include "runtime/flush_queues.h"
#include "runtime/mutants.h"

namespace runtime {
namespace {

// Kernels with more parameters than this and an `extra` buffer go directly; the pointers live on
// the stack.
constexpr std::size_t kMaxExtraParameters = 256;

LaunchOutcome refuse(DirectReason reason, FirstError error = {}) noexcept {
  return {false, error.value, reason};
}
LaunchOutcome queued(FirstError error) noexcept {
  return {true, error.value, DirectReason::kNotDeferred};
}

bool is_within(const std::uint32_t value[3], const std::uint32_t limit[3]) noexcept {
  for (int axis = 0; axis < 3; ++axis) {
    if (value[axis] == 0 || value[axis] > limit[axis]) return false;
  }
  return true;
}

bool is_within_limits(const LaunchShape& shape, const ContextState& context,
                      const FunctionInfo& info) noexcept {
  if (is_mutant(Mutant::kLimitsUnchecked)) return true;
  std::uint64_t threads = std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  return is_within(shape.grid, context.max_grid) && is_within(shape.block, context.max_block) &&
         threads <= context.max_threads && threads <= info.max_threads &&
         shape.shared_bytes <= info.max_dynamic_shared;
}

// Points `params` into an `extra` buffer. False: not exactly the documented form, let the driver
// judge.
bool read_extra(void** extra, const FunctionInfo& info, void** params) noexcept {
  const std::byte* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const std::byte*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const std::size_t*>(extra[1]);
    } else {
      return false;
    }
  }
  if (buffer == nullptr || size == nullptr || *size != info.argument_bytes ||
      info.parameters.size() > kMaxExtraParameters) {
    return false;
  }
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    params[i] = const_cast<std::byte*>(buffer + info.parameters[i].offset);
  }
  return true;
}

// Sends everything on, batches left open: the load that follows may wait for work that we hold
// (cuda.h, lazy loading).
CUresult submit_for_load(const ContextState& current) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kLoadFlushDropped)) return CUDA_SUCCESS;
  FirstError error;
  for_each_queue(nullptr, [&](StreamQueue& queue) {
    if (queue.waiting_ticket() == 0) return;
    QueueGuard guard(queue.lock());
    note_for(&current, queue, queue.submit_pending(FlushReason::kLoad, DirectReason::kFirstSight),
             &error);
  });
  return error.value;
}

const FunctionInfo* known_function(CUfunction function, ContextState& context,
                                   FirstError* error) noexcept {
  const FunctionInfo* info = find_function(function, &context);
  if (info != nullptr) return info;
  error->note(submit_for_load(context));
  DriverScope scope(&context, true);
  return learn_function(function, context);
}

// A driver without cuFuncLoad: the launch itself loads the code, and still counts as part of the
// sequence seen.
CUresult launch_and_note(StreamQueue& queue, const Launch& launch,
                         const FunctionInfo& info) noexcept {
  FirstError error;
  error.note(queue.submit_pending(FlushReason::kLoad, DirectReason::kFirstSight));
  {
    DriverScope scope(queue.context());
    error.note(launch_now(launch.function, launch.shape, launch.attributes, launch.stream,
                          launch.kernel_params, nullptr));
  }
  g_counters.count_direct(DirectReason::kFirstLaunch, 1);
  ++queue.counts.direct;
  if (error.value != CUDA_SUCCESS) return error.value;
  info.loaded.store(true, std::memory_order_relaxed);
  if (queue.append(launch, info) == StreamQueue::Append::kQueued) queue.note_submitted();
  return CUDA_SUCCESS;
}

CUresult flush_other_side(StreamQueue& queue, ContextState& context) noexcept {
  return queue.kind() == StreamKind::kLegacy
             ? flush_blocking_side(context, FlushReason::kOrderGroup)
             : flush_legacy_side(context, FlushReason::kOrderGroup);
}

// kCount: the launch may wait in this queue. Lock held.
DirectReason wait_refusal(StreamQueue& queue) noexcept {
  return queue.pending() == 0 && !queue.is_gated() ? Deadline::refusal() : DirectReason::kCount;
}

LaunchOutcome append(StreamQueue& queue, ContextState& context, const Launch& launch,
                     const FunctionInfo& info, FirstError error) noexcept {
  for (;;) {
    {
      QueueGuard guard(queue.lock());
      if (queue.context() != &context) return refuse(DirectReason::kStream, error);
      const DirectReason refusal = wait_refusal(queue);
      if (refusal != DirectReason::kCount) return refuse(refusal, error);
      bool is_loaded = info.loaded.load(std::memory_order_relaxed);
      if (!is_loaded && !queue.is_gated() && !queue.is_other_side_open()) {
        error.note(launch_and_note(queue, launch, info));
        return queued(error);
      }
      switch (queue.append(launch, info)) {
        case StreamQueue::Append::kQueued:
          return queued(error);
        case StreamQueue::Append::kFull:
          if (is_mutant(Mutant::kFullQueueDrops)) return queued(error);
          error.note(queue.close(FlushReason::kFull));
          continue;
        case StreamQueue::Append::kGated:
          return refuse(queue.gate_reason(), error);
        case StreamQueue::Append::kNoMemory:
          return refuse(DirectReason::kNoMemory, error);
        case StreamQueue::Append::kOtherSideOpen:
          break;
      }
    }
    error.note(flush_other_side(queue, context));
  }
}

// What a node would not carry, whatever the device can do.
bool may_have_attributes(const Launch& launch, void** extra, const FunctionInfo& info) noexcept {
  if (launch.attributes.is_plain()) return true;
  // Cooperative nodes take no packed arguments (cuda.h, cuGraphAddKernelNode), which is what we
  // would pass for many parameters; and the key holds only addresses of user space.
  return extra == nullptr && info.parameters.size() <= kMaxExtraParameters &&
         launch_key(launch.function) >> kAddressBits == 0;
}

void remember_queue(CUstream stream, StreamQueue* queue, std::uint32_t epoch) noexcept {
  t_thread.last_stream = stream;
  t_thread.last_queue = queue;
  t_thread.epoch = epoch;
}

}  // namespace

LaunchOutcome queue_launch(const Launch& launch, void** extra, bool per_thread_default) noexcept {
  if (!is_queueing()) return refuse(queueing_stopped_reason());
  std::uint32_t epoch = g_queue_epoch.load(std::memory_order_relaxed);
  ContextState* current = current_context();
  if (current == nullptr) return refuse(DirectReason::kStream);
  StreamTarget target = find_or_make_stream(launch.stream, per_thread_default);
  if (target.is_per_thread) return refuse(DirectReason::kPerThreadStream);
  if (target.queue == nullptr || target.context != current) {
    const bool is_green = target.context != nullptr && target.context->direct_only;
    return refuse(is_green ? DirectReason::kGreenContext : DirectReason::kStream);
  }
  // Nothing is learned of functions, and no code loaded ahead, for a stream that never asked.
  if (!target.queue->is_deferred()) return refuse(DirectReason::kNotDeferred);
  if (current->captures.load(std::memory_order_relaxed) != 0) return refuse(DirectReason::kCapture);
  if (current->is_suspect.load(std::memory_order_relaxed)) return refuse(DirectReason::kFault);
  if (launch.function == nullptr) return refuse(DirectReason::kLimits);
  if (!read_limits(*current)) return refuse(DirectReason::kLimits);

  FirstError error;
  const FunctionInfo* info = known_function(launch.function, *current, &error);
  if (info == nullptr || !info->queueable) {
    return refuse(info == nullptr ? DirectReason::kNoMemory : info->reason, error);
  }
  if (!may_have_attributes(launch, extra, *info)) {
    return refuse(DirectReason::kAttributes, error);
  }
  if (!is_within_limits(launch.shape, *current, *info) ||
      !may_launch(*info, launch.shape, launch.attributes, *current)) {
    return refuse(DirectReason::kLimits, error);
  }

  Launch prepared = launch;
  void* params_from_extra[kMaxExtraParameters];
  if (extra != nullptr) {
    if (launch.kernel_params != nullptr || !read_extra(extra, *info, params_from_extra)) {
      return refuse(DirectReason::kLimits, error);
    }
    prepared.kernel_params = params_from_extra;
  } else if (launch.kernel_params == nullptr && !info->parameters.empty()) {
    return refuse(DirectReason::kLimits, error);
  }
  LaunchOutcome outcome = append(*target.queue, *current, prepared, *info, error);
  if (outcome.is_queued) remember_queue(launch.stream, target.queue, epoch);
  return outcome;
}

CUresult flush_for_launch(CUstream stream, bool per_thread_default, DirectReason reason) noexcept {
  g_counters.count_direct(reason, 1);
  ++t_thread.direct_launches;
  if (!is_queueing() && !anything_queued()) return CUDA_SUCCESS;
  StreamTarget target = find_stream(stream, per_thread_default);
  if (target.queue != nullptr) {
    QueueGuard guard(target.queue->lock());
    ++target.queue->counts.direct;
  }
  if (!anything_queued() || is_mutant(Mutant::kDirectLaunchFlushDropped)) return CUDA_SUCCESS;
  return flush_target(target, FlushReason::kDirectLaunch);
}

}  // namespace runtime
