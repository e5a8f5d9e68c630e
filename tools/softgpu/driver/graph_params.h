// SPDX-License-Identifier: Apache-2.0
// Between the parameter structs of the graph API and Work: checks and copies on the way in, memory
// owned by the node on the way out. Driver lock held; every function fails (state.h) with what the
// entry must return.
#pragma once

#include "tools/softgpu/driver/graph.h"

namespace softgpu {

CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1& params);
CUDA_KERNEL_NODE_PARAMS_v1 narrow(const CUDA_KERNEL_NODE_PARAMS_v2& params);

// Replaces function, shape and arguments of `node`'s kernel and leaves its attributes; on failure
// nothing changes. Does not allocate when the arguments have the size of the old ones.
// `keep_context`: the function must stay in the context it was in.
void set_kernel_params(GraphNode& node, const CUDA_KERNEL_NODE_PARAMS_v2& params,
                       bool keep_context);
void get_kernel_params(GraphNode& node, CUDA_KERNEL_NODE_PARAMS_v2* params);

CopyWork make_copy(const CUDA_MEMCPY3D& params, CUcontext context);
MemsetWork make_memset(const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context);
HostWork make_host(CUhostFn function, void* user_data);
// Fails with INVALID_VALUE.
std::shared_ptr<Event> event_for_node(CUevent event);
// A copy of `graph` for a child graph node of `parent`.
ChildGraphWork make_child(CUgraph graph, const Graph& parent);

// The tagged union of the generic entries: fails unless everything it does not use is zero.
void check_padding(const CUgraphNodeParams& params);
CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const CUgraphNodeParams& params);
// The work of any node but a kernel, a child graph or a conditional node. Fails with NOT_SUPPORTED
// for those, and for types that softgpu lacks.
Work make_work(const CUgraphNodeParams& params);

// Whether an exec may take `next` in place of `old` (cuda.h, cuGraphExecUpdate). Not for kernels
// and child graphs.
bool can_replace(const Work& old, const Work& next);
// The exec setters alone also refuse copies that are not 1-dimensional.
bool is_multidimensional(const Work& work);

}  // namespace softgpu
