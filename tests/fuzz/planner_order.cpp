// SPDX-License-Identifier: Apache-2.0
// The pieces of a program that concern order: streams and what is ordered in them, events, threads
// and contexts.
#include "tests/fuzz/planner.h"

namespace fuzz {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

}  // namespace

// A value written in one stream and waited for in another: order without an event.
void Planner::plan_value(int thread) {
  const int from = any_stream(thread), to = any_stream(thread);
  const int buffer = any_buffer(thread, from, Mode::kWrite);
  if (buffer < 0 || model_.buffers[at(buffer)].memory != kDeviceMemory) return;
  Launch launch;
  const bool has_launch = choose_launch(thread, from, &launch);
  if (has_launch) plan_launch(thread, launch, key());
  const int value = 0x40000000 + key();
  const int other = random_.percent(25) ? any_buffer(thread, from, Mode::kWrite) : -1;
  const int bits = other >= 0 || random_.percent(70) ? 32 : 64;
  if (other >= 0) {
    later(thread, Kind::k_value_batch, {from, buffer, other, value});
  } else {
    later(thread, Kind::k_value_write, {from, buffer, bits, value});
  }
  later(thread, Kind::k_value_wait, {to, buffer, bits, value});
  launch.stream = to;
  if (has_launch) plan_launch(thread, launch, key());
}

void Planner::plan_pool(int thread) {
  const int stream = any_stream(thread), slot = free_slot(model_.buffers, thread);
  if (slot < 0) return;
  later(thread, Kind::k_alloc_async, {slot, stream, random_.below(2)});
  const int rounds = random_.between(1, 3);
  for (int i = 0; i < rounds; ++i) {
    Launch launch;
    if (!choose_launch(thread, stream, &launch)) break;
    launch.kernel = i % 2 == 0 ? kAffine : kMix;
    reshape(&launch);
    launch.b1 = slot;
    if (i % 2 == 0) launch.b0 = slot;
    plan_launch(thread, launch, key());
  }
  if (random_.percent(70)) later(thread, Kind::k_free_async, {slot, stream});
}

// Managed memory moved and advised about between the launches that use it.
void Planner::plan_place(int thread) {
  std::vector<int> managed;
  for (int i = 0; i < kBuffers; ++i) {
    const BufferModel& buffer = model_.buffers[at(i)];
    if (buffer.memory == kManagedMemory && buffer.context == model_.current(thread) &&
        model_.can_use(buffer, thread)) {
      managed.push_back(i);
    }
  }
  if (managed.empty()) {
    const int slot = free_slot(model_.buffers, thread);
    if (slot >= 0) later(thread, Kind::k_alloc, {slot, kManagedMemory});
    return;
  }
  const int buffer = random_.pick(managed), stream = any_stream(thread);
  Launch launch;
  const bool has_launch = choose_launch(thread, stream, &launch);
  for (int round = random_.between(1, 3); round > 0; --round) {
    if (has_launch) {
      launch.b1 = buffer;
      plan_launch(thread, launch, key());
    }
    if (random_.percent(70)) {
      later(thread, Kind::k_prefetch, {buffer, random_.below(2), stream});
    } else {
      later(thread, Kind::k_advise, {buffer, random_.below(4)});
    }
  }
}

void Planner::plan_stream_life(int thread) {
  const int slot = any_stream(thread, true);
  const int percent = random_.below(100);
  if (slot >= 0 && percent < 20) {
    const int from = any_stream(thread, true);
    if (random_.percent(25)) return later(thread, Kind::k_stream_copy, {slot, from});
    return later(thread, Kind::k_stream_attribute, {slot, random_.below(3)});
  }
  if (slot >= 0 && percent < 60) {
    Launch launch;
    if (choose_launch(thread, slot, &launch)) {
      for (int i = random_.between(1, 3); i > 0; --i) plan_launch(thread, launch, key());
    }
    later(thread, Kind::k_stream_destroy, {slot});
    if (random_.percent(50)) return;
  }
  const int next = free_slot(model_.streams, thread);
  const int context = model_.current(thread);
  if (next < 0 || context < 0) return;
  const int flags = any_stream_flags(model_.contexts[at(context)].how);
  later(thread, Kind::k_stream_create, {next, flags, -random_.below(4)});
}

