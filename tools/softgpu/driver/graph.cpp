// SPDX-License-Identifier: Apache-2.0
// Graph data: building, copying, ordering. No API entries here. Callers hold the driver lock.
#include "tools/softgpu/driver/graph.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <utility>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/misuse.h"

namespace softgpu {

namespace {

std::uint64_t next_graph_serial() {
  static std::uint64_t serial = 0;
  return ++serial;
}

GraphNode& append_copy(Graph& graph, const GraphNode& source, bool with_handles) {
  GraphNode& node = append_node(graph, copy_work(source.work, with_handles), {});
  node.origin = {source.graph->serial, source.id};
  node.packed_params = source.packed_params;
  node.enabled = source.enabled;
  return node;
}

bool matches(const GraphEdge& edge, const GraphNode& node, const CUgraphEdgeData& data) {
  return edge.node == &node && same_edge_data(edge.data, data);
}

void retire_node(GraphNode& node) {
  retire_work(node.work);
  graph_nodes().remove(node.handle);
}

void erase_edge(std::vector<GraphEdge>& edges, const GraphNode& node, const CUgraphEdgeData& data) {
  auto found = std::find_if(edges.begin(), edges.end(),
                            [&](const GraphEdge& edge) { return matches(edge, node, data); });
  if (found != edges.end()) edges.erase(found);
}

}  // namespace

// Leaked: calls may come while the process exits.
GraphTable& graphs() {
  static GraphTable& table = *new GraphTable;
  return table;
}

GraphNodeTable& graph_nodes() {
  static GraphNodeTable& table = *new GraphNodeTable;
  return table;
}

GraphExecTable& graph_execs() {
  static GraphExecTable& table = *new GraphExecTable;
  return table;
}

namespace {

[[noreturn]] void fail_dead_handle() {
  note_misuse(Misuse::kHandle);
  fail(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

Graph& graph_of(CUgraph handle) {
  Graph* graph = graphs().find(handle);
  if (graph == nullptr) fail_dead_handle();
  return *graph;
}

GraphNode& node_of(CUgraphNode handle) {
  GraphNode* node = graph_nodes().find(handle);
  if (node == nullptr) fail_dead_handle();
  return *node;
}

GraphExec& exec_of(CUgraphExec handle) {
  GraphExec* exec = graph_execs().find(handle);
  if (exec == nullptr) fail_dead_handle();
  return *exec;
}

bool same_edge_data(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

bool is_default(const CUgraphEdgeData& data) {
  return same_edge_data(data, CUgraphEdgeData{});
}

bool is_valid_edge(const Work& from, const Work& to, const CUgraphEdgeData& data) {
  constexpr unsigned char kNoReserved[sizeof(data.reserved)] = {};
  if (std::memcmp(data.reserved, kNoReserved, sizeof(kNoReserved)) != 0) return false;
  if (data.to_port != 0 || data.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) return false;
  const bool from_kernel = std::holds_alternative<KernelWork>(from);
  const bool to_kernel = std::holds_alternative<KernelWork>(to);
  if (data.from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT && !from_kernel) return false;
  switch (data.type) {
    case CU_GRAPH_DEPENDENCY_TYPE_DEFAULT:
      return data.from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    case CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC:
      return from_kernel && to_kernel && data.from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT;
    default:
      return false;
  }
}

bool has_edge(const GraphNode& from, const GraphNode& to, const CUgraphEdgeData& data) {
  return std::any_of(to.dependencies.begin(), to.dependencies.end(),
                     [&](const GraphEdge& edge) { return matches(edge, from, data); });
}

void connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  from.dependents.push_back({&to, data});
  to.dependencies.push_back({&from, data});
}

void disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  erase_edge(from.dependents, to, data);
  erase_edge(to.dependencies, from, data);
}

std::shared_ptr<Graph> create_graph() {
  auto graph = std::make_shared<Graph>();
  graph->serial = next_graph_serial();
  graph->handle = graphs().add(graph);
  return graph;
}

void retire_work(const Work& work) {
  for_each_inner(work, [](Graph& inner) {
    if (inner.handle != nullptr) retire_graph(inner);
  });
  const auto* conditional = std::get_if<ConditionalWork>(&work);
  if (conditional != nullptr) conditional->condition->has_node = false;
}

void retire_graph(Graph& graph) {
  for (const auto& node : graph.nodes) retire_node(*node);
  graphs().remove(graph.handle);  // may be the last reference
}

GraphNode& append_node(Graph& graph, Work work, const std::vector<GraphEdge>& dependencies) {
  graph.nodes.push_back(std::make_shared<GraphNode>());
  GraphNode& node = *graph.nodes.back();
  node.graph = &graph;
  node.id = graph.next_node_id++;
  node.work = std::move(work);
  if (graph.handle != nullptr) node.handle = graph_nodes().add(graph.nodes.back());
  if (std::holds_alternative<ConditionalWork>(node.work)) {
    for_each_inner(node.work, [&](Graph& body) { body.body_of = &node; });
  }
  for (const GraphEdge& edge : dependencies) connect(*edge.node, node, edge.data);
  return node;
}

void remove_node(GraphNode& node) {
  for (const GraphEdge& edge : node.dependencies)
    erase_edge(edge.node->dependents, node, edge.data);
  for (const GraphEdge& edge : node.dependents)
    erase_edge(edge.node->dependencies, node, edge.data);
  retire_node(node);
  auto& nodes = node.graph->nodes;
  nodes.erase(std::find_if(nodes.begin(), nodes.end(),
                           [&](const auto& owned) { return owned.get() == &node; }));
}

std::shared_ptr<Graph> copy_graph(const Graph& source, bool with_handles) {
  auto copy = with_handles ? create_graph() : std::make_shared<Graph>();
  std::vector<GraphNode*> copies(source.next_node_id, nullptr);  // by source node id
  for (const auto& node : source.nodes) copies[node->id] = &append_copy(*copy, *node, with_handles);
  for (const auto& node : source.nodes) {
    // Each list is copied as it is: the order of edges is part of the topology that
    // cuGraphExecUpdate compares.
    for (const GraphEdge& edge : node->dependencies) {
      copies[node->id]->dependencies.push_back({copies[edge.node->id], edge.data});
    }
    for (const GraphEdge& edge : node->dependents) {
      copies[node->id]->dependents.push_back({copies[edge.node->id], edge.data});
    }
  }
  if (with_handles) copy->user_objects.add_all(source.user_objects);
  return copy;
}

Work copy_work(const Work& work, bool with_handles) {
  if (const auto* conditional = std::get_if<ConditionalWork>(&work)) {
    ConditionalWork copy{conditional->condition, conditional->type, {}, {}};
    for (const auto& body : conditional->bodies) {
      copy.bodies.push_back(copy_graph(*body, false));
      copy.bodies.back()->embedded = true;
    }
    return copy;
  }
  const auto* child = std::get_if<ChildGraphWork>(&work);
  if (child == nullptr) return work;
  ChildGraphWork copy{copy_graph(*child->graph, with_handles)};
  copy.graph->embedded = true;
  return copy;
}

void collect_user_objects(const Graph& graph, UserObjectRefs* references) {
  references->add_all(graph.user_objects);
  for (const auto& node : graph.nodes) {
    for_each_inner(node->work, [&](Graph& inner) { collect_user_objects(inner, references); });
  }
}

bool has_conditional_nodes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) {
    return std::holds_alternative<ConditionalWork>(node->work);
  });
}

