// SPDX-License-Identifier: Apache-2.0
// What can be done with an executable graph, below the entries. Driver lock held; nothing here runs
// device work.
#pragma once

#include "tools/softgpu/driver/graph.h"

namespace softgpu {

// A snapshot of `graph`, ready to launch. Null if it cannot be ordered: `error_node` is one of the
// offending nodes.
std::shared_ptr<GraphExec> make_exec(const Graph& graph, cuuint64_t flags, CUgraphNode* error_node);

// The exec's own copy of a node of the graph it was instantiated from. Fails with INVALID_VALUE for
// any other node.
GraphNode& exec_node(GraphExec& exec, CUgraphNode handle);

// Counts again after nodes were enabled or disabled.
void count_kernels(GraphExec& exec);

// Gives `target`, an exec's snapshot or a graph embedded in it, the parameters of the topologically
// equal `source`. All or nothing.
CUgraphExecUpdateResultInfo update_nodes(Graph& target, const Graph& source, cuuint64_t exec_flags);

}  // namespace softgpu
