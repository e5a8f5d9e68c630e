// SPDX-License-Identifier: Apache-2.0
// The model's rules for launches, host functions, captures and graphs.
#include <algorithm>

#include "tests/fuzz/model.h"

namespace fuzz {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

std::vector<Access> kernel_accesses(int kernel, int b0, int b1, int b2) {
  switch (kernel) {
    case kAffine:
    case kNarrow:
    case kByValue:
    case kPublish:
    case kRelay:
    case kWhere:
      return {{b0, Mode::kWrite}};
    case kMix:
      return {{b0, Mode::kWrite}, {b1, Mode::kRead}};
    case kWide:
      return {{b0, Mode::kWrite}, {b1, Mode::kRead}, {b2, Mode::kRead}};
    case kShape:
    case kCountUp:
      return {{b0, Mode::kAdd}};
    default:
      return {};
  }
}

// Limits of the kernels in tests/programs/scenario_kernels.cu; some index by thread alone.
bool is_shape_legal(int kernel, int grid, int block, int shared) {
  if (grid < 1 || grid > 4 || block < 1 || block > 128 || shared < 0 || shared > 40960)
    return false;
  const bool one_block = kernel == kNarrow || kernel == kByValue || kernel == kPublish;
  if (one_block && (grid != 1 || block > kWords)) return false;
  if ((kernel == kPublish || kernel == kWhere) && block != 1) return false;
  return kernel != kShape || shared >= 4 * block;
}

// The nodes of a graph as one piece of work.
NodeModel whole(const std::vector<NodeModel>& nodes) {
  NodeModel all;
  all.type = NodeModel::kChild;
  all.children = nodes;
  for (const NodeModel& node : nodes) {
    for (const Access& access : node.accesses) {
      const bool is_known =
          std::any_of(all.accesses.begin(), all.accesses.end(), [&](const Access& known) {
            return known.buffer == access.buffer && known.mode == access.mode;
          });
      if (!is_known) all.accesses.push_back(access);
    }
  }
  // Additions beside other accesses of the same buffer are ordered inside; outside they are writes.
  for (Access& access : all.accesses) {
    if (access.mode != Mode::kAdd) continue;
    const bool is_mixed =
        std::any_of(all.accesses.begin(), all.accesses.end(), [&](const Access& other) {
          return other.buffer == access.buffer && other.mode != Mode::kAdd;
        });
    if (is_mixed) access.mode = Mode::kWrite;
  }
  return all;
}

// An update of one by the other certainly succeeds.
bool have_same_shape(const std::vector<NodeModel>& one, const std::vector<NodeModel>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const NodeModel& a, const NodeModel& b) {
                      return a.type == b.type && a.after == b.after && a.memory == b.memory &&
                             a.module == b.module && a.kernel == b.kernel &&
                             have_same_shape(a.children, b.children);
                    });
}

}  // namespace

bool Model::kernel_node(int thread, int module, int kernel, int grid, int block, int shared, int b0,
                        int b1, int b2, int context, NodeModel* node) const {
  if (module < 0 || module >= kModules) return false;
  const ModuleModel& slot = modules[at(module)];
  if (!can_use(slot, thread) || slot.context != context) return false;
  if (!is_shape_legal(kernel, grid, block, shared)) return false;
  if (!has_kernel(slot.image, kernel)) return false;
  node->type = NodeModel::kKernel;
  node->accesses = kernel_accesses(kernel, b0, b1, b2);
  node->module = module;
  node->module_life = slot.life;
  node->kernel = kernel;
  return std::all_of(node->accesses.begin(), node->accesses.end(), [&](const Access& access) {
    return is_node_memory(access.buffer, context) && !is_array(buffers[at(access.buffer)].memory);
  });
}

// A node reaches what its own context made, pageable memory excepted; of arrays only a copy.
bool Model::is_node_memory(int buffer, int context) const {
  const BufferModel& slot = buffers[at(buffer)];
  return slot.is_alive && slot.context == context && slot.memory != kPageableMemory;
}

