// SPDX-License-Identifier: Apache-2.0
// Instantiation: the snapshot, its index by source node, its flattened order, and the entries that
// make, query and destroy execs. Each entry takes the driver lock.
#include "tools/softgpu/driver/graph_exec.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/graph_launch.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

void sort_unique(std::vector<std::uint32_t>& positions) {
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
}

// Expands embedded graphs in place. A member of a cycle is remembered and ends the work.
class Flattener {
 public:
  explicit Flattener(std::vector<ExecStep>& order) : order_(order) {}

  // Appends the nodes of `graph`, whose roots wait for `entry`. Returns what waits for the whole
  // graph must wait for.
  std::vector<std::uint32_t> append(const Graph& graph, const std::vector<std::uint32_t>& entry) {
    GraphNode* on_cycle = nullptr;
    const std::vector<GraphNode*> sorted = topological_order(graph, &on_cycle);
    if (on_cycle != nullptr) on_cycle_ = on_cycle;
    std::vector<std::vector<std::uint32_t>> ends(graph.next_node_id);  // by node id
    std::vector<std::uint32_t> exits;
    for (GraphNode* node : sorted) {
      ends[node->id] = append(*node, before(*node, ends, entry));
      if (node->dependents.empty()) {
        exits.insert(exits.end(), ends[node->id].begin(), ends[node->id].end());
      }
    }
    sort_unique(exits);
    return sorted.empty() ? entry : exits;
  }

  const GraphNode* on_cycle() const { return on_cycle_; }

 private:
  static std::vector<std::uint32_t> before(const GraphNode& node,
                                           const std::vector<std::vector<std::uint32_t>>& ends,
                                           const std::vector<std::uint32_t>& entry) {
    if (node.dependencies.empty()) return entry;
    std::vector<std::uint32_t> positions;
    for (const GraphEdge& edge : node.dependencies) {
      const auto& end = ends[edge.node->id];
      positions.insert(positions.end(), end.begin(), end.end());
    }
    sort_unique(positions);
    return positions;
  }

  std::vector<std::uint32_t> append(GraphNode& node, std::vector<std::uint32_t> positions) {
    if (const auto* child = std::get_if<ChildGraphWork>(&node.work))
      return append(*child->graph, positions);
    order_.push_back({&node, std::move(positions), true});
    return {static_cast<std::uint32_t>(order_.size() - 1)};
  }

  std::vector<ExecStep>& order_;
  const GraphNode* on_cycle_ = nullptr;
};

// Notes which source node each snapshot node stands for, embedded graphs included.
void index_nodes(GraphExec& exec, const Graph& snapshot) {
  for (const auto& node : snapshot.nodes) {
    const NodeIdentity& origin = node->origin;
    auto& index = origin.graph_serial == exec.source_serial ? exec.by_source_id
                                                            : exec.embedded[origin.graph_serial];
    if (index.size() <= origin.node_id) index.resize(origin.node_id + 1, nullptr);
    index[origin.node_id] = node.get();
    for_each_inner(node->work, [&](const Graph& inner) { index_nodes(exec, inner); });
  }
}

CUgraphNode source_handle(const Graph& source, const GraphNode& copy) {
  for (const auto& node : source.nodes) {
    if (node->id == copy.origin.node_id && source.serial == copy.origin.graph_serial)
      return node->handle;
    const auto* child = std::get_if<ChildGraphWork>(&node->work);
    if (child == nullptr) continue;
    if (const CUgraphNode found = source_handle(*child->graph, copy); found != nullptr)
      return found;
  }
  return nullptr;
}

constexpr const char* kCycleText = "the graph has a cycle";

// A member of a cycle in a body, at any depth; null if there is none.
const GraphNode* find_cycle_in_bodies(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    const auto* conditional = std::get_if<ConditionalWork>(&node->work);
    if (conditional == nullptr) continue;
    for (const auto& body : conditional->bodies) {
      std::vector<ExecStep> order;
      Flattener flattener(order);
      flattener.append(*body, {});
      if (flattener.on_cycle() != nullptr) return flattener.on_cycle();
      if (const GraphNode* found = find_cycle_in_bodies(*body); found != nullptr) return found;
    }
  }
  return nullptr;
}

