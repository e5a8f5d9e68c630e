// SPDX-License-Identifier: Apache-2.0
// The pieces of a program that concern launches, memory, code and errors. What orders work is in
// planner_order.cpp, captures and graphs are in planner_graphs.cpp.
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
  static constexpr int kKernels[] = {kAffine,  kAffine, kMix,     kMix,     kWide,  kNarrow,
                                     kByValue, kShape,  kCountUp, kPublish, kEmpty, kRelay};
  launch->kernel = kKernels[random_.below(static_cast<int>(std::size(kKernels)))];
  choose_image(launch);
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

// What only a cooperative launch or a cluster does is launched in that way mostly.
void Planner::choose_image(Launch* launch) {
  if (model_.modules[at(launch->module)].image == kClusterImage) launch->kernel = kWhere;
  if (launch->kernel == kWhere && random_.percent(80)) {
    launch->how = random_.percent(60) ? kClusters : kClustersCooperative;
  }
  if (launch->kernel == kRelay && random_.percent(70)) {
    launch->how = random_.percent(80) ? kCooperative : kClustersCooperative;
  }
}

void Planner::reshape(Launch* launch) {
  launch->grid = random_.percent(70) ? 1 : random_.between(2, 4);
  launch->block = kBlocks[random_.below(static_cast<int>(std::size(kBlocks)))];
  launch->shared = random_.percent(80) ? 0 : 256 * random_.below(20);
  if (launch->kernel == kNarrow || launch->kernel == kByValue || launch->kernel == kPublish) {
    launch->grid = 1;
    launch->block = launch->kernel == kPublish ? 1 : std::min(launch->block, kWords);
  }
  if (launch->kernel == kWhere) {
    launch->grid = random_.percent(90) ? kClusterWidth * random_.between(1, 2) : 3;
    launch->block = 1;
  }
  if (launch->kernel == kShape) launch->shared = 4 * launch->block + 64 * random_.below(8);
}

// Mostly what can be queued.
int Planner::any_launch_how() {
  const int percent = random_.below(100);
  return percent < 80   ? kParams
         : percent < 84 ? kExtra
         : percent < 92 ? kEx
         : percent < 95 ? kExAttributes
         : percent < 97 ? kCooperative
         : percent < 98 ? kClusters
                        : kGrid;
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
    if (random_.percent(15)) {
      later(thread, Kind::k_context_record, {event, model_.current(thread)});
    } else {
      later(thread, Kind::k_event_record, {event, stream});
    }
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

// To or from an array, as its kind allows; asynchronously by rows, so that a capture can have it.
void Planner::plan_array(int thread, int stream) {
  int array = any_array(thread, stream, Mode::kWrite);
  int memory = array >= 0 ? model_.buffers[at(array)].memory : kGridMemory;
  if (array < 0) {
    array = free_slot(model_.buffers, thread);
    if (array < 0 || some_capture_is_open()) return;
    if (random_.percent(40)) memory = kLineMemory;
    later(thread, Kind::k_alloc, {array, memory});
  }
  const bool is_to = random_.percent(50);
  if (memory == kGridMemory) {
    const int other = any_buffer(thread, stream, is_to ? Mode::kRead : Mode::kWrite,
                                 some_capture_is_open() || random_.percent(50));
    const int how = k2DAsync + 2 * random_.below(3);
    const int to = is_to ? array : other, from = is_to ? other : array;
    if (other >= 0) later(thread, Kind::k_copy, {how, to, from, 0, kWords, stream});
    return;
  }
  const int host = any_host_buffer(thread, stream, true);
  if (host < 0) return;
  if (is_to) return later(thread, Kind::k_copy, {kHtoDAsync, array, host, 0, kWords, stream});
  later(thread, Kind::k_copy, {kDtoHAsync, host, array, 16, 32, stream});
}

void Planner::plan_array_copy(int thread) {
  const int rounds = random_.between(1, 4);
  const int stream = any_stream(thread);
  for (int i = 0; i < rounds; ++i) {
    plan_array(thread, random_.percent(70) ? stream : any_stream(thread));
  }
}

void Planner::plan_copy_batch(int thread) {
  const int order = random_.between(kInStream, kAnyTime);
  const int created = any_stream(thread, true);
  const int stream = created >= 0 ? created : random_.percent(50) ? kPerThreadStream : kPtszStream;
  const auto any = [&](Mode mode) {
    return random_.percent(25) ? any_host_buffer(thread, stream, true)
                               : any_buffer(thread, stream, mode);
  };
  // The model wants destinations that no other side has.
  for (int tries = 0; tries < 4; ++tries) {
    const int to = any(Mode::kWrite), other_to = any(Mode::kWrite);
    const int from = any(Mode::kRead), other_from = any(Mode::kRead);
    if (to < 0 || from < 0 || to == other_to || to == from || to == other_from) continue;
    if (other_to < 0 || other_from < 0 || other_to == from || other_to == other_from) continue;
    return later(thread, Kind::k_copy_batch, {order, to, from, other_to, other_from, stream});
  }
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
  const bool has_clusters =
      slot == module ? model_.modules[at(slot)].image == kClusterImage : random_.percent(20);
  const auto any_image = [&] { return has_clusters ? kClusterImage : random_.below(2); };
  if (slot != module) later(thread, Kind::k_module_load, {slot, any_image(), as_library});
  if (has_clusters) {
    launch.kernel = kWhere;
    launch.how = random_.percent(60) ? kClusters : kClustersCooperative;
    reshape(&launch);
  }
  for (int life = random_.between(1, 2); life > 0; --life) {
    for (int round = random_.between(1, 4); has_launch && round > 0; --round) {
      plan_launch(thread, launch, key());
      plan_launch(thread, launch, key());
      if (round > 1) plan_cut(thread, stream);
    }
    later(thread, Kind::k_module_unload, {slot});
    if (life > 1 || random_.percent(30)) {
      later(thread, Kind::k_module_load,
            {slot, any_image(), random_.percent(80) ? as_library : !as_library});
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
  if (!has_kernel(model_.modules[at(module)].image, launch.kernel)) return;
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
  if (buffer >= 0) later(thread, Kind::k_bad_copy, {random_.below(7), buffer});
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

}  // namespace fuzz
