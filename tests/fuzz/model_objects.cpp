// SPDX-License-Identifier: Apache-2.0
// The model's rules for threads, contexts, streams, events, memory and code.
#include <algorithm>

#include "tests/fuzz/model.h"

namespace fuzz {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

// Host memory that a kernel or the host may touch.
bool is_host_memory(int memory) {
  return memory == kPinnedMemory || memory == kManagedMemory || memory == kPageableMemory ||
         memory == kRegisteredMemory;
}

bool is_pinned(int memory) {
  return memory == kPinnedMemory || memory == kRegisteredMemory;
}
bool is_device(int memory) {
  return memory == kDeviceMemory || memory == kManagedMemory || is_array(memory);
}

// A grid takes copies with rows, a line those without; neither those that name only addresses.
bool may_copy(int how, int to, int from) {
  const bool has_grid = to == kGridMemory || from == kGridMemory;
  const bool has_line = to == kLineMemory || from == kLineMemory;
  return !(has_grid && (has_line || how < k2D)) && !(has_line && how > kDtoD);
}

}  // namespace

bool Model::signal(const Step& s) {
  if (tokens_[at(s[0])] >= 0) return false;
  tokens_[at(s[0])] = s.number;
  token_bits_[at(s[0])] = known(s.thread);
  token_bits_[at(s[0])].set(host_bit(s.number));
  return true;
}

bool Model::await(const Step& s) {
  if (tokens_[at(s[0])] < 0) return false;
  learn(s.thread, token_bits_[at(s[0])]);
  return true;
}

// The base module of a context comes with it, in the module slot of the same number.
bool Model::context_open(const Step& s) {
  ContextModel& context = contexts[at(s[0])];
  if (!can_create(context, s.thread) || !can_create(modules[at(s[0])], s.thread)) return false;
  if (s[1] == 2 && std::any_of(contexts.begin(), contexts.end(), [](const ContextModel& other) {
        return other.is_alive && other.how == 2;
      })) {
    return false;
  }
  // The shared context of a slot is always the same one: it must not come back after a close.
  if (s[1] == 0 && context.life > 0) return false;
  context.how = s[1];
  start_context(s);
  return true;
}

void Model::start_context(const Step& s) {
  ContextModel& context = contexts[at(s[0])];
  create(context, s, s[0]);
  context.is_broken = false;
  context.waits.clear();
  ModuleModel& module = modules[at(s[0])];
  create(module, s, s[0]);
  module.shared_limit.fill(kSharedLimit);
  for (std::size_t thread = 0; thread < known_.size(); ++thread) {
    StreamModel& stream = own_streams_[at(s[0]) * known_.size() + thread];
    create(stream, s, s[0]);
    stream.is_blocking = true;
    stream.capture = -1;
  }
}

bool Model::nobody_else_has(int context, int thread) const {
  for (std::size_t other = 0; other < stacks_.size(); ++other) {
    const auto& stack = stacks_[other];
    const auto count = std::count(stack.begin(), stack.end(), context);
    if (other != at(thread) ? count != 0 : count != 1 || stack.back() != context) return false;
  }
  return true;
}

bool Model::all_work_is_known(int context, int thread) const {
  return std::all_of(work_.begin(), work_.end(), [&](const DeviceWork& work) {
    return work.context != context || known(thread).test(device_bit(work.step));
  });
}

void Model::kill_context(int context) {
  const auto kill = [context](auto& slots) {
    for (auto& slot : slots) {
      if (slot.is_alive && slot.context == context) slot.is_alive = false;
    }
  };
  kill(streams);
  kill(own_streams_);
  kill(events);
  kill(buffers);
  kill(modules);
  kill(graphs);
  kill(execs);
}