bool Model::can_use_modules(const std::vector<NodeModel>& nodes, int thread) const {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeModel& node) {
    if (node.module >= 0 && !can_use(modules[at(node.module)], thread)) return false;
    return can_use_modules(node.children, thread);
  });
}

void Model::use_modules(const std::vector<NodeModel>& nodes, const Step& s) {
  for (const NodeModel& node : nodes) {
    if (node.module >= 0) use(modules[at(node.module)], s);
    use_modules(node.children, s);
  }
}

// By its call, so that it takes no place in any order.
bool Model::is_refused(const Step& s) const {
  const bool has_clusters = s[0] == kClusters || s[0] == kClustersCooperative;
  return s[6] > modules[at(s[1])].shared_limit[at(s[2])] ||
         (has_clusters && s[4] % kClusterWidth != 0);
}

// how module kernel stream grid block shared b0 b1 b2 key
bool Model::launch(const Step& s) {
  StreamRef ref;
  NodeModel node;
  if (!resolve(s.thread, s[3], &ref) || current(s.thread) != ref.context) return false;
  if (!kernel_node(s.thread, s[1], s[2], s[4], s[5], s[6], s[7], s[8], s[9], ref.context, &node)) {
    return false;
  }
  ModuleModel& module = modules[at(s[1])];
  const bool sets_function = s[0] == kGrid;
  if (sets_function && (module.is_library || !can_change(module, s.thread))) return false;
  if (is_refused(s)) {
    use(module, s);
    use_stream(ref, s);
    use(contexts[at(ref.context)], s);
  } else if (!submit(s, s[3], node)) {
    return false;
  }
  if (sets_function) change(module, s);
  return true;
}

// as_callback stream buffer value
bool Model::host_function(const Step& s) {
  StreamRef ref;
  const BufferModel& buffer = buffers[at(s[2])];
  if (!resolve(s.thread, s[1], &ref) || !can_use(buffer, s.thread)) return false;
  if (buffer.memory == kDeviceMemory || is_array(buffer.memory)) return false;
  if (buffer.context >= 0 && buffer.context != ref.context) return false;
  NodeModel node;
  node.type = NodeModel::kHost;
  node.accesses = {{s[2], Mode::kWrite}};
  return submit(s, s[1], node);
}

// module stream buffer value: the host waits for what the kernel stores.
bool Model::spin(const Step& s) {
  StreamRef ref;
  NodeModel node;
  if (!polls_memory_ || !resolve(s.thread, s[1], &ref) || current(s.thread) != ref.context)
    return false;
  if (buffers[at(s[2])].memory != kPinnedMemory) return false;
  if (!kernel_node(s.thread, s[0], kPublish, 1, 1, 0, s[2], 0, 0, ref.context, &node)) return false;
  if (!submit(s, s[1], node)) return false;
  learn(s.thread, work_.back().all);
  return true;
}

bool Model::thread_mode(const Step& s) {
  thread_modes_[at(s.thread)] = s[0];
  return true;
}

// stream mode, and of a capture into a graph that is there: graph after
bool Model::capture_begin(const Step& s) {
  StreamRef ref;
  StreamModel* const stream = resolve(s.thread, s[0], &ref) ? model_of(ref) : nullptr;
  if (stream == nullptr || !can_change(*stream, s.thread)) return false;
  if (stream->capture >= 0 || is_capturing(s.thread)) return false;
  CaptureModel capture;
  if (s.kind == Kind::k_capture_into) {
    GraphModel& graph = graphs[at(s[2])];
    if (!can_change(graph, s.thread) || !can_build_from(graph, s.thread)) return false;
    if (!graph.has_handles || graph.context != ref.context || graph.nodes.size() > 24) return false;
    if (static_cast<std::uint64_t>(s[3]) >> graph.nodes.size() != 0) return false;
    capture.into = s[2];
    capture.nodes = graph.nodes;
    capture.first = graph.nodes.size();
    change(graph, s);
  }
  stream->capture_tail = capture.into >= 0 ? static_cast<std::uint64_t>(s[3]) : 0;
  stream->capture = static_cast<int>(captures.size());
  capture.origin = s[0];
  capture.uid = ref.uid;
  capture.thread = s.thread;
  capture.mode = s[1];
  capture.context = ref.context;
  captures.push_back(capture);
  change(*stream, s);
  use(contexts[at(ref.context)], s);
  return true;
}

