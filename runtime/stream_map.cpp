// SPDX-License-Identifier: Apache-2.0
// A table of chains from created stream handles to queues, under a mutex that is never held across
// a driver call; threads remember the queues they use (thread_state.h) and seldom come here.
#include "runtime/stream_map.h"

#include <algorithm>
#include <new>

#include "runtime/deferral.h"
#include "runtime/driver_scope.h"
#include "runtime/flush_queues.h"
#include "runtime/mutants.h"
#include "runtime/mutex.h"

namespace runtime {
namespace {

// 1024 chains: programs have tens of streams, schedulers some thousands; 8 KiB of static memory.
constexpr std::size_t kChains = 1024;
constinit Mutex g_mutex;  // guards g_chains, g_retired, and next_in_chain of every queue
constinit StreamQueue* g_chains[kChains]{};
constinit StreamQueue* g_retired = nullptr;  // for the next streams
constinit std::atomic<StreamQueue*> g_queues{nullptr};
constinit std::atomic<bool> g_defers_by_default{false};

const CUstream kLegacyHandle = reinterpret_cast<CUstream>(0x1);     // CU_STREAM_LEGACY
const CUstream kPerThreadHandle = reinterpret_cast<CUstream>(0x2);  // CU_STREAM_PER_THREAD

StreamQueue*& chain_of(CUstream stream) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(stream);
  return g_chains[((bits >> 4) * 0x9E3779B97F4A7C15ull >> 40) % kChains];
}

// Called with g_mutex held, like the next three.
StreamQueue* look_up(CUstream stream) noexcept {
  StreamQueue* queue = chain_of(stream);
  while (queue != nullptr && queue->stream() != stream) queue = queue->next_in_chain;
  return queue;
}

void enter(StreamQueue& queue) noexcept {
  StreamQueue*& chain = chain_of(queue.stream());
  queue.next_in_chain = chain;
  chain = &queue;
}

void drop(StreamQueue& queue) noexcept {
  StreamQueue** link = &chain_of(queue.stream());
  while (*link != nullptr && *link != &queue) link = &(*link)->next_in_chain;
  if (*link != nullptr) *link = queue.next_in_chain;
}

// A retired object, else a new one.
StreamQueue* take_object() noexcept {
  if (StreamQueue* queue = g_retired) {
    g_retired = queue->next_in_chain;
    return queue;
  }
  auto* queue = new (std::nothrow) StreamQueue;
  if (queue == nullptr) return nullptr;
  queue->set_next_queue(g_queues.load(std::memory_order_relaxed));
  // Release pairs with the acquire in first_queue().
  g_queues.store(queue, std::memory_order_release);
  return queue;
}

StreamQueue* make_queue(CUstream stream, StreamKind kind, ContextState* context) noexcept {
  StreamQueue* queue = take_object();
  if (queue == nullptr) return nullptr;
  const SubmitTurn turn(*queue);
  queue->adopt(turn, stream, kind, context, defers_by_default());
  if (context->direct_only) queue->gate(turn, DirectReason::kGreenContext);
  return queue;
}

StreamQueue* legacy_queue(ContextState& context) noexcept {
  StreamQueue* queue = context.legacy_queue.load(std::memory_order_acquire);
  if (queue != nullptr) return queue;
  MutexGuard guard(g_mutex);
  queue = context.legacy_queue.load(std::memory_order_relaxed);
  if (queue != nullptr) return queue;
  queue = make_queue(nullptr, StreamKind::kLegacy, &context);
  // Release pairs with the acquire above and in find_stream().
  context.legacy_queue.store(queue, std::memory_order_release);
  return queue;
}

// A stream that was made behind our back: what the driver says of it. Null: it does not know the
// handle either.
StreamQueue* introduce(CUstream stream) noexcept {
  CUcontext context_handle = nullptr;
  unsigned int flags = 0;
  bool is_green = false;
  {
    DriverScope scope(nullptr, true);
    if (real.cuStreamGetCtx(stream, &context_handle) != CUDA_SUCCESS ||
        real.cuStreamGetFlags(stream, &flags) != CUDA_SUCCESS) {
      return nullptr;
    }
    CUgreenCtx green = nullptr;
    is_green = real.cuStreamGetGreenCtx(stream, &green) == CUDA_SUCCESS && green != nullptr;
  }
  ContextState* context = context_state(context_handle);
  if (context == nullptr) return nullptr;
  if (is_green) context->direct_only = true;
  stream_created(stream, context, flags);
  MutexGuard guard(g_mutex);
  return look_up(stream);
}

// Outside g_mutex: the queue may still have to call the driver. It stays in use until then, so
// nobody takes the object.
void retire_queue(StreamQueue& queue, FlushReason reason) noexcept {
  const SubmitTurn turn(queue);
  queue.close(turn, reason);
  queue.retire(turn);
  const MutexGuard guard(g_mutex);
  queue.next_in_chain = g_retired;
  g_retired = &queue;
}

}  // namespace

