// SPDX-License-Identifier: Apache-2.0
// Entries that change one node of an executable graph. Launches made before own copies, so only
// later ones see the change; the source graph is never touched. Each takes the driver lock.
#include <utility>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/graph_exec.h"
#include "tools/softgpu/driver/graph_params.h"

namespace softgpu {
namespace {

// The exec's node, which must be of the kind that `Kind` stands for.
template <class Kind>
GraphNode& exec_node_with(CUgraphExec exec, CUgraphNode handle) {
  GraphNode& node = exec_node(exec_of(exec), handle);
  if (!std::holds_alternative<Kind>(node.work)) fail(CUDA_ERROR_INVALID_VALUE);
  return node;
}

void replace(GraphNode& node, Work next) {
  if (is_multidimensional(node.work) || is_multidimensional(next)) fail(CUDA_ERROR_INVALID_VALUE);
  if (!can_replace(node.work, next)) fail(CUDA_ERROR_INVALID_VALUE);
  node.work = std::move(next);
}

void replace_child(const GraphExec& exec, GraphNode& node, CUgraph next) {
  const Graph& source = graph_of(next);
  charge_nodes(source.nodes.size());
  const auto result = update_nodes(*std::get<ChildGraphWork>(node.work).graph, source, exec.flags);
  if (result.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) fail(CUDA_ERROR_INVALID_VALUE);
}

void set_generic(GraphExec& exec, GraphNode& node, const CUgraphNodeParams& params) {
  if (node_type(node.work) != params.type) fail(CUDA_ERROR_INVALID_VALUE);
  check_padding(params);
  if (params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    set_kernel_params(node, kernel_params(params), true);
  } else if (params.type == CU_GRAPH_NODE_TYPE_GRAPH) {
    replace_child(exec, node, params.graph.graph);
  } else {
    replace(node, make_work(params));
  }
}

bool can_be_disabled(const GraphNode& node) {
  return std::holds_alternative<KernelWork>(node.work) ||
         std::holds_alternative<CopyWork>(node.work) ||
         std::holds_alternative<MemsetWork>(node.work);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" {

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return call(EntryId::cuGraphExecKernelNodeSetParams, [&]() -> CUresult {
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    set_kernel_params(exec_node_with<KernelWork>(hGraphExec, hNode), widen(*nodeParams), true);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_KERNEL_NODE_PARAMS_v2* nodeParams) {
  return call(EntryId::cuGraphExecKernelNodeSetParams_v2, [&]() -> CUresult {
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    set_kernel_params(exec_node_with<KernelWork>(hGraphExec, hNode), *nodeParams, true);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return call(EntryId::cuGraphExecMemcpyNodeSetParams, [&]() -> CUresult {
    if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    replace(exec_node_with<CopyWork>(hGraphExec, hNode), make_copy(*copyParams, ctx));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMSET_NODE_PARAMS* memsetParams,
                                                CUcontext ctx) {
  return call(EntryId::cuGraphExecMemsetNodeSetParams, [&]() -> CUresult {
    if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    replace(exec_node_with<MemsetWork>(hGraphExec, hNode), make_memset(*memsetParams, ctx));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return call(EntryId::cuGraphExecHostNodeSetParams, [&]() -> CUresult {
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    replace(exec_node_with<HostWork>(hGraphExec, hNode),
            make_host(nodeParams->fn, nodeParams->userData));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    CUgraph childGraph) {
  return call(EntryId::cuGraphExecChildGraphNodeSetParams, [&]() -> CUresult {
    replace_child(exec_of(hGraphExec), exec_node_with<ChildGraphWork>(hGraphExec, hNode),
                  childGraph);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    CUevent event) {
  return call(EntryId::cuGraphExecEventRecordNodeSetEvent, [&]() -> CUresult {
    replace(exec_node_with<EventRecordWork>(hGraphExec, hNode),
            EventRecordWork{event_for_node(event)});
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                  CUevent event) {
  return call(EntryId::cuGraphExecEventWaitNodeSetEvent, [&]() -> CUresult {
    replace(exec_node_with<EventWaitWork>(hGraphExec, hNode), EventWaitWork{event_for_node(event)});
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          CUgraphNodeParams* nodeParams) {
  return call(EntryId::cuGraphExecNodeSetParams, [&]() -> CUresult {
    if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
    GraphExec& exec = exec_of(hGraphExec);
    set_generic(exec, exec_node(exec, hNode), *nodeParams);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                       unsigned int isEnabled) {
  return call(EntryId::cuGraphNodeSetEnabled, [&]() -> CUresult {
    GraphExec& exec = exec_of(hGraphExec);
    GraphNode& node = exec_node(exec, hNode);
    if (!can_be_disabled(node)) return CUDA_ERROR_INVALID_VALUE;
    node.enabled = isEnabled != 0;
    count_kernels(exec);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                       unsigned int* isEnabled) {
  return call(EntryId::cuGraphNodeGetEnabled, [&]() -> CUresult {
    if (isEnabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const GraphNode& node = exec_node(exec_of(hGraphExec), hNode);
    if (!can_be_disabled(node)) return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = node.enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
