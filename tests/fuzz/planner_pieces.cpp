// SPDX-License-Identifier: Apache-2.0
// The pieces of a program that concern launches, memory, order between streams and threads, and
// errors. Captures and graphs are in planner_graphs.cpp.
#include <algorithm>

#include "tests/fuzz/planner.h"

namespace fuzz {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

constexpr int kBlocks[] = {32, 64, 64, 64, 96, 33};

}  // namespace

bool Planner::choose_launch(int thread, int stream, Launch* launch) {
  *launch = {};
  launch->how = any_launch_how();
  launch->stream = stream;
  launch->module = any_module(thread);
  if (launch->module < 0) return false;
  static constexpr int kKernels[] = {kAffine,  kAffine, kMix,     kMix,     kWide, kNarrow,
                                     kByValue, kShape,  kCountUp, kPublish, kEmpty};
  launch->kernel = kKernels[random_.below(static_cast<int>(std::size(kKernels)))];
  const bool adds = launch->kernel == kShape || launch->kernel == kCountUp;
  launch->b0 = any_buffer(thread, stream, adds ? Mode::kAdd : Mode::kWrite);
  launch->b1 = any_buffer(thread, stream, Mode::kRead);
  launch->b2 = any_buffer(thread, stream, Mode::kRead);
  if (launch->b0 < 0) {
    if (!random_.percent(10)) return false;
    launch->kernel = kEmpty;
    launch->b0 = 0;
  }
  launch->b1 = std::max(launch->b1, 0);
  launch->b2 = std::max(launch->b2, 0);
  reshape(launch);
  return true;
}

void Planner::reshape(Launch* launch) {
  launch->grid = random_.percent(70) ? 1 : random_.between(2, 4);
  launch->block = kBlocks[random_.below(static_cast<int>(std::size(kBlocks)))];
  launch->shared = random_.percent(80) ? 0 : 256 * random_.below(20);
  if (launch->kernel == kNarrow || launch->kernel == kByValue || launch->kernel == kPublish) {
    launch->grid = 1;
    launch->block = launch->kernel == kPublish ? 1 : std::min(launch->block, kWords);
  }
  if (launch->kernel == kShape) launch->shared = 4 * launch->block + 64 * random_.below(8);
}

// Mostly what can be queued.
int Planner::any_launch_how() {
  const int percent = random_.below(100);
  return percent < 80   ? kParams
         : percent < 84 ? kExtra
         : percent < 92 ? kEx
         : percent < 97 ? kExAttributes
                        : kCooperative;
}

void Planner::plan_launch(int thread, const Launch& launch, int key) {
  later(thread, Kind::k_launch,
        {launch.how, launch.module, launch.kernel, launch.stream, launch.grid, launch.block,
         launch.shared, launch.b0, launch.b1, launch.b2, key});
}

// The heart: the same sequence again and again with other values, cut where its effect shows.
void Planner::plan_loop(int thread) {
  const int first = any_stream(thread), second = random_.percent(25) ? any_stream(thread) : first;
  std::vector<Launch> body;
  const int length = random_.between(2, 5);
  for (int i = 0; i < length; ++i) {
    Launch launch;
    if (choose_launch(thread, i % 2 == 0 ? first : second, &launch)) body.push_back(launch);
  }
  if (body.empty()) return plan_event(thread);
  const int rounds = random_.between(3, 7);
  // Others change now and then: shorter, longer, parting in the middle, of another shape.
  const bool is_steady = random_.percent(50);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Launch> now = body;
    const int change = is_steady ? 99 : random_.below(100);
    if (change < 8) now.pop_back();
    if (change >= 8 && change < 14) now.push_back(now.front());
    if (change >= 14 && change < 20) std::swap(now.front(), now.back());
    if (change >= 20 && change < 25 && !now.empty()) now.front().how = any_launch_how();
    if (change >= 25 && change < 50) reshape(&now[at(random_.below(static_cast<int>(now.size())))]);
    for (Launch& launch : now) {
      // Values differ mostly; equal ones leave a node unpatched.
      if (random_.percent(8)) launch.b0 = launch.b1;
      plan_launch(thread, launch, random_.percent(80) ? key() : 7);
    }
    plan_cut(thread, first);
  }
}

void Planner::plan_cut(int thread, int stream) {
  const int percent = random_.below(100);
  if (percent < 30) {
    later(thread, Kind::k_stream_sync, {stream});
  } else if (percent < 40) {
    later(thread, Kind::k_context_sync, {});
  } else if (percent < 48) {
    later(thread, Kind::k_stream_query, {stream, random_.below(2)});
  } else if (percent < 60) {
    const int event = any_event(thread);
    if (event < 0) return;
    later(thread, Kind::k_event_record, {event, stream});
    if (random_.percent(60)) later(thread, Kind::k_event_sync, {event});
  } else if (percent < 75) {
    plan_observation(thread);
  } else if (percent < 85) {
    const int buffer = any_buffer(thread, stream, Mode::kWrite);
    if (buffer >= 0)
      later(thread, Kind::k_memset, {random_.below(kMemsetHowCount), 1, buffer, key(), stream});
  } else if (percent < 90) {
    plan_host_function(thread);
  } else if (percent < 95) {
    plan_copy(thread);
  } else if (stream >= 0) {
    later(thread, Kind::k_capture_info, {stream});
  }
}