bool Model::context_close(const Step& s) {
  ContextModel& context = contexts[at(s[0])];
  if (context.how == 0 || !can_change(context, s.thread)) return false;
  if (!nobody_else_has(s[0], s.thread)) return false;
  // Work of other contexts on its memory would fault.
  for (BufferModel& buffer : buffers) {
    if (buffer.is_alive && buffer.context == s[0] && (buffer.foreign & ~known(s.thread)).any()) {
      return false;
    }
  }
  learn(s.thread, [&] {
    Bits all;
    for (const DeviceWork& work : work_) {
      if (work.context == s[0]) all |= work.all;
    }
    return all;
  }());
  kill_context(s[0]);
  const auto mark = [&](auto& slots) {
    for (auto& slot : slots) {
      if (!slot.is_alive && slot.context == s[0]) change(slot, s);
    }
  };
  mark(streams);
  mark(events);
  mark(buffers);
  mark(modules);
  mark(graphs);
  mark(execs);
  context.is_alive = false;
  change(context, s);
  stacks_[at(s.thread)].pop_back();
  return true;
}

bool Model::context_set(const Step& s) {
  if (!is_usable(s[0]) || !can_use(contexts[at(s[0])], s.thread)) return false;
  auto& stack = stacks_[at(s.thread)];
  if (!stack.empty()) stack.pop_back();
  stack.push_back(s[0]);
  use(contexts[at(s[0])], s);
  return true;
}

bool Model::context_push(const Step& s) {
  auto& stack = stacks_[at(s.thread)];
  if (!is_usable(s[0]) || !can_use(contexts[at(s[0])], s.thread) || stack.size() >= 4) return false;
  stack.push_back(s[0]);
  use(contexts[at(s[0])], s);
  return true;
}

bool Model::context_pop(const Step& s) {
  auto& stack = stacks_[at(s.thread)];
  if (stack.size() < 2 || !is_usable(stack.back())) return false;
  use(contexts[at(stack.back())], s);
  stack.pop_back();
  return true;
}

bool Model::context_sync(const Step& s) {
  if (!has_usable_context(s.thread)) return false;
  const int context = current(s.thread);
  Bits all;
  for (const DeviceWork& work : work_) {
    if (work.context == context && known(s.thread).test(host_bit(work.step))) all |= work.all;
  }
  learn(s.thread, all);
  use(contexts[at(context)], s);
  return true;
}

// Everything of the context goes; the handle stays and the interpreter loads its base module again.
bool Model::primary_reset(const Step& s) {
  ContextModel& context = contexts[at(s[0])];
  if (context.how != 2 || !is_usable(s[0]) || !can_change(context, s.thread)) return false;
  const Step close = s;
  if (!context_close(close)) return false;
  stacks_[at(s.thread)].push_back(s[0]);
  start_context(s);
  return true;
}

// A kernel that faults, and the calls that must report it. Only the close may follow.
bool Model::fault(const Step& s) {
  ContextModel& context = contexts[at(s[0])];
  if (context.how != 1 || current(s.thread) != s[0] || !has_usable_context(s.thread)) return false;
  if (!can_change(context, s.thread) || !nobody_else_has(s[0], s.thread)) return false;
  if (!all_work_is_known(s[0], s.thread)) return false;
  const ModuleModel& module = modules[at(s[1])];
  if (module.context != s[0] || !can_use(module, s.thread)) return false;
  context.is_broken = true;
  change(context, s);
  return true;
}

bool Model::alloc(const Step& s) {
  BufferModel& buffer = buffers[at(s[0])];
  if (!can_create(buffer, s.thread)) return false;
  if (s[1] != kPageableMemory && !has_usable_context(s.thread)) return false;
  create(buffer, s, s[1] == kPageableMemory ? -1 : current(s.thread));
  buffer.memory = s[1];
  buffer.is_pool = false;
  buffer.last_write = static_cast<int>(host_bit(s.number));
  buffer.reads.reset();
  buffer.adds.reset();
  buffer.foreign.reset();
  buffer.value_step = -1;
  if (buffer.context >= 0) use(contexts[at(buffer.context)], s);
  return true;
}