bool Model::capture_end(const Step& s) {
  StreamRef ref;
  const StreamModel* const origin = resolve(s.thread, s[0], &ref) ? model_of(ref) : nullptr;
  if (origin == nullptr || origin->capture < 0) return false;
  const int index = origin->capture;
  CaptureModel& capture = captures[at(index)];
  if (capture.thread != s.thread || capture.uid != ref.uid) return false;
  const bool is_new = capture.into < 0;
  if (s[1] != kNoGraph && (is_new ? !can_create(graphs[at(s[1])], s.thread) : s[1] != capture.into))
    return false;
  std::uint64_t joined = (std::uint64_t{1} << capture.first) - 1;
  for (std::size_t i = 0; i < capture.nodes.size(); ++i) {
    if ((origin->capture_tail >> i & 1) != 0) joined |= capture.nodes[i].before;
  }
  const std::uint64_t all = (std::uint64_t{1} << capture.nodes.size()) - 1;
  for (auto* const group : {&streams, &own_streams_}) {
    for (StreamModel& stream : *group) {
      if (!stream.is_alive || stream.capture != index) continue;
      stream.capture = -1;
      change(stream, s);
    }
  }
  capture.is_active = false;
  capture_ends_.set(host_bit(s.number));
  const bool is_refused = capture.is_invalid || joined != all;
  if (is_new && (is_refused || s[1] == kNoGraph))
    return true;  // there is no graph, or not for long
  GraphModel& graph = graphs[at(is_new ? s[1] : capture.into)];
  if (is_new) {
    create(graph, s, capture.context);
  } else {
    change(graph, s);
  }
  graph.nodes = capture.nodes;
  graph.has_handles = false;
  graph.is_spoiled = is_refused;
  return true;
}

bool Model::capture_info(const Step& s) {
  StreamRef ref;
  StreamModel* const stream = resolve(s.thread, s[0], &ref) ? model_of(ref) : nullptr;
  if (stream == nullptr) return false;
  if (stream->capture >= 0 && captures[at(stream->capture)].thread != s.thread) return false;
  use(*stream, s);
  return true;
}

// how: 0 synchronise, 1 query, 2 allocate, 3 callback
bool Model::capture_break(const Step& s) {
  StreamRef ref;
  StreamModel* const stream = resolve(s.thread, s[0], &ref) ? model_of(ref) : nullptr;
  if (stream == nullptr || stream->capture < 0) return false;
  CaptureModel& capture = captures[at(stream->capture)];
  if (capture.thread != s.thread || capture.is_invalid) return false;
  if (s[1] == 2) {
    // An unsafe call reaches captures of other threads too, unless its thread is relaxed.
    const bool is_relaxed = thread_modes_[at(s.thread)] == 2;
    if ((known_.size() > 1 && !is_relaxed) || current(s.thread) != capture.context) return false;
    if (!is_relaxed && capture.mode != 2) capture.is_invalid = true;
  } else {
    capture.is_invalid = true;
  }
  use(*stream, s);
  return true;
}

bool Model::can_build_from(const GraphModel& graph, int thread) const {
  return can_use(graph, thread) && !graph.is_spoiled;
}

bool Model::graph_create(const Step& s) {
  GraphModel& graph = graphs[at(s[0])];
  if (!has_usable_context(s.thread) || !can_create(graph, s.thread)) return false;
  create(graph, s, current(s.thread));
  graph.nodes.clear();
  graph.has_handles = true;
  graph.is_spoiled = false;
  use(contexts[at(graph.context)], s);
  return true;
}