void Planner::plan_observation(int thread) {
  const int stream = any_stream(thread);
  if (random_.percent(50)) {
    const int buffer = any_buffer(thread, kNullStream, Mode::kRead);
    if (buffer < 0) return later(thread, Kind::k_context_sync, {});
    if (model_.buffers[at(buffer)].memory == kDeviceMemory)
      return later(thread, Kind::k_observe, {buffer});
    later(thread, Kind::k_stream_sync, {kNullStream});
    return later(thread, Kind::k_host_read, {buffer});
  }
  const int from = any_buffer(thread, stream, Mode::kRead);
  const int to = any_host_buffer(thread, stream, true);
  if (from < 0 || to < 0) return later(thread, Kind::k_context_sync, {});
  later(thread, Kind::k_copy,
        {random_.percent(50) ? kDtoHAsync : kGenericAsync, to, from, 0, kWords, stream});
  later(thread, Kind::k_stream_sync, {stream});
  later(thread, Kind::k_host_read, {to});
}

void Planner::plan_copy(int thread) {
  const int how = random_.below(kCopyHowCount);
  const bool is_peer = how >= kPeer && (how == kPeer || how == kPeerAsync || how >= k3DPeer);
  const int stream = is_async(how)         ? any_stream(thread)
                     : random_.percent(80) ? kNullStream
                                           : kPtszStream;
  int from = any_buffer(thread, stream, Mode::kRead, false);
  int to = any_buffer(thread, stream, Mode::kWrite, false);
  const bool wants_host_to = how == kDtoH || how == kDtoHAsync;
  if (wants_host_to) to = any_host_buffer(thread, stream, true);
  if (how == kHtoD || how == kHtoDAsync) {
    from = any_host_buffer(thread, stream, true);
    if (from >= 0) later(thread, Kind::k_host_write, {from, key()});
  }
  if (is_peer && random_.percent(70)) {
    to = random_.below(kBuffers);  // perhaps another context's
  }
  if (from < 0 || to < 0) return plan_event(thread);
  const int offset = random_.percent(60) ? 0 : 16 * random_.below(3);
  const int words = random_.percent(60) ? kWords - offset : 16;
  later(thread, Kind::k_copy, {how, to, from, offset, words, stream});
}

void Planner::plan_memset(int thread) {
  const bool is_async = random_.percent(60);
  const int stream = is_async              ? any_stream(thread)
                     : random_.percent(80) ? kNullStream
                                           : kPtszStream;
  const int buffer = any_buffer(thread, stream, Mode::kWrite);
  if (buffer < 0) return plan_event(thread);
  later(thread, Kind::k_memset,
        {random_.below(kMemsetHowCount), is_async ? 1 : 0, buffer, key(), stream});
}

void Planner::plan_host_function(int thread) {
  const int stream = any_stream(thread);
  const int buffer = any_host_buffer(thread, stream, true);
  if (buffer < 0) return;
  later(thread, Kind::k_host_function, {random_.percent(30) ? 1 : 0, stream, buffer, key()});
  if (random_.percent(50)) {
    later(thread, Kind::k_stream_sync, {stream});
    later(thread, Kind::k_host_read, {buffer});
  }
}

// A value written in one stream and waited for in another: order without an event.
void Planner::plan_value(int thread) {
  const int from = any_stream(thread), to = any_stream(thread);
  const int buffer = any_buffer(thread, from, Mode::kWrite);
  if (buffer < 0 || model_.buffers[at(buffer)].memory != kDeviceMemory) return;
  Launch launch;
  const bool has_launch = choose_launch(thread, from, &launch);
  if (has_launch) plan_launch(thread, launch, key());
  const int value = 0x40000000 + key();
  const int bits = random_.percent(70) ? 32 : 64;
  later(thread, Kind::k_value_write, {from, buffer, bits, value});
  later(thread, Kind::k_value_wait, {to, buffer, bits, value});
  launch.stream = to;
  if (has_launch) plan_launch(thread, launch, key());
}