// What cuda.h asks of graphs with conditional nodes. False: `problem` says what is wrong.
bool check_conditional_nodes(const Graph& graph, ExecProblem* problem) {
  constexpr auto kInvalid = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  if (has_unused_condition(graph)) {
    *problem = {CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr,
                "a conditional handle has no node"};
  } else if (!graph.exec.expired()) {
    *problem = {CUDA_GRAPH_INSTANTIATE_ERROR, nullptr,
                "a graph with conditional nodes is instantiated already"};
  } else if (const GraphNode* cyclic = find_cycle_in_bodies(graph); cyclic != nullptr) {
    *problem = {kInvalid, cyclic->handle, kCycleText};
  } else if (const GraphNode* forbidden = find_forbidden_node(graph); forbidden != nullptr) {
    *problem = {kInvalid, forbidden->handle, "a node cannot be in the body of a conditional node"};
  } else {
    return true;
  }
  return false;
}

constexpr cuuint64_t kKnownFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

void check_flags(cuuint64_t flags, bool may_upload) {
  if ((flags & ~kKnownFlags) != 0) fail(CUDA_ERROR_INVALID_VALUE);
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0 && !may_upload)
    fail(CUDA_ERROR_INVALID_VALUE);
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0) return;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0)
    fail(CUDA_ERROR_INVALID_VALUE);
  fail(CUDA_ERROR_NOT_SUPPORTED);  // no device-side launch
}