// Work of one stream handed to another, or events made and destroyed.
void Planner::plan_event(int thread) {
  const int event = any_event(thread);
  const int percent = random_.below(100);
  if (event < 0 || percent < 8) {
    const int slot = free_slot(model_.events, thread);
    if (slot >= 0) later(thread, Kind::k_event_create, {slot, 2 * random_.below(2)});
    return;
  }
  const int from = any_stream(thread), to = any_stream(thread);
  if (random_.percent(20)) return plan_context_event(thread, event, from, to);
  later(thread, Kind::k_event_record, {event, from});
  if (percent < 75) later(thread, Kind::k_event_wait, {to, event});
  if (percent < 70) return;
  if (percent < 80) return later(thread, Kind::k_event_query, {event, random_.below(2)});
  if (percent < 88) return later(thread, Kind::k_event_sync, {event});
  if (percent < 94) return later(thread, Kind::k_event_destroy, {event});
  const int other = any_event(thread);
  later(thread, Kind::k_event_elapsed, {other, event});
}

// An event for all that the context was given, or a wait for all that it will be given.
void Planner::plan_context_event(int thread, int event, int from, int to) {
  const int context = model_.current(thread);
  Launch before, after;
  const bool has_launches =
      choose_launch(thread, from, &before) && choose_launch(thread, to, &after);
  if (has_launches) plan_launch(thread, before, key());
  if (random_.percent(50)) {
    later(thread, Kind::k_context_record, {event, context});
    if (random_.percent(20)) return later(thread, Kind::k_event_sync, {event});
    later(thread, Kind::k_event_wait, {to, event});
  } else {
    later(thread, Kind::k_event_record, {event, from});
    later(thread, Kind::k_context_wait, {context, event});
  }
  if (!has_launches) return;
  // What the first one wrote is there by now, in whatever stream.
  after.b1 = before.b0;
  plan_launch(thread, after, key());
}

// What this thread has done so far becomes known to another one, at once.
void Planner::plan_thread_handover(int thread) {
  if (program_.threads == 1 || next_token_ >= kTokens) return plan_event(thread);
  const int other = (thread + random_.between(1, program_.threads - 1)) % program_.threads;
  if (random_.percent(30)) now(thread, Kind::k_context_sync, {});
  const int token = next_token_;
  if (!now(thread, Kind::k_signal, {token})) return;
  ++next_token_;
  plans_[at(other)].push_front(make(other, Kind::k_await, {token}));
}

void Planner::plan_context(int thread) {
  std::vector<int> usable;
  for (int i = 0; i < kContexts; ++i) {
    const ContextModel& context = model_.contexts[at(i)];
    if (!context.is_broken && model_.can_use(context, thread)) usable.push_back(i);
  }
  if (usable.size() < 2) return plan_copy(thread);
  const int context = random_.pick(usable);
  if (random_.percent(50)) return later(thread, Kind::k_context_set, {context});
  later(thread, Kind::k_context_push, {context});
  const int inner = random_.between(1, 3);
  for (int i = 0; i < inner; ++i) {
    const int stream = live_slot(model_.streams, thread, context);
    const int buffer = any_buffer(thread, stream >= 0 ? stream : kNullStream, Mode::kWrite);
    if (buffer < 0) continue;
    later(thread, Kind::k_launch,
          {kParams, context, kAffine, stream >= 0 ? stream : kNullStream, 1, 64, 0, buffer, buffer,
           buffer, key()});
  }
  later(thread, Kind::k_context_pop, {});
}

// A context goes with work pending, and the next one may get its handle.
void Planner::plan_context_end(int thread) {
  std::vector<int> candidates;
  for (int i = 0; i < kContexts; ++i) {
    const ContextModel& context = model_.contexts[at(i)];
    if (context.is_alive && context.how != 0) candidates.push_back(i);
  }
  if (candidates.empty()) {
    const int slot = free_slot(model_.contexts, thread);
    if (slot < 0) return;
    later(thread, Kind::k_context_open, {slot, 1 + random_.below(2)});
    const int stream = free_slot(model_.streams, thread),
              buffer = free_slot(model_.buffers, thread);
    if (stream < 0 || buffer < 0) return;
    later(thread, Kind::k_context_set, {slot});
    later(thread, Kind::k_stream_create, {stream, random_.below(2), 0});
    later(thread, Kind::k_alloc, {buffer, kDeviceMemory});
    return;
  }
  const int context = random_.pick(candidates);
  later(thread, Kind::k_context_set, {context});
  const bool is_reset = model_.contexts[at(context)].how == 2 && random_.percent(50);
  later(thread, is_reset ? Kind::k_primary_reset : Kind::k_context_close, {context});
  const int buffer = free_slot(model_.buffers, thread), stream = free_slot(model_.streams, thread);
  if (!is_reset) {
    later(thread, Kind::k_context_open, {context, 1 + random_.below(2)});
    later(thread, Kind::k_context_set, {context});
  }
  if (buffer >= 0) later(thread, Kind::k_alloc, {buffer, kDeviceMemory});
  if (stream >= 0) later(thread, Kind::k_stream_create, {stream, random_.below(2), 0});
}

}  // namespace fuzz