bool Model::graph_node(const Step& s) {
  GraphModel& graph = graphs[at(s[0])];
  if (!can_change(graph, s.thread) || !graph.has_handles || graph.nodes.size() >= 24) return false;
  if (current(s.thread) != graph.context || !has_usable_context(s.thread)) return false;
  NodeModel node;
  switch (s.kind) {
    case Kind::k_graph_kernel:
      if (!kernel_node(s.thread, s[2], s[3], s[4], s[5], 4 * s[5], s[6], s[7], s[8], graph.context,
                       &node)) {
        return false;
      }
      break;
    case Kind::k_graph_memset:
      if (is_array(buffers[at(s[2])].memory)) return false;
      node.type = NodeModel::kMemset;
      node.accesses = {{s[2], Mode::kWrite}};
      break;
    case Kind::k_graph_copy:
      if (s[2] == s[3]) return false;
      if (is_array(buffers[at(s[2])].memory) && is_array(buffers[at(s[3])].memory) &&
          buffers[at(s[2])].memory != buffers[at(s[3])].memory) {
        return false;
      }
      node.type = NodeModel::kCopy;
      node.accesses = {{s[2], Mode::kWrite}, {s[3], Mode::kRead}};
      node.memory = buffers[at(s[2])].memory * 8 + buffers[at(s[3])].memory;
      break;
    case Kind::k_graph_host:
      if (buffers[at(s[2])].memory == kDeviceMemory) return false;
      if (is_array(buffers[at(s[2])].memory)) return false;
      node.type = NodeModel::kHost;
      node.accesses = {{s[2], Mode::kWrite}};
      break;
    default:
      break;
  }
  for (const Access& access : node.accesses) {
    if (!is_node_memory(access.buffer, graph.context)) return false;
    if (!can_use(buffers[at(access.buffer)], s.thread)) return false;
  }
  if (!fill_lives(node.accesses)) return false;
  node.after = static_cast<std::uint64_t>(s[1]);
  const std::vector<Access> accesses = node.accesses;
  if (!add_node(graph.nodes, node)) return false;
  for (const Access& access : accesses) use(buffers[at(access.buffer)], s);
  if (node.module >= 0) use(modules[at(node.module)], s);
  change(graph, s);
  return true;
}

bool Model::graph_child(const Step& s) {
  GraphModel& graph = graphs[at(s[0])];
  GraphModel& child = graphs[at(s[2])];
  if (s[0] == s[2] || !can_change(graph, s.thread) || !can_build_from(child, s.thread))
    return false;
  if (!graph.has_handles || graph.context != child.context || child.nodes.size() > 24) return false;
  if (current(s.thread) != graph.context || !has_usable_context(s.thread)) return false;
  NodeModel node = whole(child.nodes);
  if (!are_alive(node) || !can_use_modules(child.nodes, s.thread)) return false;
  node.after = static_cast<std::uint64_t>(s[1]);
  if (!add_node(graph.nodes, node)) return false;
  use_modules(child.nodes, s);
  for (const Access& access : node.accesses) use(buffers[at(access.buffer)], s);
  change(graph, s);
  use(child, s);
  return true;
}

bool Model::graph_clone(const Step& s) {
  GraphModel& graph = graphs[at(s[0])];
  GraphModel& from = graphs[at(s[1])];
  if (s[0] == s[1] || !can_create(graph, s.thread) || !can_build_from(from, s.thread)) {
    return false;
  }
  if (current(s.thread) != from.context || !has_usable_context(s.thread)) return false;
  create(graph, s, from.context);
  graph.nodes = from.nodes;
  graph.has_handles = graph.is_spoiled = false;
  use(from, s);
  use(contexts[at(graph.context)], s);
  return true;
}

bool Model::graph_destroy(const Step& s) {
  GraphModel& graph = graphs[at(s[0])];
  if (!can_change(graph, s.thread) || !is_usable(graph.context)) return false;
  graph.is_alive = false;
  change(graph, s);
  use(contexts[at(graph.context)], s);
  return true;
}

bool Model::exec_create(const Step& s) {
  ExecModel& exec = execs[at(s[0])];
  GraphModel& graph = graphs[at(s[1])];
  if (!can_create(exec, s.thread) || !can_build_from(graph, s.thread)) return false;
  if (current(s.thread) != graph.context || !has_usable_context(s.thread)) return false;
  if (!are_alive(whole(graph.nodes)) || !can_use_modules(graph.nodes, s.thread)) return false;
  create(exec, s, graph.context);
  exec.nodes = graph.nodes;
  exec.graph = s[1];
  exec.graph_life = graph.life;
  exec.may_launch = true;
  use(graph, s);
  use_modules(graph.nodes, s);
  use(contexts[at(exec.context)], s);
  return true;
}