bool Model::free_memory(const Step& s) {
  BufferModel& buffer = buffers[at(s[0])];
  if (!can_change(buffer, s.thread) || (buffer.foreign & ~known(s.thread)).any()) return false;
  const bool waits =
      !buffer.is_pool && buffer.memory != kPageableMemory && buffer.memory != kRegisteredMemory;
  if (!waits && !can_access(known(s.thread), s[0], Mode::kWrite)) return false;
  if (buffer.context >= 0) {
    if (current(s.thread) != buffer.context || !has_usable_context(s.thread)) return false;
    use(contexts[at(buffer.context)], s);
  }
  buffer.is_alive = false;
  change(buffer, s);
  return true;
}

bool Model::alloc_async(const Step& s) {
  BufferModel& buffer = buffers[at(s[0])];
  StreamRef ref;
  if (!can_create(buffer, s.thread) || !resolve(s.thread, s[1], &ref)) return false;
  if (current(s.thread) != ref.context || !submit(s, s[1], NodeModel())) return false;
  create(buffer, s, ref.context);
  buffer.memory = kDeviceMemory;
  buffer.is_pool = true;
  buffer.last_write = static_cast<int>(device_bit(s.number));
  buffer.reads.reset();
  buffer.adds.reset();
  buffer.foreign.reset();
  buffer.value_step = -1;
  return true;
}

bool Model::free_async(const Step& s) {
  BufferModel& buffer = buffers[at(s[0])];
  StreamRef ref;
  if (!buffer.is_pool || !can_change(buffer, s.thread) || !resolve(s.thread, s[1], &ref))
    return false;
  if (ref.context != buffer.context || (buffer.foreign & ~known(s.thread)).any()) return false;
  NodeModel node;
  node.accesses = {{s[0], Mode::kWrite}};
  if (!submit(s, s[1], node)) return false;
  buffer.is_alive = false;
  change(buffer, s);
  return true;
}

bool Model::memset(const Step& s) {
  BufferModel& buffer = buffers[at(s[2])];
  StreamRef ref;
  if (!buffer.is_alive || buffer.memory == kPageableMemory || is_array(buffer.memory)) return false;
  if (!resolve(s.thread, s[4], &ref) || buffer.context != ref.context) return false;
  if (s[1] == 0 && s[4] != kNullStream && s[4] != kPtszStream) return false;
  NodeModel node;
  node.type = NodeModel::kMemset;
  node.accesses = {{s[2], Mode::kWrite}};
  return submit(s, s[4], node);
}

