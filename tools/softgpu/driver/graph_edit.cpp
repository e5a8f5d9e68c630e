// SPDX-License-Identifier: Apache-2.0
// Entries that create, copy and destroy graphs, look at their topology and change it. Each takes
// the driver lock.
#include <algorithm>
#include <utility>
#include <vector>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/graph.h"

namespace softgpu {
namespace {

// The count-or-fill convention of the query entries: without `out` the count, else as many as fit,
// nulls behind them.
void return_nodes(const std::vector<CUgraphNode>& found, CUgraphNode* out, std::size_t* count) {
  if (out != nullptr) {
    const std::size_t filled = std::min(*count, found.size());
    std::copy_n(found.begin(), filled, out);
    std::fill(out + filled, out + *count, nullptr);
    *count = filled;
  } else {
    *count = found.size();
  }
}

struct Edge {
  CUgraphNode from, to;
  CUgraphEdgeData data;
};

// As return_nodes, for edges; any of the arrays may be absent. `data` absent: only default edges
// may be filled in.
CUresult return_edges(const std::vector<Edge>& found, CUgraphNode* from, CUgraphNode* to,
                      CUgraphEdgeData* data, std::size_t* count) {
  if (from == nullptr && to == nullptr) {
    if (data != nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = found.size();
    return CUDA_SUCCESS;
  }
  const std::size_t filled = std::min(*count, found.size());
  for (std::size_t i = 0; i < filled; ++i) {
    if (data == nullptr && !is_default(found[i].data)) return CUDA_ERROR_LOSSY_QUERY;
  }
  for (std::size_t i = 0; i < *count; ++i) {
    const Edge edge = i < filled ? found[i] : Edge{};
    if (from != nullptr) from[i] = edge.from;
    if (to != nullptr) to[i] = edge.to;
    if (data != nullptr) data[i] = edge.data;
  }
  *count = filled;
  return CUDA_SUCCESS;
}

CUresult get_edges(EntryId id, CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                   CUgraphEdgeData* data, std::size_t* count) {
  return call(id, [&]() -> CUresult {
    if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> edges;
    for (const auto& node : graph_of(handle).nodes) {
      for (const GraphEdge& edge : node->dependents) {
        edges.push_back({node->handle, edge.node->handle, edge.data});
      }
    }
    return return_edges(edges, from, to, data, count);
  });
}

CUresult get_neighbours(EntryId id, CUgraphNode handle, std::vector<GraphEdge> GraphNode::*side,
                        CUgraphNode* out, CUgraphEdgeData* data, std::size_t* count) {
  return call(id, [&]() -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> edges;
    for (const GraphEdge& edge : node_of(handle).*side)
      edges.push_back({edge.node->handle, {}, edge.data});
    return return_edges(edges, out, nullptr, data, count);
  });
}

struct EdgeList {
  CUgraph graph;
  const CUgraphNode* from;
  const CUgraphNode* to;
  const CUgraphEdgeData* data;
  std::size_t count;
};

struct ResolvedEdge {
  GraphNode* from;
  GraphNode* to;
  CUgraphEdgeData data;
};

std::vector<ResolvedEdge> resolve(const EdgeList& list) {
  const Graph& graph = graph_of(list.graph);
  if (list.count > 0 && (list.from == nullptr || list.to == nullptr))
    fail(CUDA_ERROR_INVALID_VALUE);
  std::vector<ResolvedEdge> edges;
  for (std::size_t i = 0; i < list.count; ++i) {
    GraphNode& from = node_of(list.from[i]);
    GraphNode& to = node_of(list.to[i]);
    if (from.graph != &graph || to.graph != &graph || &from == &to) fail(CUDA_ERROR_INVALID_VALUE);
    edges.push_back({&from, &to, list.data == nullptr ? CUgraphEdgeData{} : list.data[i]});
  }
  return edges;
}

// All edges or none.
CUresult add_edges(EntryId id, const EdgeList& list) {
  return call(id, [&]() -> CUresult {
    const std::vector<ResolvedEdge> edges = resolve(list);
    for (std::size_t done = 0; done < edges.size(); ++done) {
      const ResolvedEdge& edge = edges[done];
      if (is_valid_edge(edge.from->work, edge.to->work, edge.data) &&
          !has_edge(*edge.from, *edge.to, edge.data)) {
        connect(*edge.from, *edge.to, edge.data);
        continue;
      }
      while (done-- > 0) disconnect(*edges[done].from, *edges[done].to, edges[done].data);
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult remove_edges(EntryId id, const EdgeList& list) {
  return call(id, [&]() -> CUresult {
    const std::vector<ResolvedEdge> edges = resolve(list);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const ResolvedEdge& edge = edges[i];
      if (!has_edge(*edge.from, *edge.to, edge.data)) return CUDA_ERROR_INVALID_VALUE;
      const bool is_repeated =
          std::any_of(edges.begin(), edges.begin() + i, [&](const ResolvedEdge& other) {
            return other.from == edge.from && other.to == edge.to &&
                   same_edge_data(other.data, edge.data);
          });
      if (is_repeated) return CUDA_ERROR_INVALID_VALUE;
    }
    for (const ResolvedEdge& edge : edges) disconnect(*edge.from, *edge.to, edge.data);
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" {

CUresult CUDAAPI cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  return call(EntryId::cuGraphCreate, [&]() -> CUresult {
    if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = create_graph()->handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph) {
  return call(EntryId::cuGraphDestroy, [&]() -> CUresult {
    Graph& graph = graph_of(hGraph);
    // An embedded graph belongs to its node, one being captured into to the capture.
    if (graph.embedded || is_captured_into(graph)) return CUDA_ERROR_INVALID_VALUE;
    retire_graph(graph);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  return call(EntryId::cuGraphClone, [&]() -> CUresult {
    if (phGraphClone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Graph& original = graph_of(originalGraph);
    if (has_conditional_nodes(original)) return CUDA_ERROR_INVALID_VALUE;  // as documented
    charge_nodes(original.nodes.size());
    *phGraphClone = copy_graph(original, true)->handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode,
                                        CUgraph hClonedGraph) {
  return call(EntryId::cuGraphNodeFindInClone, [&]() -> CUresult {
    if (phNode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const GraphNode& original = node_of(hOriginalNode);
    for (const auto& node : graph_of(hClonedGraph).nodes) {
      if (node->origin.graph_serial != original.graph->serial) continue;
      if (node->origin.node_id != original.id) continue;
      *phNode = node->handle;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode) {
  return call(EntryId::cuGraphDestroyNode, [&]() -> CUresult {
    GraphNode& node = node_of(hNode);
    bool is_busy = node.graph->captures > 0;
    for_each_inner(node.work, [&](const Graph& inner) { is_busy |= is_captured_into(inner); });
    if (is_busy) return CUDA_ERROR_INVALID_VALUE;
    remove_node(node);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return call(EntryId::cuGraphGetNodes, [&]() -> CUresult {
    if (numNodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUgraphNode> found;
    for (const auto& node : graph_of(hGraph).nodes) found.push_back(node->handle);
    return_nodes(found, nodes, numNodes);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  return call(EntryId::cuGraphGetRootNodes, [&]() -> CUresult {
    if (numRootNodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUgraphNode> found;
    for (const auto& node : graph_of(hGraph).nodes) {
      if (node->dependencies.empty()) found.push_back(node->handle);
    }
    return_nodes(found, rootNodes, numRootNodes);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                                 size_t* numEdges) {
  return get_edges(EntryId::cuGraphGetEdges, hGraph, from, to, nullptr, numEdges);
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                                    CUgraphEdgeData* edgeData, size_t* numEdges) {
  return get_edges(EntryId::cuGraphGetEdges_v2, hGraph, from, to, edgeData, numEdges);
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies,
                                            size_t* numDependencies) {
  return get_neighbours(EntryId::cuGraphNodeGetDependencies, hNode, &GraphNode::dependencies,
                        dependencies, nullptr, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies,
                                               CUgraphEdgeData* edgeData, size_t* numDependencies) {
  return get_neighbours(EntryId::cuGraphNodeGetDependencies_v2, hNode, &GraphNode::dependencies,
                        dependencies, edgeData, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                              size_t* numDependentNodes) {
  return get_neighbours(EntryId::cuGraphNodeGetDependentNodes, hNode, &GraphNode::dependents,
                        dependentNodes, nullptr, numDependentNodes);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                                 CUgraphEdgeData* edgeData,
                                                 size_t* numDependentNodes) {
  return get_neighbours(EntryId::cuGraphNodeGetDependentNodes_v2, hNode, &GraphNode::dependents,
                        dependentNodes, edgeData, numDependentNodes);
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from,
                                        const CUgraphNode* to, size_t numDependencies) {
  return add_edges(EntryId::cuGraphAddDependencies, {hGraph, from, to, nullptr, numDependencies});
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from,
                                           const CUgraphNode* to, const CUgraphEdgeData* edgeData,
                                           size_t numDependencies) {
  return add_edges(EntryId::cuGraphAddDependencies_v2,
                   {hGraph, from, to, edgeData, numDependencies});
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from,
                                           const CUgraphNode* to, size_t numDependencies) {
  return remove_edges(EntryId::cuGraphRemoveDependencies,
                      {hGraph, from, to, nullptr, numDependencies});
}

CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from,
                                              const CUgraphNode* to,
                                              const CUgraphEdgeData* edgeData,
                                              size_t numDependencies) {
  return remove_edges(EntryId::cuGraphRemoveDependencies_v2,
                      {hGraph, from, to, edgeData, numDependencies});
}

}  // extern "C"