bool Model::exec_update(const Step& s) {
  ExecModel& exec = execs[at(s[0])];
  GraphModel& graph = graphs[at(s[1])];
  if (!can_change(exec, s.thread) || !can_build_from(graph, s.thread)) return false;
  if (exec.context != graph.context || current(s.thread) != graph.context) return false;
  if (!has_usable_context(s.thread)) return false;
  if (!are_alive(whole(graph.nodes)) || !can_use_modules(graph.nodes, s.thread)) return false;
  if (have_same_shape(exec.nodes, graph.nodes)) {
    exec.nodes = graph.nodes;
  } else {
    exec.may_launch = false;  // refused, most likely
  }
  change(exec, s);
  use(graph, s);
  use_modules(graph.nodes, s);
  use(contexts[at(exec.context)], s);
  return true;
}

// exec node b0 b1 b2 key
bool Model::exec_set_kernel(const Step& s) {
  ExecModel& exec = execs[at(s[0])];
  if (!can_change(exec, s.thread) || !exec.may_launch) return false;
  if (s[1] < 0 || at(s[1]) >= exec.nodes.size()) return false;
  GraphModel& graph = graphs[at(exec.graph)];
  if (!can_use(graph, s.thread) || graph.life != exec.graph_life || !graph.has_handles)
    return false;
  if (current(s.thread) != exec.context || !has_usable_context(s.thread)) return false;
  const NodeModel& old = exec.nodes[at(s[1])];
  if (old.type != NodeModel::kKernel || old.module_life != modules[at(old.module)].life)
    return false;
  NodeModel node;
  if (!kernel_node(s.thread, old.module, old.kernel, 1, old.kernel == kPublish ? 1 : 64, 256, s[2],
                   s[3], s[4], exec.context, &node) ||
      !fill_lives(node.accesses)) {
    return false;
  }
  node.after = old.after;
  std::vector<NodeModel> nodes;
  for (std::size_t i = 0; i < exec.nodes.size(); ++i) {
    if (!add_node(nodes, i == at(s[1]) ? node : exec.nodes[i])) return false;
  }
  exec.nodes = nodes;
  change(exec, s);
  for (const Access& access : node.accesses) use(buffers[at(access.buffer)], s);
  use(modules[at(node.module)], s);
  use(graph, s);
  return true;
}

bool Model::exec_launch(const Step& s) {
  ExecModel& exec = execs[at(s[0])];
  StreamRef ref;
  if (!can_change(exec, s.thread) || !exec.may_launch || !resolve(s.thread, s[1], &ref))
    return false;
  if (exec.context != ref.context || current(s.thread) != ref.context) return false;
  NodeModel node = whole(exec.nodes);
  if (!are_alive(node) || !can_use_modules(exec.nodes, s.thread)) return false;
  for (const Access& access : node.accesses) {
    if (!can_use(buffers[at(access.buffer)], s.thread)) return false;
  }
  if (!submit(s, s[1], node)) return false;
  use_modules(exec.nodes, s);
  change(exec, s);
  return true;
}

bool Model::exec_upload(const Step& s) {
  ExecModel& exec = execs[at(s[0])];
  StreamRef ref;
  if (!can_change(exec, s.thread) || !resolve(s.thread, s[1], &ref)) return false;
  if (exec.context != ref.context || !are_alive(whole(exec.nodes))) return false;
  if (!submit(s, s[1], NodeModel())) return false;
  change(exec, s);
  return true;
}

bool Model::exec_destroy(const Step& s) {
  ExecModel& exec = execs[at(s[0])];
  if (!can_change(exec, s.thread) || !is_usable(exec.context)) return false;
  exec.is_alive = false;
  change(exec, s);
  use(contexts[at(exec.context)], s);
  return true;
}

}  // namespace fuzz
