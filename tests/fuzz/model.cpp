// SPDX-License-Identifier: Apache-2.0
// The core of the model: happens-before sets, objects shared by threads, accesses to memory, and
// what may run beside a capture.
#include "tests/fuzz/model.h"

#include <algorithm>

namespace fuzz {
namespace {

constexpr int kFirstPerThreadUid = 100;

int per_thread_uid(int context, int thread) {
  return kFirstPerThreadUid + context * kMaxThreads + thread;
}

}  // namespace

Model::Model(int threads, bool polls_memory)
    : polls_memory_(polls_memory),
      known_(static_cast<std::size_t>(threads)),
      stacks_(static_cast<std::size_t>(threads)),
      own_streams_(static_cast<std::size_t>(threads * kContexts)),
      thread_modes_(static_cast<std::size_t>(threads)),
      tokens_(kTokens, -1),
      token_bits_(kTokens),
      last_unsafe_(static_cast<std::size_t>(threads), -1) {}

bool Model::can_use(const Object& object, int thread) const {
  return object.is_alive && known(thread).test(host_bit(object.changed));
}

bool Model::can_change(const Object& object, int thread) const {
  return can_use(object, thread) && (object.uses & ~known(thread)).none();
}

bool Model::can_create(const Object& object, int thread) const {
  if (object.is_alive) return false;
  return object.changed < 0 || known(thread).test(host_bit(object.changed));
}

void Model::create(Object& object, const Step& s, int context) {
  object.is_alive = true;
  ++object.life;
  object.context = context;
  object.changed = s.number;
  object.uses.reset();
}

void Model::change(Object& object, const Step& s) {
  object.changed = s.number;
  object.uses.reset();
}

int Model::current(int thread) const {
  const auto& stack = stacks_[static_cast<std::size_t>(thread)];
  return stack.empty() ? -1 : stack.back();
}

bool Model::is_usable(int context) const {
  return context >= 0 && contexts[static_cast<std::size_t>(context)].is_alive &&
         !contexts[static_cast<std::size_t>(context)].is_broken;
}

bool Model::has_usable_context(int thread) const {
  const int context = current(thread);
  return is_usable(context) && can_use(contexts[static_cast<std::size_t>(context)], thread);
}

bool Model::is_capturing(int thread) const {
  return std::any_of(captures.begin(), captures.end(), [&](const CaptureModel& capture) {
    return capture.is_active && capture.thread == thread;
  });
}

bool Model::resolve(int thread, int stream, StreamRef* ref) const {
  if (stream >= 0) {
    const StreamModel& slot = streams[static_cast<std::size_t>(stream)];
    if (!can_use(slot, thread) || !is_usable(slot.context)) return false;
    *ref = {slot.uid, slot.context,
            slot.is_blocking ? StreamRef::kBlocking : StreamRef::kNonBlocking, stream, -1};
    return true;
  }
  if (!has_usable_context(thread)) return false;
  const int context = current(thread);
  if (stream == kNullStream || stream == kLegacyStream) {
    *ref = {context, context, StreamRef::kLegacy, -1, -1};
  } else {
    const int own = context * static_cast<int>(known_.size()) + thread;
    *ref = {per_thread_uid(context, thread), context, StreamRef::kBlocking, -1, own};
  }
  return true;
}

const StreamModel* Model::model_of(const StreamRef& ref) const {
  if (ref.slot >= 0) return &streams[static_cast<std::size_t>(ref.slot)];
  return ref.own >= 0 ? &own_streams_[static_cast<std::size_t>(ref.own)] : nullptr;
}

StreamModel* Model::model_of(const StreamRef& ref) {
  return const_cast<StreamModel*>(static_cast<const Model*>(this)->model_of(ref));
}

void Model::use_stream(const StreamRef& ref, const Step& s) {
  if (StreamModel* const stream = model_of(ref)) use(*stream, s);
}

Bits Model::before(int thread, const StreamRef& ref) const {
  Bits all = known(thread);
  for (const DeviceWork& work : work_) {
    if (work.context != ref.context || !known(thread).test(host_bit(work.step))) continue;
    const bool is_ordered =
        work.uid == ref.uid ||
        (ref.order == StreamRef::kLegacy && work.order == StreamRef::kBlocking) ||
        (ref.order == StreamRef::kBlocking && work.order == StreamRef::kLegacy);
    if (is_ordered) all |= work.all;
  }
  for (const ContextWait& wait : contexts[static_cast<std::size_t>(ref.context)].waits) {
    if (known(thread).test(host_bit(wait.step))) all |= wait.order;
  }
  return all;
}

Bits Model::submitted(int thread, const StreamRef& ref) const {
  Bits all;
  for (const DeviceWork& work : work_) {
    if (work.uid == ref.uid && known(thread).test(host_bit(work.step))) all |= work.all;
  }
  return all;
}

bool Model::can_access(const Bits& order, int buffer, Mode mode) const {
  const BufferModel& slot = buffers[static_cast<std::size_t>(buffer)];
  if (!slot.is_alive || !order.test(host_bit(slot.changed))) return false;
  if (slot.last_write < 0 || !order.test(static_cast<std::size_t>(slot.last_write))) return false;
  if (mode != Mode::kAdd && (slot.adds & ~order).any()) return false;
  return mode == Mode::kRead || (slot.reads & ~order).none();
}

// Two accesses of one step do not conflict with each other: kernels work on their own index.
bool Model::accesses_are_ordered(const Bits& order, const std::vector<Access>& accesses) const {
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return can_access(order, access.buffer, access.mode);
  });
}

