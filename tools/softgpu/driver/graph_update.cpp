// SPDX-License-Identifier: Apache-2.0
// cuGraphExecUpdate: pairs the nodes of an exec with those of a graph, checks every pair, then
// takes the parameters over. Nothing changes unless everything can. Entries take the driver lock.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/graph_exec.h"
#include "tools/softgpu/driver/graph_params.h"
#include "tools/softgpu/driver/module_objects.h"

namespace softgpu {
namespace {

using Pairs = std::vector<std::pair<GraphNode*, const GraphNode*>>;  // the exec's node, the graph's

// Why an update cannot be. Thrown inside update_nodes only.
struct Mismatch {
  CUgraphExecUpdateResult result;
  const GraphNode* node;
  const GraphNode* from;
};

[[noreturn]] void reject(CUgraphExecUpdateResult result, const GraphNode* node,
                         const GraphNode* from = nullptr) {
  throw Mismatch{result, node, from};
}

template <class Node>
std::vector<Node*> exits_of(const Graph& graph) {
  std::vector<Node*> exits;
  for (const auto& node : graph.nodes) {
    if (node->dependents.empty()) exits.push_back(node.get());
  }
  return exits;
}

// From the exits backwards, by the order of nodes and edges, as cuda.h describes it.
class Pairing {
 public:
  Pairing(Graph& target, const Graph& source) {
    constexpr auto kTopology = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (target.nodes.size() != source.nodes.size()) reject(kTopology, nullptr);
    const auto targets = exits_of<GraphNode>(target);
    const auto sources = exits_of<const GraphNode>(source);
    if (sources.size() != targets.size()) {
      reject(kTopology, sources.size() > targets.size() ? sources[targets.size()] : nullptr);
    }
    for (std::size_t i = 0; i < sources.size(); ++i) add(targets[i], sources[i], nullptr);
    for (std::size_t i = 0; i < pairs_.size(); ++i) follow(*pairs_[i].first, *pairs_[i].second);
    if (pairs_.size() != source.nodes.size()) reject(kTopology, nullptr);  // a cycle has no exit
  }

  const Pairs& pairs() const { return pairs_; }

 private:
  void follow(const GraphNode& target, const GraphNode& source) {
    if (target.dependencies.size() != source.dependencies.size()) {
      reject(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &source);
    }
    for (std::size_t i = 0; i < source.dependencies.size(); ++i) {
      const GraphEdge& theirs = source.dependencies[i];
      const GraphEdge& ours = target.dependencies[i];
      if (!same_edge_data(ours.data, theirs.data)) {
        reject(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &source, theirs.node);
      }
      add(ours.node, theirs.node, &source);
    }
  }

  // `dependent` is the graph's node whose edge leads here, null for exits.
  void add(GraphNode* target, const GraphNode* source, const GraphNode* dependent) {
    const auto ours = by_target_.emplace(target, source);
    const auto theirs = by_source_.emplace(source, target);
    if (ours.second && theirs.second) {
      pairs_.emplace_back(target, source);
      return;
    }
    if (ours.first->second != source || theirs.first->second != target) {
      reject(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, dependent, source);
    }
  }