// The new exec, or null with what is wrong with the graph's structure. Fails for everything else.
std::shared_ptr<GraphExec> instantiate_graph(CUgraph handle, cuuint64_t flags, bool may_upload,
                                             ExecProblem* problem) {
  Graph& graph = graph_of(handle);
  check_flags(flags, may_upload);
  if (is_captured_into(graph) || graph.body_of != nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  charge_nodes(graph.nodes.size());
  return make_exec(graph, flags, problem);
}

CUresult instantiate_with_flags(EntryId id, CUgraphExec* out, CUgraph graph,
                                unsigned long long flags) {
  return call(id, [&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ExecProblem problem;
    const auto exec = instantiate_graph(graph, flags, false, &problem);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = exec->handle;
    return CUDA_SUCCESS;
  });
}

// The forms with an error node and a log.
CUresult instantiate_with_log(EntryId id, CUgraphExec* out, CUgraph graph, CUgraphNode* error_node,
                              char* log, std::size_t log_size) {
  return call(id, [&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (log != nullptr && log_size > 0) log[0] = '\0';
    ExecProblem problem;
    const auto exec = instantiate_graph(graph, 0, false, &problem);
    if (error_node != nullptr) *error_node = problem.node;
    if (exec == nullptr) {
      if (log != nullptr && log_size > 0) std::snprintf(log, log_size, "%s", problem.text);
      return CUDA_ERROR_INVALID_VALUE;
    }
    *out = exec->handle;
    return CUDA_SUCCESS;
  });
}

CUresult instantiate_with_params(bool per_thread, CUgraphExec* out, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (out == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  const bool uploads = (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  Stream* stream = uploads ? &resolve_stream(params->hUploadStream, per_thread) : nullptr;
  ExecProblem problem;
  const auto exec = instantiate_graph(graph, params->flags, true, &problem);
  if (exec == nullptr) {
    params->hErrNode_out = problem.node;
    params->result_out = problem.result;
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = exec->handle;
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  const CUresult code = uploads ? upload(*exec, *stream) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS) return code;
  graph_execs().remove(exec->handle);
  *out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  return code;
}

// Fails with OUT_OF_MEMORY.
void take_memory(GraphExec& exec) {
  const std::size_t bytes = options().graph_node_bytes * exec.order.size();
  if (bytes == 0) return;
  const Context* const context = current_context_or_null();
  exec.memory =
      std::make_shared<const DriverMemory>(context != nullptr ? context->device : 0, bytes);
}

}  // namespace

std::vector<ExecStep> flatten(const Graph& graph) {
  std::vector<ExecStep> order;
  Flattener(order).append(graph, {});
  return order;
}

std::shared_ptr<GraphExec> make_exec(Graph& graph, cuuint64_t flags, ExecProblem* problem) {
  if (!check_conditional_nodes(graph, problem)) return nullptr;
  auto exec = std::make_shared<GraphExec>();
  exec->flags = flags;
  exec->source_serial = graph.serial;
  exec->snapshot = copy_graph(graph, false);
  Flattener flattener(exec->order);
  flattener.append(*exec->snapshot, {});
  if (flattener.on_cycle() != nullptr) {
    *problem = {CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
                source_handle(graph, *flattener.on_cycle()), kCycleText};
    return nullptr;
  }
  for (const ExecStep& step : exec->order) {
    for (const std::uint32_t position : step.before) exec->order[position].is_exit = false;
  }
  index_nodes(*exec, *exec->snapshot);
  auto references = std::make_shared<UserObjectRefs>();
  collect_user_objects(graph, references.get());
  exec->user_objects = std::move(references);
  exec->conditions = conditions_of(*exec->snapshot);
  count_kernels(*exec);
  take_memory(*exec);
  exec->handle = graph_execs().add(exec);
  if (has_conditional_nodes(graph)) graph.exec = exec;
  return exec;
}

GraphNode& exec_node(GraphExec& exec, CUgraphNode handle) {
  const GraphNode& source = node_of(handle);
  const std::vector<GraphNode*>* index = &exec.by_source_id;
  if (source.graph->serial != exec.source_serial) {
    const auto found = exec.embedded.find(source.graph->serial);
    if (found == exec.embedded.end()) fail(CUDA_ERROR_INVALID_VALUE);
    index = &found->second;
  }
  // A node added after the instantiation is not in the index.
  if (source.id >= index->size() || (*index)[source.id] == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return *(*index)[source.id];
}

void count_kernels(GraphExec& exec) {
  exec.only_kernels = true;
  exec.enabled_kernels = 0;
  for (const ExecStep& step : exec.order) {
    const bool is_kernel = std::holds_alternative<KernelWork>(step.node->work);
    if (is_kernel && step.node->enabled) ++exec.enabled_kernels;
    if (!is_kernel && !std::holds_alternative<EmptyWork>(step.node->work))
      exec.only_kernels = false;
  }
}

}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" {

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph,
                                    CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize) {
  return instantiate_with_log(EntryId::cuGraphInstantiate, phGraphExec, hGraph, phErrorNode,
                              logBuffer, bufferSize);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph,
                                       CUgraphNode* phErrorNode, char* logBuffer,
                                       size_t bufferSize) {
  return instantiate_with_log(EntryId::cuGraphInstantiate_v2, phGraphExec, hGraph, phErrorNode,
                              logBuffer, bufferSize);
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph,
                                             unsigned long long flags) {
  return instantiate_with_flags(EntryId::cuGraphInstantiateWithFlags, phGraphExec, hGraph, flags);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec) {
  return call(EntryId::cuGraphExecDestroy, [&]() -> CUresult {
    // Launches in flight own all they need.
    if (graph_execs().remove(hGraphExec) != nullptr) return CUDA_SUCCESS;
    note_misuse(Misuse::kHandle);
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  return call(EntryId::cuGraphExecGetFlags, [&]() -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec_of(hGraphExec).flags & ~cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

SOFTGPU_TWIN_ENTRY(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz,
                   (CUgraphExec * phGraphExec, CUgraph hGraph,
                    CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                   { return instantiate_with_params(kPerThread, phGraphExec, hGraph, params); })