void Model::touch(std::size_t bit, const std::vector<Access>& accesses, int context) {
  const auto all_of_mode = [&](Mode mode, auto&& act) {
    for (const Access& access : accesses) {
      if (access.mode == mode) act(buffers[static_cast<std::size_t>(access.buffer)]);
    }
  };
  all_of_mode(Mode::kWrite, [&](BufferModel& slot) {
    slot.last_write = static_cast<int>(bit);
    slot.reads.reset();
    slot.adds.reset();
    slot.value_step = -1;
  });
  all_of_mode(Mode::kRead, [&](BufferModel& slot) { slot.reads.set(bit); });
  all_of_mode(Mode::kAdd, [&](BufferModel& slot) {
    slot.adds.set(bit);
    slot.value_step = -1;
  });
  for (const Access& access : accesses) {
    BufferModel& slot = buffers[static_cast<std::size_t>(access.buffer)];
    slot.uses.set(bit & ~std::size_t{1});
    if (slot.context != context && bit % 2 == 1) slot.foreign.set(bit);
  }
}

bool Model::fill_lives(std::vector<Access>& accesses) const {
  for (Access& access : accesses) {
    if (access.buffer < 0 || access.buffer >= kBuffers) return false;
    access.life = buffers[static_cast<std::size_t>(access.buffer)].life;
  }
  return true;
}

bool Model::are_alive(const NodeModel& node) const {
  if (node.module >= 0) {
    const ModuleModel& module = modules[static_cast<std::size_t>(node.module)];
    if (!module.is_alive || module.life != node.module_life) return false;
  }
  if (!std::all_of(node.children.begin(), node.children.end(),
                   [this](const NodeModel& child) { return are_alive(child); })) {
    return false;
  }
  return std::all_of(node.accesses.begin(), node.accesses.end(), [&](const Access& access) {
    const BufferModel& slot = buffers[static_cast<std::size_t>(access.buffer)];
    return slot.is_alive && slot.life == access.life;
  });
}

bool Model::add_node(std::vector<NodeModel>& nodes, NodeModel node) const {
  if (nodes.size() >= 60) return false;
  const std::uint64_t own = std::uint64_t{1} << nodes.size();
  if ((node.after & ~(own - 1)) != 0) return false;
  node.before = own;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if ((node.after >> i & 1) != 0) node.before |= nodes[i].before;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if ((node.before >> i & 1) != 0) continue;
    for (const Access& theirs : nodes[i].accesses) {
      for (const Access& ours : node.accesses) {
        const bool commute = theirs.mode == ours.mode && ours.mode != Mode::kWrite;
        if (theirs.buffer == ours.buffer && !commute) return false;
      }
    }
  }
  nodes.push_back(std::move(node));
  return true;
}

bool Model::submit_node(const Step& s, const StreamRef& ref, NodeModel node) {
  StreamModel& stream = *model_of(ref);
  CaptureModel& capture = captures[static_cast<std::size_t>(stream.capture)];
  if (capture.is_invalid || capture.thread != s.thread) return false;
  // A node stands for itself: nothing it touches may be unknown to this thread now.
  for (const Access& access : node.accesses) {
    if (!can_use(buffers[static_cast<std::size_t>(access.buffer)], s.thread)) return false;
    if (!is_node_memory(access.buffer, ref.context)) return false;
  }
  node.after = stream.capture_tail;
  const std::size_t index = capture.nodes.size();
  if (!add_node(capture.nodes, std::move(node))) return false;
  stream.capture_tail = std::uint64_t{1} << index;
  use(stream, s);
  for (const Access& access : capture.nodes.back().accesses) {
    use(buffers[static_cast<std::size_t>(access.buffer)], s);
  }
  return true;
}