  Pairs pairs_;
  std::unordered_map<const GraphNode*, const GraphNode*> by_target_, by_source_;
};

int priority_of(const KernelWork& kernel) {
  for (const CUlaunchAttribute& attribute : kernel.attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PRIORITY) return attribute.value.priority;
  }
  return 0;
}

void check_kernel(const KernelWork& ours, const GraphNode& source, cuuint64_t exec_flags) {
  const auto& theirs = std::get<KernelWork>(source.work);
  if (ours.function->context != theirs.function->context) {
    reject(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, &source);
  }
  const bool keeps_priority = (exec_flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
  if (ours.cooperative != theirs.cooperative ||
      (keeps_priority && priority_of(ours) != priority_of(theirs))) {
    reject(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, &source);
  }
}

void collect(Graph& target, const Graph& source, cuuint64_t exec_flags, Pairs* changes);

void collect_bodies(ConditionalWork& ours, const GraphNode& source, cuuint64_t exec_flags,
                    Pairs* changes) {
  const auto& theirs = std::get<ConditionalWork>(source.work);
  if (ours.type != theirs.type || ours.bodies.size() != theirs.bodies.size() ||
      ours.condition->context != theirs.condition->context) {
    reject(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, &source);
  }
  for (std::size_t i = 0; i < ours.bodies.size(); ++i) {
    collect(*ours.bodies[i], *theirs.bodies[i], exec_flags, changes);
  }
}

// Every pair that has to change, embedded graphs included; throws at the first that cannot.
void collect(Graph& target, const Graph& source, cuuint64_t exec_flags, Pairs* changes) {
  const Pairing pairing(target, source);
  for (const auto& [ours, theirs] : pairing.pairs()) {
    if (node_type(ours->work) != node_type(theirs->work)) {
      reject(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, theirs);
    }
  }
  for (const auto& [ours, theirs] : pairing.pairs()) {
    if (auto* child = std::get_if<ChildGraphWork>(&ours->work)) {
      collect(*child->graph, *std::get<ChildGraphWork>(theirs->work).graph, exec_flags, changes);
      continue;
    }
    if (auto* conditional = std::get_if<ConditionalWork>(&ours->work)) {
      collect_bodies(*conditional, *theirs, exec_flags, changes);
    } else if (const auto* kernel = std::get_if<KernelWork>(&ours->work)) {
      check_kernel(*kernel, *theirs, exec_flags);
    } else if (!can_replace(ours->work, theirs->work)) {
      reject(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, theirs);
    }
    changes->emplace_back(ours, theirs);
  }
}

// Cluster shapes stay what they were at instantiation while the update reports success, as on real
// devices (ml-explore/mlx pull 2813, sgl-project/sglang pull 37657): whoever relies on them must be
// caught. Pinned by "an update keeps cluster shapes silently".
bool is_frozen(CUlaunchAttributeID id) {
  return id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
         id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
}

void take_over(GraphNode& ours, const GraphNode& theirs) {
  if (auto* conditional = std::get_if<ConditionalWork>(&ours.work)) {
    // The kernels of the new graph set the handle of that graph, which has its own default.
    conditional->condition = std::get<ConditionalWork>(theirs.work).condition;
    return;
  }
  std::vector<CUlaunchAttribute> frozen;
  ptx::Dim3 cluster{0, 0, 0};
  if (const auto* kernel = std::get_if<KernelWork>(&ours.work)) {
    cluster = kernel->cluster;
    std::copy_if(kernel->attributes.begin(), kernel->attributes.end(), std::back_inserter(frozen),
                 [](const CUlaunchAttribute& attribute) { return is_frozen(attribute.id); });
  }
  ours.work = theirs.work;
  if (auto* kernel = std::get_if<KernelWork>(&ours.work)) {
    kernel->cluster = cluster;
    auto& attributes = kernel->attributes;
    attributes.erase(
        std::remove_if(attributes.begin(), attributes.end(),
                       [](const CUlaunchAttribute& attribute) { return is_frozen(attribute.id); }),
        attributes.end());
    attributes.insert(attributes.end(), frozen.begin(), frozen.end());
  }
}

// What both forms of the entry do. Fails for dead handles.
CUgraphExecUpdateResultInfo update_exec(CUgraphExec handle, CUgraph graph) {
  GraphExec& exec = exec_of(handle);
  const Graph& source = graph_of(graph);
  if (is_captured_into(source) || source.body_of != nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  charge_nodes(source.nodes.size());
  const auto result = update_nodes(*exec.snapshot, source, exec.flags);
  if (result.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return result;
  auto references = std::make_shared<UserObjectRefs>();
  collect_user_objects(source, references.get());
  exec.user_objects = std::move(references);
  exec.conditions = conditions_of(*exec.snapshot);
  return result;
}

CUresult result_code(const CUgraphExecUpdateResultInfo& info) {
  return info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                     : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

}  // namespace

CUgraphExecUpdateResultInfo update_nodes(Graph& target, const Graph& source,
                                         cuuint64_t exec_flags) {
  Pairs changes;
  try {
    collect(target, source, exec_flags, &changes);
  } catch (const Mismatch& mismatch) {
    return {mismatch.result, mismatch.node == nullptr ? nullptr : mismatch.node->handle,
            mismatch.from == nullptr ? nullptr : mismatch.from->handle};
  }
  for (const auto& [ours, theirs] : changes) take_over(*ours, *theirs);
  return {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
}

}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" {

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                   CUgraphNode* hErrorNode_out,
                                   CUgraphExecUpdateResult* updateResult_out) {
  return call(EntryId::cuGraphExecUpdate, [&]() -> CUresult {
    if (hErrorNode_out == nullptr || updateResult_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *hErrorNode_out = nullptr;
    *updateResult_out = CU_GRAPH_EXEC_UPDATE_ERROR;
    const auto info = update_exec(hGraphExec, hGraph);
    *hErrorNode_out = info.errorNode;
    *updateResult_out = info.result;
    return result_code(info);
  });
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphExecUpdateResultInfo* resultInfo) {
  return call(EntryId::cuGraphExecUpdate_v2, [&]() -> CUresult {
    if (resultInfo == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *resultInfo = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    *resultInfo = update_exec(hGraphExec, hGraph);
    return result_code(*resultInfo);
  });
}

}  // extern "C"
