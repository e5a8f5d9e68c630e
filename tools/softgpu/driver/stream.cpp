// SPDX-License-Identifier: Apache-2.0
// Streams as objects: what a handle means, what new work waits for, and destruction. Driver lock
// held.

#include "tools/softgpu/driver/stream.h"

#include <algorithm>

namespace softgpu {
namespace {

std::uint64_t next_stream_id() {
  static std::uint64_t last = 0;
  return ++last;
}

std::shared_ptr<Stream> new_stream(Context& context, StreamKind kind, std::uint64_t number) {
  auto stream = std::make_shared<Stream>();
  stream->kind = kind;
  stream->context = &context;
  stream->ordinal = context.ordinal << 32 | number;
  stream->id = next_stream_id();
  return stream;
}

Stream& per_thread_stream(Context& context) {
  const std::uint64_t thread = thread_ordinal();
  std::shared_ptr<Stream>& stream = context.per_thread[thread];
  if (stream == nullptr) {
    stream = new_stream(context, StreamKind::kPerThread, 1ull << 31 | thread);
    stream->handle = CU_STREAM_PER_THREAD;
  }
  return *stream;
}

bool is_wanted(const Operation& operation) {
  return !operation.done || operation.trace != nullptr;
}

void add_unfinished(const Stream& stream, std::vector<std::shared_ptr<Operation>>* all) {
  for (const auto& operation : stream.tail) {
    if (is_wanted(*operation)) all->push_back(operation);
  }
}

// A destroyed stream leaves its context.
void retire(const Stream& stream, std::vector<std::shared_ptr<Operation>>* retired) {
  if (is_tracing()) retired->insert(retired->end(), stream.tail.begin(), stream.tail.end());
}

void add_wait(const Context& context, std::vector<std::shared_ptr<Operation>>* all) {
  if (context.last_wait != nullptr && is_wanted(*context.last_wait)) {
    all->push_back(context.last_wait);
  }
}

}  // namespace

StreamTable& streams() {
  static auto* const table = new StreamTable();
  return *table;
}

Stream& create_stream(Context& context, unsigned flags, int priority) {
  const StreamKind kind =
      (flags & CU_STREAM_NON_BLOCKING) != 0 ? StreamKind::kNonBlocking : StreamKind::kBlocking;
  const std::shared_ptr<Stream> stream = new_stream(context, kind, ++context.streams_created);
  stream->flags = flags;
  stream->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  stream->handle = streams().add(stream);
  // Blocking ones go in blocking_streams(), which legacy work comes by.
  std::erase_if(context.streams, [](const auto& other) {
    if (!other->is_destroyed || other->is_blocking() || !is_idle(*other)) return false;
    retire(*other, &other->context->retired);
    return true;
  });
  context.streams.push_back(stream);
  return *stream;
}

// Legal while work is pending: the stream stays in its context's list until it is idle.
void destroy_stream(Stream& stream) {
  capture_stream_destroyed(stream);
  stream.is_destroyed = true;
  streams().remove(stream.handle);
}

void make_legacy_stream(Context& context) {
  context.legacy_stream = new_stream(context, StreamKind::kLegacy, 0);
  context.legacy_stream->handle = CU_STREAM_LEGACY;
}

void destroy_streams(Context& context) {
  for (const auto& stream : context.streams) {
    if (context.primary != nullptr) {
      // A green context leaves its streams behind: to use one is CONTEXT_IS_DESTROYED.
      capture_stream_destroyed(*stream);
    } else if (!stream->is_destroyed) {
      destroy_stream(*stream);
    }
  }
  for (const auto& [thread, stream] : context.per_thread) capture_stream_destroyed(*stream);
  context.streams.clear();
  context.per_thread.clear();
  context.legacy_stream = nullptr;
}

Stream& resolve_stream_any(CUstream handle, bool per_thread_default) {
  if (handle == nullptr) handle = per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY) return *exact_current_context().legacy_stream;
  if (handle == CU_STREAM_PER_THREAD) {
    Context& context = exact_current_context();
    if (context.primary != nullptr) fail(CUDA_ERROR_INVALID_HANDLE);  // cuStreamGetCtx_v2 says so
    return per_thread_stream(context);
  }
  Stream& stream = streams().get(handle);
  if (!stream.context->is_alive) fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);  // a green one
  return stream;
}

Stream& resolve_stream(CUstream handle, bool per_thread_default) {
  Stream& stream = resolve_stream_any(handle, per_thread_default);
  require_usable(*stream.context);
  return stream;
}

std::shared_ptr<Stream> shared_stream(Stream& stream) {
  Context& context = *stream.context;
  if (&stream == context.legacy_stream.get()) return context.legacy_stream;
  for (const auto& [thread, candidate] : context.per_thread) {
    if (candidate.get() == &stream) return candidate;
  }
  for (const auto& candidate : context.streams) {
    if (candidate.get() == &stream) return candidate;
  }
  return nullptr;
}

std::vector<Stream*> blocking_streams(Context& context) {
  std::erase_if(context.streams, [&context](const auto& stream) {
    if (!stream->is_destroyed || !is_idle(*stream)) return false;
    retire(*stream, stream->is_blocking() ? &context.legacy_stream->retired : &context.retired);
    return true;
  });
  std::vector<Stream*> found;
  for (const auto& stream : context.streams) {
    if (stream->is_blocking()) found.push_back(stream.get());
  }
  for (const auto& [thread, stream] : context.per_thread) found.push_back(stream.get());
  return found;
}

void add_context_waits(const Context& context, std::vector<std::shared_ptr<Operation>>* all) {
  add_wait(context, all);
  if (context.primary != nullptr) add_wait(*context.primary, all);
}

std::vector<std::shared_ptr<Operation>> context_tails(Context& context) {
  std::vector<std::shared_ptr<Operation>> all;
  for (const auto& one : contexts().all()) {
    if (!one->is_alive || !covers(context, *one)) continue;
    add_unfinished(*one->legacy_stream, &all);
    all.insert(all.end(), one->legacy_stream->retired.begin(), one->legacy_stream->retired.end());
    all.insert(all.end(), one->retired.begin(), one->retired.end());
    for (const auto& stream : one->streams) add_unfinished(*stream, &all);
    for (const auto& [thread, stream] : one->per_thread) add_unfinished(*stream, &all);
    add_context_waits(*one, &all);
  }
  return all;
}

std::vector<std::shared_ptr<Operation>> stream_dependencies(Stream& stream) {
  std::vector<std::shared_ptr<Operation>> all;
  add_unfinished(stream, &all);
  if (stream.kind == StreamKind::kLegacy) {
    for (const Stream* other : blocking_streams(*stream.context)) add_unfinished(*other, &all);
    all.insert(all.end(), stream.retired.begin(), stream.retired.end());
  } else if (stream.is_blocking()) {
    add_unfinished(*stream.context->legacy_stream, &all);
  }
  add_context_waits(*stream.context, &all);
  return all;
}

bool is_idle(const Stream& stream) {
  return std::all_of(stream.tail.begin(), stream.tail.end(),
                     [](const auto& operation) { return operation->done; });
}

}  // namespace softgpu