bool Model::copy(const Step& s) {
  const int how = s[0], to = s[1], from = s[2];
  if (to == from || s[3] < 0 || s[4] <= 0 || s[3] + s[4] > kWords) return false;
  BufferModel& target = buffers[at(to)];
  BufferModel& source = buffers[at(from)];
  StreamRef ref;
  if (!can_use(target, s.thread) || !can_use(source, s.thread)) return false;
  if (!resolve(s.thread, s[5], &ref)) return false;
  if (!is_async(how) && s[5] != kNullStream && s[5] != kPtszStream) return false;
  const bool is_peer = how == kPeer || how == kPeerAsync || how == k3DPeer || how == k3DPeerAsync;
  const bool device_to = is_device(target.memory), device_from = is_device(source.memory);
  const bool to_device = how == kHtoD || how == kHtoDAsync,
             to_host = how == kDtoH || how == kDtoHAsync;
  const bool within = is_peer || how == kDtoD || how == kDtoDAsync;
  if (!may_copy(how, target.memory, source.memory)) return false;
  if (to_device && (!device_to || device_from)) return false;
  if (to_host && (device_to || !device_from)) return false;
  if (within && (!device_to || !device_from)) return false;
  if (target.memory == kPageableMemory && source.memory == kPageableMemory) return false;
  for (const BufferModel* side : {&target, &source}) {
    if (side->context < 0) continue;
    if (!is_peer && side->context != ref.context) return false;
    if (!is_usable(side->context) || !can_use(contexts[at(side->context)], s.thread)) return false;
  }
  NodeModel node;
  node.type = NodeModel::kCopy;
  node.memory = target.memory * 8 + source.memory;
  node.accesses = {{to, Mode::kWrite}};
  const bool reads_now = source.memory == kPageableMemory;
  if (reads_now && !can_access(known(s.thread), from, Mode::kRead)) return false;
  if (!reads_now) node.accesses.push_back({from, Mode::kRead});
  const StreamModel* const stream = model_of(ref);
  if (stream != nullptr && stream->capture >= 0 && reads_now) return false;
  if (!submit(s, s[5], node)) return false;
  if (reads_now) touch(host_bit(s.number), {{from, Mode::kRead}}, -1);
  for (const BufferModel* side : {&target, &source}) {
    if (side->context >= 0) use(contexts[at(side->context)], s);
  }
  // Documented as complete on return: to pageable memory always, with pinned memory when
  // synchronous.
  const bool has_pinned = is_pinned(target.memory) || is_pinned(source.memory);
  const bool is_complete =
      target.memory == kPageableMemory || (!is_async(how) && has_pinned && !reads_now);
  if (is_complete) learn(s.thread, work_.back().all);
  return true;
}

// Without order among its copies; sources that are not read in stream order must be free already.
bool Model::copy_batch(const Step& s) {
  StreamRef ref;
  if (is_legacy(s[5]) || !resolve(s.thread, s[5], &ref)) return false;
  if (s[1] == s[2] || s[1] == s[3] || s[1] == s[4] || s[3] == s[2] || s[3] == s[4]) return false;
  NodeModel node;
  node.type = NodeModel::kCopy;
  std::vector<Access> read_now;
  for (int i = 1; i <= 4; ++i) {
    const BufferModel& buffer = buffers[at(s[at(i)])];
    if (!can_use(buffer, s.thread) || is_array(buffer.memory)) return false;
    if (buffer.context >= 0 && buffer.context != ref.context) return false;
    const bool is_source = i % 2 == 0;
    if (!is_source) {
      node.accesses.push_back({s[at(i)], Mode::kWrite});
      continue;
    }
    const bool is_early = s[0] != kInStream;
    if (is_early && !can_access(known(s.thread), s[at(i)], Mode::kRead)) return false;
    const bool is_over = s[0] == kDuringCall && !is_device(buffer.memory);
    if (is_over) {
      read_now.push_back({s[at(i)], Mode::kRead});
    } else if (i == 2 || s[4] != s[2]) {
      node.accesses.push_back({s[at(i)], Mode::kRead});
    }
  }
  if (!submit(s, s[5], node)) return false;
  if (!read_now.empty()) touch(host_bit(s.number), read_now, -1);
  use(contexts[at(ref.context)], s);
  return true;
}

bool Model::host_access(const Step& s, Mode mode) {
  BufferModel& buffer = buffers[at(s[0])];
  if (!can_use(buffer, s.thread) || !is_host_memory(buffer.memory)) return false;
  if (buffer.context >= 0 && !is_usable(buffer.context)) return false;
  if (!can_access(known(s.thread), s[0], mode)) return false;
  touch(host_bit(s.number), {{s[0], mode}}, buffer.context);
  if (buffer.context >= 0) use(contexts[at(buffer.context)], s);
  return true;
}

bool Model::observe(const Step& s) {
  BufferModel& buffer = buffers[at(s[0])];
  StreamRef ref;
  if (!can_use(buffer, s.thread) || !is_device(buffer.memory)) return false;
  if (!resolve(s.thread, kNullStream, &ref) || ref.context != buffer.context) return false;
  NodeModel node;
  node.accesses = {{s[0], Mode::kRead}};
  if (!submit(s, kNullStream, node)) return false;
  learn(s.thread, work_.back().all);
  return true;
}