bool Model::submit(const Step& s, int stream, NodeModel node, const Bits& extra) {
  StreamRef ref;
  if (!resolve(s.thread, stream, &ref) || !fill_lives(node.accesses)) return false;
  if (node.module >= 0 && modules[static_cast<std::size_t>(node.module)].context != ref.context) {
    return false;
  }
  const StreamModel* const of_stream = model_of(ref);
  if (of_stream != nullptr && of_stream->capture >= 0) {
    if (extra.any() || !submit_node(s, ref, node)) return false;
  } else {
    Bits order = before(s.thread, ref) | extra;
    if (!accesses_are_ordered(order, node.accesses)) return false;
    touch(device_bit(s.number), node.accesses, ref.context);
    order.set(host_bit(s.number));
    order.set(device_bit(s.number));
    work_.push_back({s.number, ref.uid, ref.context, ref.order, order});
    use_stream(ref, s);
  }
  use(contexts[static_cast<std::size_t>(ref.context)], s);
  if (node.module >= 0) use(modules[static_cast<std::size_t>(node.module)], s);
  return true;
}

// Calls that a capture forbids to threads that did not ask to be let.
bool Model::is_left_to_relaxed(const Step& s) const {
  switch (s.kind) {
    case Kind::k_stream_create:
    case Kind::k_module_load:
    case Kind::k_event_query:
    case Kind::k_event_sync:
      return thread_modes_[static_cast<std::size_t>(s.thread)] == 2;
    default:
      return false;
  }
}

// Calls that neither invalidate a capture nor are changed by one.
bool Model::is_capture_safe(const Step& s) const {
  if (is_left_to_relaxed(s)) return true;
  switch (s.kind) {
    case Kind::k_stream_sync:
    case Kind::k_stream_query: {
      StreamRef ref;
      if (is_legacy(s[0]) || !resolve(s.thread, s[0], &ref)) return false;
      return model_of(ref)->capture < 0;
    }
    case Kind::k_context_set:
    case Kind::k_context_push:
    case Kind::k_context_pop:
      return !is_capturing(s.thread);  // its end names a per-thread stream by the current context
    case Kind::k_signal:
    case Kind::k_await:
    case Kind::k_host_write:
    case Kind::k_host_read:
      return true;
    case Kind::k_launch:
      return !is_legacy(s[3]) && s[0] != kCooperative && s[0] != kGrid;
    case Kind::k_memset:
      return s[1] != 0 && !is_legacy(s[4]);
    case Kind::k_copy:
      return is_async(s[0]) && !is_legacy(s[5]) &&
             buffers[static_cast<std::size_t>(s[1])].memory != kPageableMemory &&
             buffers[static_cast<std::size_t>(s[2])].memory != kPageableMemory;
    case Kind::k_event_record:
    case Kind::k_exec_launch:
      return !is_legacy(s[1]);
    case Kind::k_event_wait:
      return !is_legacy(s[0]);
    case Kind::k_host_function:
      return s[0] == 0 && !is_legacy(s[1]);
    case Kind::k_thread_mode:
    case Kind::k_capture_begin:
    case Kind::k_capture_into:
    case Kind::k_capture_end:
    case Kind::k_capture_info:
    case Kind::k_capture_break:
      return true;
    default:
      return false;
  }
}

bool Model::respects_captures(const Step& s) const {
  if (is_capture_safe(s)) {
    // A capture that begins has nothing unsafe beside it.
    if (s.kind != Kind::k_capture_begin && s.kind != Kind::k_capture_into) return true;
    for (const int unsafe : last_unsafe_) {
      if (unsafe >= 0 && !known(s.thread).test(host_bit(unsafe))) return false;
    }
    return true;
  }
  const bool is_open = std::any_of(captures.begin(), captures.end(),
                                   [](const CaptureModel& capture) { return capture.is_active; });
  return !is_open && (capture_ends_ & ~known(s.thread)).none();
}

bool Model::apply(const Step& s) {
  if (s.number >= kMaxSteps || s.thread >= static_cast<int>(known_.size())) return false;
  if (!respects_captures(s)) return false;
  // The call itself is what its own effects are behind.
  if (!apply_kind(s)) return false;
  known(s.thread).set(host_bit(s.number));
  if (!is_capture_safe(s)) last_unsafe_[static_cast<std::size_t>(s.thread)] = s.number;
  return true;
}