void Planner::plan_memory(int thread) {
  const int slot = free_slot(model_.buffers, thread);
  if (slot >= 0 && random_.percent(55)) {
    const int percent = random_.below(100);
    const int memory = percent < 50   ? kDeviceMemory
                       : percent < 65 ? kPinnedMemory
                       : percent < 80 ? kManagedMemory
                       : percent < 88 ? kPageableMemory
                                      : kRegisteredMemory;
    return later(thread, Kind::k_alloc, {slot, memory});
  }
  if (random_.percent(20)) return later(thread, Kind::k_memory_info, {});
  std::vector<int> found;
  for (int i = 0; i < kBuffers; ++i) {
    if (model_.buffers[at(i)].is_alive) found.push_back(i);
  }
  if (found.size() > 3) later(thread, Kind::k_free, {random_.pick(found)});
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

void Planner::plan_stream_life(int thread) {
  const int slot = any_stream(thread, true);
  const int percent = random_.below(100);
  if (slot >= 0 && percent < 20) {
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
  if (next >= 0) later(thread, Kind::k_stream_create, {next, random_.below(2), -random_.below(4)});
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
  later(thread, Kind::k_event_record, {event, from});
  if (percent < 75) later(thread, Kind::k_event_wait, {to, event});
  if (percent < 70) return;
  if (percent < 80) return later(thread, Kind::k_event_query, {event, random_.below(2)});
  if (percent < 88) return later(thread, Kind::k_event_sync, {event});
  if (percent < 94) return later(thread, Kind::k_event_destroy, {event});
  const int other = any_event(thread);
  later(thread, Kind::k_event_elapsed, {other, event});
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

void Planner::plan_code(int thread) {
  const int percent = random_.below(100);
  const int module = any_module(thread);
  if (percent < 20 && module >= 0) {
    return later(thread, Kind::k_function_get,
                 {module, random_.below(kKernelCount), random_.below(3)});
  }
  if (percent < 40 && module >= 0) return plan_attribute(thread, module);
  // Loaded, used with a sequence that repeats, unloaded with work pending, loaded again: the
  // handles of the functions may come back with other bodies.
  const int slot = module >= kContexts ? module : free_slot(model_.modules, thread, kContexts);
  if (slot < 0) return;
  const int stream = any_stream(thread);
  Launch launch;
  const bool has_launch = choose_launch(thread, stream, &launch);
  launch.module = slot;
  const bool as_library = random_.percent(50);
  if (slot != module) later(thread, Kind::k_module_load, {slot, random_.below(2), as_library});
  for (int life = random_.between(1, 2); life > 0; --life) {
    for (int round = random_.between(1, 4); has_launch && round > 0; --round) {
      plan_launch(thread, launch, key());
      plan_launch(thread, launch, key());
      if (round > 1) plan_cut(thread, stream);
    }
    later(thread, Kind::k_module_unload, {slot});
    if (life > 1 || random_.percent(30)) {
      later(thread, Kind::k_module_load,
            {slot, random_.below(2), random_.percent(80) ? as_library : !as_library});
    }
  }
}

// A limit changes between launches of a sequence: what was accepted is refused then, or the
// reverse.
void Planner::plan_attribute(int thread, int module) {
  const int stream = any_stream(thread);
  Launch launch;
  if (!choose_launch(thread, stream, &launch)) return;
  launch.module = module;
  launch.shared = 1024 * random_.between(2, 40);
  const int which = random_.percent(70) ? 0 : random_.between(1, 2);
  for (int round = random_.between(2, 5); round > 0; --round) {
    plan_launch(thread, launch, key());
    plan_launch(thread, launch, key());
    if (random_.percent(70)) plan_cut(thread, stream);
    const int value = random_.percent(60) ? launch.shared - 1024 : 1024 * random_.between(1, 90);
    if (round % 2 == 0) {
      later(thread, Kind::k_function_attribute, {module, launch.kernel, which, value});
    } else {
      later(thread, Kind::k_function_attribute, {module, launch.kernel, which, 64 * 1024});
    }
  }
}

void Planner::plan_error(int thread) {
  const int percent = random_.below(100);
  const int module = any_module(thread);
  if (percent < 50 && module >= 0) {
    return later(thread, Kind::k_bad_launch, {random_.below(6), module, any_stream(thread)});
  }
  if (percent < 75) return later(thread, Kind::k_bad_handle, {random_.below(6), 0});
  const int buffer = any_buffer(thread, kNullStream, Mode::kRead);
  if (buffer >= 0) later(thread, Kind::k_bad_copy, {random_.below(5), buffer});
}

// In a context that only this thread has and that then goes.
void Planner::plan_fault(int thread) {
  int context = -1;
  for (int i = 0; i < kContexts; ++i) {
    if (model_.contexts[at(i)].is_alive && model_.contexts[at(i)].how == 1) context = i;
  }
  if (context < 0 || !program_.has_faults) return plan_context_end(thread);
  later(thread, Kind::k_context_set, {context});
  later(thread, Kind::k_context_sync, {});
  later(thread, Kind::k_fault, {context, context});
  later(thread, Kind::k_context_close, {context});
  later(thread, Kind::k_context_set, {(context + 1) % kContexts});
  later(thread, Kind::k_context_set, {(context + 2) % kContexts});
}

void Planner::plan_spin(int thread) {
  if (!program_.polls_memory) return plan_observation(thread);
  const int stream = any_stream(thread), module = any_module(thread);
  const int buffer = any_host_buffer(thread, stream, false);
  if (buffer < 0 || module < 0 || model_.buffers[at(buffer)].memory != kPinnedMemory) return;
  later(thread, Kind::k_spin, {module, stream, buffer, 1 + key()});
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