// Where managed memory lies is nobody's business but the driver's: no access.
bool Model::prefetch(const Step& s) {
  BufferModel& buffer = buffers[at(s[0])];
  StreamRef ref;
  if (!can_use(buffer, s.thread) || buffer.memory != kManagedMemory) return false;
  if (!resolve(s.thread, s[2], &ref) || ref.context != buffer.context) return false;
  if (!submit(s, s[2], NodeModel())) return false;
  use(buffer, s);
  return true;
}

bool Model::advise(const Step& s) {
  BufferModel& buffer = buffers[at(s[0])];
  if (!can_use(buffer, s.thread) || buffer.memory != kManagedMemory) return false;
  if (current(s.thread) != buffer.context || !has_usable_context(s.thread)) return false;
  use(buffer, s);
  use(contexts[at(buffer.context)], s);
  return true;
}

bool Model::module_load(const Step& s) {
  if (s[0] < kContexts) return false;
  ModuleModel& module = modules[at(s[0])];
  if (!can_create(module, s.thread) || !has_usable_context(s.thread)) return false;
  create(module, s, current(s.thread));
  module.image = s[1];
  module.is_library = s[2] != 0;
  module.shared_limit.fill(kSharedLimit);
  use(contexts[at(module.context)], s);
  return true;
}

bool Model::module_unload(const Step& s) {
  ModuleModel& module = modules[at(s[0])];
  if (s[0] < kContexts || !can_change(module, s.thread)) return false;
  if (current(s.thread) != module.context || !has_usable_context(s.thread)) return false;
  use(contexts[at(module.context)], s);
  module.is_alive = false;
  change(module, s);
  return true;
}

// The shared contexts' own modules outlive the program: their functions are left as they are.
bool Model::function_attribute(const Step& s) {
  ModuleModel& module = modules[at(s[0])];
  if (!can_change(module, s.thread) || current(s.thread) != module.context) return false;
  if (!has_usable_context(s.thread)) return false;
  if (s[0] < kContexts && contexts[at(s[0])].how == 0) return false;
  if (!has_kernel(module.image, s[1])) return false;
  if (s[2] == 0) module.shared_limit[at(s[1])] = s[3];
  use(contexts[at(module.context)], s);
  change(module, s);
  return true;
}

bool Model::function_get(const Step& s) {
  ModuleModel& module = modules[at(s[0])];
  if (!can_use(module, s.thread) || current(s.thread) != module.context) return false;
  if (!has_usable_context(s.thread)) return false;
  use(module, s);
  use(contexts[at(module.context)], s);
  return true;
}

bool Model::bad_launch(const Step& s) {
  StreamRef ref;
  const ModuleModel& module = modules[at(s[1])];
  if (!can_use(module, s.thread) || !resolve(s.thread, s[2], &ref)) return false;
  if (module.context != ref.context || current(s.thread) != ref.context) return false;
  use(modules[at(s[1])], s);
  use_stream(ref, s);
  use(contexts[at(ref.context)], s);
  return true;
}

// The handle is made and destroyed by the step itself; another thread might get it again.
bool Model::bad_handle(const Step& s) {
  if (known_.size() > 1 || !has_usable_context(s.thread)) return false;
  use(contexts[at(current(s.thread))], s);
  return true;
}

bool Model::bad_copy(const Step& s) {
  const BufferModel& buffer = buffers[at(s[1])];
  if (!can_use(buffer, s.thread) || buffer.memory != kDeviceMemory) return false;
  if (current(s.thread) != buffer.context || !has_usable_context(s.thread)) return false;
  use(buffers[at(s[1])], s);
  use(contexts[at(buffer.context)], s);
  return true;
}

}  // namespace fuzz