bool defers_by_default() noexcept {
  return g_defers_by_default.load(std::memory_order_relaxed);
}

void set_default_deferral(bool deferred) noexcept {
  g_defers_by_default.store(deferred, std::memory_order_relaxed);
}

StreamQueue* first_queue() noexcept {
  return g_queues.load(std::memory_order_acquire);
}

StreamTarget find_stream(CUstream stream, bool per_thread_default) noexcept {
  StreamTarget target;
  target.context = current_context();
  if (is_mutant(Mutant::kPerThreadTakenForLegacy)) per_thread_default = false;
  if ((stream == kPerThreadHandle && !is_mutant(Mutant::kPerThreadQueued)) ||
      (stream == nullptr && per_thread_default)) {
    target.is_per_thread = true;
  } else if (stream == nullptr || stream == kLegacyHandle) {
    if (target.context != nullptr) {
      target.queue = target.context->legacy_queue.load(std::memory_order_acquire);
    }
  } else {
    target.queue = remembered_queue(stream);
    if (target.queue == nullptr) {
      MutexGuard guard(g_mutex);
      target.queue = look_up(stream);
    }
    target.is_unknown = target.queue == nullptr;
    if (target.queue != nullptr) target.context = target.queue->context();
  }
  return target;
}

StreamTarget find_or_make_stream(CUstream stream, bool per_thread_default) noexcept {
  StreamTarget target = find_stream(stream, per_thread_default);
  if (target.queue != nullptr || target.is_per_thread) return target;
  if (target.is_unknown) {
    target.queue = introduce(stream);
    if (target.queue != nullptr) target.context = target.queue->context();
  } else if (target.context != nullptr) {
    target.queue = legacy_queue(*target.context);
  }
  return target;
}

void stream_created(CUstream stream, ContextState* context, unsigned int flags) noexcept {
  StreamKind kind =
      (flags & CU_STREAM_NON_BLOCKING) != 0 ? StreamKind::kNonBlocking : StreamKind::kBlocking;
  if (is_mutant(Mutant::kBlockingTakenForFree)) kind = StreamKind::kNonBlocking;
  MutexGuard guard(g_mutex);
  if (look_up(stream) != nullptr) return;
  StreamQueue* queue = make_queue(stream, kind, context);
  if (queue != nullptr) enter(*queue);
}

void stream_destroyed(CUstream stream) noexcept {
  StreamQueue* queue = nullptr;
  {
    MutexGuard guard(g_mutex);
    queue = look_up(stream);
    if (queue == nullptr) return;
    drop(*queue);
  }
  retire_queue(*queue, FlushReason::kStreamEnd);
  forget_remembered_queues();
}

LivingContext context_gone(ContextState& context) noexcept {
  for_each_queue(&context, [](StreamQueue& queue) {
    {
      MutexGuard guard(g_mutex);
      drop(queue);
    }
    retire_queue(queue, FlushReason::kContextEnd);
  });
  context.legacy_queue.store(nullptr, std::memory_order_release);
  context.limits_known.store(false, std::memory_order_release);
  const LivingContext living{context.captures.exchange(0),
                             context.has_joined_capture.exchange(false),
                             context.direct_only.exchange(false)};
  g_active_captures.fetch_sub(living.captures - (living.has_joined_capture ? 1 : 0));
  context.is_suspect.store(false, std::memory_order_relaxed);
  context.errors.forget();
  forget_code_of(context);
  forget_remembered_queues();
  return living;
}

void context_lives_on(ContextState& context, const LivingContext& living) noexcept {
  context.captures.fetch_add(living.captures);
  g_active_captures.fetch_add(living.captures - (living.has_joined_capture ? 1 : 0));
  if (living.has_joined_capture) context.has_joined_capture.store(true);
  if (living.direct_only) context.direct_only.store(true);
}

// Each queue tells when it was last seen without readers; they need not all be so at once.
void free_old_functions() noexcept {
  static constinit Mutex mutex;
  const MutexGuard guard(mutex);
  const std::uint64_t last = last_retired_function();
  if (last == 0) return;
  std::uint64_t unread = last;
  for (StreamQueue* queue = first_queue(); queue != nullptr; queue = queue->next_queue()) {
    // An addition of nothing, to be in one order with the readers' additions.
    if (queue->function_readers.fetch_add(0) == 0 || is_mutant(Mutant::kReadersIgnored)) {
      queue->functions_unread = last;
    }
    unread = std::min(unread, queue->functions_unread);
  }
  free_retired_functions(unread);
}

}  // namespace runtime
