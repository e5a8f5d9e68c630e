// SPDX-License-Identifier: Apache-2.0
// What can be done with an executable graph, below the entries. Driver lock held; nothing here runs
// device work.
#pragma once

#include "tools/softgpu/driver/graph.h"

namespace softgpu {

// Why a graph cannot be instantiated as it is.
struct ExecProblem {
  CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  CUgraphNode node = nullptr;  // at fault, if it is one's fault
  const char* text = "";
};

// A snapshot of `graph`, ready to launch; null if there is a problem with its structure.
std::shared_ptr<GraphExec> make_exec(Graph& graph, cuuint64_t flags, ExecProblem* problem);

// The nodes of a graph without cycles in execution order, embedded graphs in place of their nodes.
std::vector<ExecStep> flatten(const Graph& graph);

// The exec's own copy of a node of the graph it was instantiated from. Fails with INVALID_VALUE for
// any other node.
GraphNode& exec_node(GraphExec& exec, CUgraphNode handle);

// Counts again after nodes were enabled or disabled.
void count_kernels(GraphExec& exec);

// Gives `target`, an exec's snapshot or a graph embedded in it, the parameters of the topologically
// equal `source`. All or nothing.
CUgraphExecUpdateResultInfo update_nodes(Graph& target, const Graph& source, cuuint64_t exec_flags);

}  // namespace softgpu