bool Model::apply_kind(const Step& s) {
  switch (s.kind) {
    case Kind::k_signal:
      return signal(s);
    case Kind::k_await:
      return await(s);
    case Kind::k_context_open:
      return context_open(s);
    case Kind::k_context_close:
      return context_close(s);
    case Kind::k_context_set:
      return context_set(s);
    case Kind::k_context_push:
      return context_push(s);
    case Kind::k_context_pop:
      return context_pop(s);
    case Kind::k_context_sync:
      return context_sync(s);
    case Kind::k_primary_reset:
      return primary_reset(s);
    case Kind::k_fault:
      return fault(s);
    case Kind::k_stream_create:
      return stream_create(s);
    case Kind::k_stream_destroy:
      return stream_destroy(s);
    case Kind::k_stream_sync:
    case Kind::k_stream_query:
      return stream_sync(s);
    case Kind::k_stream_attribute:
      return stream_attribute(s);
    case Kind::k_stream_copy:
      return stream_copy(s);
    case Kind::k_event_create:
      return event_create(s);
    case Kind::k_event_destroy:
      return event_destroy(s);
    case Kind::k_event_record:
      return event_record(s);
    case Kind::k_event_wait:
      return event_wait(s);
    case Kind::k_event_sync:
    case Kind::k_event_query:
      return event_sync(s);
    case Kind::k_event_elapsed:
      return event_elapsed(s);
    case Kind::k_value_write:
      return value_write(s);
    case Kind::k_value_wait:
      return value_wait(s);
    case Kind::k_value_batch:
      return value_batch(s);
    case Kind::k_context_record:
      return context_record(s);
    case Kind::k_context_wait:
      return context_wait(s);
    case Kind::k_alloc:
      return alloc(s);
    case Kind::k_free:
      return free_memory(s);
    case Kind::k_alloc_async:
      return alloc_async(s);
    case Kind::k_free_async:
      return free_async(s);
    case Kind::k_memset:
      return memset(s);
    case Kind::k_copy:
      return copy(s);
    case Kind::k_copy_batch:
      return copy_batch(s);
    case Kind::k_host_write:
      return host_access(s, Mode::kWrite);
    case Kind::k_host_read:
      return host_access(s, Mode::kRead);
    case Kind::k_observe:
      return observe(s);
    case Kind::k_memory_info:
      return has_usable_context(s.thread);
    case Kind::k_prefetch:
      return prefetch(s);
    case Kind::k_advise:
      return advise(s);
    case Kind::k_module_load:
      return module_load(s);
    case Kind::k_module_unload:
      return module_unload(s);
    case Kind::k_function_attribute:
      return function_attribute(s);
    case Kind::k_function_get:
      return function_get(s);
    case Kind::k_launch:
      return launch(s);
    case Kind::k_host_function:
      return host_function(s);
    case Kind::k_spin:
      return spin(s);
    case Kind::k_thread_mode:
      return thread_mode(s);
    case Kind::k_capture_begin:
    case Kind::k_capture_into:
      return capture_begin(s);
    case Kind::k_capture_end:
      return capture_end(s);
    case Kind::k_capture_info:
      return capture_info(s);
    case Kind::k_capture_break:
      return capture_break(s);
    case Kind::k_graph_create:
      return graph_create(s);
    case Kind::k_graph_kernel:
    case Kind::k_graph_memset:
    case Kind::k_graph_copy:
    case Kind::k_graph_host:
    case Kind::k_graph_empty:
      return graph_node(s);
    case Kind::k_graph_child:
      return graph_child(s);
    case Kind::k_graph_clone:
      return graph_clone(s);
    case Kind::k_graph_destroy:
      return graph_destroy(s);
    case Kind::k_exec_create:
      return exec_create(s);
    case Kind::k_exec_update:
      return exec_update(s);
    case Kind::k_exec_set_kernel:
      return exec_set_kernel(s);
    case Kind::k_exec_launch:
      return exec_launch(s);
    case Kind::k_exec_upload:
      return exec_upload(s);
    case Kind::k_exec_destroy:
      return exec_destroy(s);
    case Kind::k_bad_launch:
      return bad_launch(s);
    case Kind::k_bad_handle:
      return bad_handle(s);
    case Kind::k_bad_copy:
      return bad_copy(s);
  }
  return false;
}

}  // namespace fuzz
