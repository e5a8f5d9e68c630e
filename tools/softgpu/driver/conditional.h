// SPDX-License-Identifier: Apache-2.0
// Conditional graph nodes: the values they look at, making them, what their bodies may hold, and
// running them. Driver lock held for all functions; only a condition's value is touched without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/graph.h"

namespace softgpu {

struct Context;

// What a CUgraphConditionalHandle names. Lives as long as its graph or an exec made from it.
struct Condition {
  std::uint64_t ordinal = 0;       // of its creation in this process, from 1
  std::uint64_t graph_serial = 0;  // the graph it was created for
  Context* context = nullptr;
  unsigned default_value = 0;
  bool assigns_default = false;  // at the beginning of each launch
  bool has_node = false;         // a node in a graph uses it; no other may
  std::atomic<std::uint32_t> value{0};
};

// cudaGraphSetConditional from a kernel of `context`. False: not a live handle of that context.
bool set_condition(CUgraphConditionalHandle handle, const Context& context, std::uint32_t value);

// A conditional node for `graph` with empty bodies, which clients can name. Tells the client where
// they are; fails with what the entry must return.
ConditionalWork make_conditional(const Graph& graph, CUDA_CONDITIONAL_NODE_PARAMS* params);

// A node inside the bodies of `graph`'s conditional nodes that may not be there; null if all may.
const GraphNode* find_forbidden_node(const Graph& graph);
// Whether a handle created for `graph` or for a body in it has no node.
bool has_unused_condition(const Graph& graph);
// Those of the conditional nodes of an exec's snapshot, at any depth.
std::vector<std::shared_ptr<Condition>> conditions_of(const Graph& snapshot);

std::string describe(const ConditionalWork& work);

// conditional_operation.cpp: performs the node and its bodies as one operation of the device.
std::shared_ptr<Operation> make_conditional_operation(const ConditionalWork& work, Context& context,
                                                      std::uint64_t stream_ordinal,
                                                      std::uint64_t sequence);

}  // namespace softgpu
