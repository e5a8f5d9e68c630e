// SPDX-License-Identifier: Apache-2.0
// One sequence as an executable graph: a chain of explicit kernel nodes (no capture, so nothing of
// ours can collide with a capture of the program). Used on one stream only, under that stream's
// queue lock. The CUgraph lives as long as its exec: node handles given to SetParams must exist in
// it (cuda.h, cuGraphExecKernelNodeSetParams).
#pragma once

#include "runtime/array.h"
#include "runtime/sequence.h"

namespace runtime {

struct GraphPlan {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  Array<CUgraphNode> nodes;      // one a launch
  Array<CUfunction> functions;   // what each node runs: a CUkernel resolved for the context
  bool has_older_nodes = false;  // a driver before CUDA 12: the first ABI of kernel nodes
  std::size_t bytes = 0;         // estimate of what the driver holds
};

}  // namespace runtime

namespace graphs {

using runtime::GraphPlan;
using runtime::Sequence;

// Estimated driver memory of a graph with that many nodes, bytes: about 10 KB a kernel node
// (NVIDIA/cccl#3768) and a floor an exec.
std::size_t estimate_bytes(std::uint32_t nodes) noexcept;

// Builds and instantiates the graph of the sequence with its present values. Null: the driver
// refused, or no memory.
GraphPlan* build_plan(const Sequence& sequence) noexcept;

// Gives the exec the values of every launch whose dirty bit is set and clears the bits; counts
// nodes in `*patched`. False: a patch failed; the exec's values are unknown and it must not be
// launched.
bool patch_plan(GraphPlan& plan, Sequence& sequence, std::uint64_t* patched) noexcept;

CUresult launch_plan(GraphPlan& plan, CUstream stream) noexcept;

// In flight is fine: the driver frees the exec when it has run (cuda.h, cuGraphExecDestroy).
void destroy_plan(GraphPlan* plan) noexcept;

}  // namespace graphs
