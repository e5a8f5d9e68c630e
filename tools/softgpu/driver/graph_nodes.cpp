// SPDX-License-Identifier: Apache-2.0
// Entries that add nodes and read or change their parameters. Each takes the driver lock (entry.h).
#include <set>
#include <utility>
#include <vector>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/graph.h"
#include "tools/softgpu/driver/graph_params.h"

namespace softgpu {
namespace {

// What an entry was asked for.
struct NewNode {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  const CUgraphEdgeData* data;
  std::size_t count;
};

// The edges a new node asks for; fails on dead, foreign or repeated nodes.
std::vector<GraphEdge> dependencies_of(const NewNode& request, const Graph& graph) {
  if (request.count > 0 && request.dependencies == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  std::vector<GraphEdge> edges;
  std::set<const GraphNode*> seen;
  for (std::size_t i = 0; i < request.count; ++i) {
    GraphNode& from = node_of(request.dependencies[i]);
    if (from.graph != &graph || !seen.insert(&from).second) fail(CUDA_ERROR_INVALID_VALUE);
    edges.push_back({&from, request.data == nullptr ? CUgraphEdgeData{} : request.data[i]});
  }
  return edges;
}

// Adds the node that `make(graph)` fills in: a GraphNode that is in no graph yet.
template <class Make>
CUresult add_node(EntryId id, const NewNode& request, Make&& make) {
  return call(id, [&]() -> CUresult {
    if (request.out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Graph& graph = graph_of(request.graph);
    const std::vector<GraphEdge> edges = dependencies_of(request, graph);
    GraphNode draft;
    make(graph, draft);
    for (const GraphEdge& edge : edges) {
      if (is_valid_edge(edge.node->work, draft.work, edge.data)) continue;
      retire_work(draft.work);
      return CUDA_ERROR_INVALID_VALUE;
    }
    GraphNode& node = append_node(graph, std::move(draft.work), edges);
    node.packed_params = draft.packed_params;
    *request.out = node.handle;
    return CUDA_SUCCESS;
  });
}

void draft_kernel(GraphNode& draft, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
  draft.work = KernelWork{};
  set_kernel_params(draft, params, false);
}

template <class Params>
Params& required(Params* params) {
  if (params == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return *params;
}

// The node, which must be of the kind that `Kind` stands for.
template <class Kind>
GraphNode& node_with(CUgraphNode handle) {
  GraphNode& node = node_of(handle);
  if (!std::holds_alternative<Kind>(node.work)) fail(CUDA_ERROR_INVALID_VALUE);
  return node;
}

// A reader or writer of the work of one kind of node: `body(node, kind)`.
template <class Kind, class Body>
CUresult with_node(EntryId id, CUgraphNode handle, const void* params, Body&& body) {
  return call(id, [&]() -> CUresult {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    GraphNode& node = node_with<Kind>(handle);
    body(node, std::get<Kind>(node.work));
    return CUDA_SUCCESS;
  });
}

void make_generic(Graph& graph, GraphNode& draft, CUgraphNodeParams& params) {
  check_padding(params);
  if (params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    draft_kernel(draft, kernel_params(params));
  } else if (params.type == CU_GRAPH_NODE_TYPE_GRAPH) {
    if (params.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
      fail(CUDA_ERROR_NOT_SUPPORTED);
    draft.work = make_child(params.graph.graph, graph);
  } else if (params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    draft.work = make_conditional(graph, &params.conditional);
  } else {
    draft.work = make_work(params);
  }
}

void set_generic(GraphNode& node, const CUgraphNodeParams& params) {
  if (node_type(node.work) != params.type) fail(CUDA_ERROR_INVALID_VALUE);
  check_padding(params);
  if (params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    set_kernel_params(node, kernel_params(params), false);
  } else {
    node.work =
        make_work(params);  // NOT_SUPPORTED for what has graphs inside: they are edited in place
  }
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" {

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                      const CUgraphNode* dependencies, size_t numDependencies,
                                      const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return add_node(
      EntryId::cuGraphAddKernelNode, {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
      [&](Graph&, GraphNode& draft) { draft_kernel(draft, widen(required(nodeParams))); });
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                         const CUgraphNode* dependencies, size_t numDependencies,
                                         const CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return add_node(EntryId::cuGraphAddKernelNode_v2,
                  {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
                  [&](Graph&, GraphNode& draft) { draft_kernel(draft, required(nodeParams)); });
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                      const CUgraphNode* dependencies, size_t numDependencies,
                                      const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return add_node(
      EntryId::cuGraphAddMemcpyNode, {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
      [&](Graph&, GraphNode& draft) { draft.work = make_copy(required(copyParams), ctx); });
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                      const CUgraphNode* dependencies, size_t numDependencies,
                                      const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return add_node(
      EntryId::cuGraphAddMemsetNode, {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
      [&](Graph&, GraphNode& draft) { draft.work = make_memset(required(memsetParams), ctx); });
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                    const CUgraphNode* dependencies, size_t numDependencies,
                                    const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return add_node(EntryId::cuGraphAddHostNode,
                  {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
                  [&](Graph&, GraphNode& draft) {
                    draft.work = make_host(required(nodeParams).fn, nodeParams->userData);
                  });
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                          const CUgraphNode* dependencies, size_t numDependencies,
                                          CUgraph childGraph) {
  return add_node(
      EntryId::cuGraphAddChildGraphNode,
      {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
      [&](Graph& graph, GraphNode& draft) { draft.work = make_child(childGraph, graph); });
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                     const CUgraphNode* dependencies, size_t numDependencies) {
  return add_node(EntryId::cuGraphAddEmptyNode,
                  {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
                  [](Graph&, GraphNode& draft) { draft.work = EmptyWork{}; });
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                           const CUgraphNode* dependencies, size_t numDependencies,
                                           CUevent event) {
  return add_node(
      EntryId::cuGraphAddEventRecordNode,
      {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
      [&](Graph&, GraphNode& draft) { draft.work = EventRecordWork{event_for_node(event)}; });
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                         const CUgraphNode* dependencies, size_t numDependencies,
                                         CUevent event) {
  return add_node(
      EntryId::cuGraphAddEventWaitNode,
      {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
      [&](Graph&, GraphNode& draft) { draft.work = EventWaitWork{event_for_node(event)}; });
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                const CUgraphNode* dependencies, size_t numDependencies,
                                CUgraphNodeParams* nodeParams) {
  return add_node(
      EntryId::cuGraphAddNode, {phGraphNode, hGraph, dependencies, nullptr, numDependencies},
      [&](Graph& graph, GraphNode& draft) { make_generic(graph, draft, required(nodeParams)); });
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                   const CUgraphNode* dependencies,
                                   const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                   CUgraphNodeParams* nodeParams) {
  return add_node(
      EntryId::cuGraphAddNode_v2,
      {phGraphNode, hGraph, dependencies, dependencyData, numDependencies},
      [&](Graph& graph, GraphNode& draft) { make_generic(graph, draft, required(nodeParams)); });
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  return call(EntryId::cuGraphNodeSetParams, [&]() -> CUresult {
    set_generic(node_of(hNode), required(nodeParams));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode hNode,
                                            CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return with_node<KernelWork>(EntryId::cuGraphKernelNodeGetParams, hNode, nodeParams,
                               [&](GraphNode& node, KernelWork&) {
                                 CUDA_KERNEL_NODE_PARAMS_v2 params;
                                 get_kernel_params(node, &params);
                                 *nodeParams = narrow(params);
                               });
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode hNode,
                                               CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return with_node<KernelWork>(
      EntryId::cuGraphKernelNodeGetParams_v2, hNode, nodeParams,
      [&](GraphNode& node, KernelWork&) { get_kernel_params(node, nodeParams); });
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                            const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return with_node<KernelWork>(
      EntryId::cuGraphKernelNodeSetParams, hNode, nodeParams,
      [&](GraphNode& node, KernelWork&) { set_kernel_params(node, widen(*nodeParams), false); });
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                               const CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return with_node<KernelWork>(
      EntryId::cuGraphKernelNodeSetParams_v2, hNode, nodeParams,
      [&](GraphNode& node, KernelWork&) { set_kernel_params(node, *nodeParams, false); });
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  return with_node<CopyWork>(EntryId::cuGraphMemcpyNodeGetParams, hNode, nodeParams,
                             [&](GraphNode&, CopyWork& work) { *nodeParams = work.parameters; });
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return with_node<CopyWork>(
      EntryId::cuGraphMemcpyNodeSetParams, hNode, nodeParams,
      [&](GraphNode&, CopyWork& work) { work = make_copy(*nodeParams, work.context->handle); });
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode hNode,
                                            CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return with_node<MemsetWork>(
      EntryId::cuGraphMemsetNodeGetParams, hNode, nodeParams,
      [&](GraphNode&, MemsetWork& work) { *nodeParams = work.parameters; });
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode hNode,
                                            const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return with_node<MemsetWork>(
      EntryId::cuGraphMemsetNodeSetParams, hNode, nodeParams,
      [&](GraphNode&, MemsetWork& work) { work = make_memset(*nodeParams, work.context->handle); });
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  return with_node<HostWork>(EntryId::cuGraphHostNodeGetParams, hNode, nodeParams,
                             [&](GraphNode&, HostWork& work) {
                               *nodeParams = {work.function, work.user_data};
                             });
}

CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode hNode,
                                          const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return with_node<HostWork>(
      EntryId::cuGraphHostNodeSetParams, hNode, nodeParams,
      [&](GraphNode&, HostWork& work) { work = make_host(nodeParams->fn, nodeParams->userData); });
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return with_node<EventRecordWork>(
      EntryId::cuGraphEventRecordNodeGetEvent, hNode, event_out,
      [&](GraphNode&, EventRecordWork& work) { *event_out = work.event->handle; });
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return with_node<EventRecordWork>(
      EntryId::cuGraphEventRecordNodeSetEvent, hNode, event,
      [&](GraphNode&, EventRecordWork& work) { work.event = event_for_node(event); });
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return with_node<EventWaitWork>(
      EntryId::cuGraphEventWaitNodeGetEvent, hNode, event_out,
      [&](GraphNode&, EventWaitWork& work) { *event_out = work.event->handle; });
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return with_node<EventWaitWork>(
      EntryId::cuGraphEventWaitNodeSetEvent, hNode, event,
      [&](GraphNode&, EventWaitWork& work) { work.event = event_for_node(event); });
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  return with_node<ChildGraphWork>(
      EntryId::cuGraphChildGraphNodeGetGraph, hNode, phGraph,
      [&](GraphNode&, ChildGraphWork& work) { *phGraph = work.graph->handle; });
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return call(EntryId::cuGraphNodeGetType, [&]() -> CUresult {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = node_type(node_of(hNode).work);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