bool is_captured_into(const Graph& graph) {
  bool found = graph.captures > 0;
  for (const auto& node : graph.nodes) {
    for_each_inner(node->work, [&](const Graph& inner) { found |= is_captured_into(inner); });
  }
  return found;
}

CUgraphNodeType node_type(const Work& work) {
  struct Visitor {
    CUgraphNodeType operator()(const EmptyWork&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelWork&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyWork&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const MemsetWork&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostWork&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const CallbackWork&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const EventRecordWork&) const {
      return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    }
    CUgraphNodeType operator()(const EventWaitWork&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const ChildGraphWork&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const FreeAsyncWork&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const ValueWork&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
    CUgraphNodeType operator()(const ConditionalWork&) const {
      return CU_GRAPH_NODE_TYPE_CONDITIONAL;
    }
  };
  return std::visit(Visitor{}, work);
}

std::vector<GraphNode*> topological_order(const Graph& graph, GraphNode** on_cycle) {
  *on_cycle = nullptr;
  std::vector<std::uint32_t> missing(graph.next_node_id, 0);  // by node id
  using Ready = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;
  Ready ready;                                                 // positions in graph.nodes
  std::vector<std::uint32_t> position(graph.next_node_id, 0);  // by node id
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = *graph.nodes[i];
    position[node.id] = i;
    missing[node.id] = static_cast<std::uint32_t>(node.dependencies.size());
    if (node.dependencies.empty()) ready.push(i);
  }
  std::vector<GraphNode*> order;
  order.reserve(graph.nodes.size());
  while (!ready.empty()) {
    GraphNode* node = graph.nodes[ready.top()].get();
    ready.pop();
    order.push_back(node);
    for (const GraphEdge& edge : node->dependents) {
      if (--missing[edge.node->id] == 0) ready.push(position[edge.node->id]);
    }
  }
  if (order.size() == graph.nodes.size()) return order;
  for (const auto& node : graph.nodes) {
    if (missing[node->id] != 0) *on_cycle = node.get();
  }
  return {};
}

}  // namespace softgpu
