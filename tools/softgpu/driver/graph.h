// SPDX-License-Identifier: Apache-2.0
// Graphs as data: nodes in insertion order with edges, and the executable form, which is a deep
// snapshot of a graph plus its flattened order. Everything here needs the driver lock; nothing here
// runs device work.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tools/softgpu/driver/state.h"
#include "tools/softgpu/driver/work.h"

namespace softgpu {

class Operation;
struct Graph;
struct GraphExec;
struct GraphNode;
struct UserObject;   // user_object.h
class DriverMemory;  // memory.h

struct GraphEdge {
  GraphNode* node = nullptr;
  CUgraphEdgeData data{};
};

// A node by identity: handles are reused, this never is. Serial 0: none.
struct NodeIdentity {
  std::uint64_t graph_serial = 0;
  std::uint32_t node_id = 0;
};

// What cuGraphKernelNodeGetParams points into; owned by the node.
struct ReturnedKernelParams {
  std::vector<void*> pointers;
  std::size_t size = 0;
  void* extra[5] = {};
};

struct GraphNode {
  CUgraphNode handle = nullptr;  // null in the snapshot of an exec
  NodeIdentity origin;           // the node this is a copy of
  Graph* graph = nullptr;
  std::uint32_t id = 0;  // never reused within its graph
  Work work;
  std::vector<GraphEdge> dependencies, dependents;
  bool packed_params = false;  // kernel parameters were last given as `extra`
  bool enabled = true;         // cuGraphNodeSetEnabled; snapshots only
  ReturnedKernelParams returned;
};

// References to user objects; released when this goes away.
class UserObjectRefs {
 public:
  UserObjectRefs() = default;
  UserObjectRefs(const UserObjectRefs&) = delete;
  UserObjectRefs& operator=(const UserObjectRefs&) = delete;
  ~UserObjectRefs();

  // Takes over `count` references that somebody else held.
  void adopt(const std::shared_ptr<UserObject>& object, std::uint64_t count);
  // One reference of its own for every object that `other` refers to.
  void add_all(const UserObjectRefs& other);
  // False if fewer than `count` references are held.
  bool remove(const std::shared_ptr<UserObject>& object, std::uint64_t count);
  bool empty() const { return counts_.empty(); }

 private:
  std::map<std::shared_ptr<UserObject>, std::uint64_t> counts_;
};

struct Graph {
  CUgraph handle = nullptr;                       // null in the snapshot of an exec
  std::uint64_t serial = 0;                       // unique in the process
  std::vector<std::shared_ptr<GraphNode>> nodes;  // insertion order
  std::uint32_t next_node_id = 0;
  bool embedded = false;         // owned by a child graph node or a conditional node
  GraphNode* body_of = nullptr;  // the conditional node that owns it, if one does
  unsigned captures = 0;         // running captures into it
  UserObjectRefs user_objects;
  std::vector<std::shared_ptr<Condition>> conditions;  // handles created for it
  std::weak_ptr<GraphExec> exec;                       // kept if it has conditional nodes
};

// Calls `body` with the graph of a child graph node, or with each one of a conditional node.
template <class Body>
void for_each_inner(const Work& work, Body&& body) {
  if (const auto* child = std::get_if<ChildGraphWork>(&work)) body(*child->graph);
  if (const auto* conditional = std::get_if<ConditionalWork>(&work)) {
    for (const auto& graph : conditional->bodies) body(*graph);
  }
}

// One node of an exec in execution order. `before` are positions in GraphExec::order.
struct ExecStep {
  GraphNode* node = nullptr;  // in the snapshot
  std::vector<std::uint32_t> before;
  bool is_exit = false;  // nothing in the exec waits for it
};

struct GraphExec {
  CUgraphExec handle = nullptr;
  cuuint64_t flags = 0;
  std::shared_ptr<Graph> snapshot;
  std::uint64_t source_serial = 0;       // the graph it was instantiated from
  std::vector<GraphNode*> by_source_id;  // its node ids to snapshot nodes, null if none
  // The same for its embedded graphs, by their serial.
  std::unordered_map<std::uint64_t, std::vector<GraphNode*>> embedded;
  std::vector<ExecStep> order;
  std::vector<std::shared_ptr<Operation>> last_launch;  // what the next launch must wait for
  // Those of the graph at instantiation or at the last update; launches in flight share them.
  std::shared_ptr<const UserObjectRefs> user_objects;
  std::vector<std::shared_ptr<Condition>> conditions;  // of all its conditional nodes
  std::shared_ptr<const DriverMemory> memory;  // what its nodes take on the device, if asked for
  bool only_kernels = false;                   // and empty nodes
  std::uint32_t enabled_kernels = 0;
};

using GraphTable = ObjectTable<Graph, CUgraph, HandleKind::kGraph>;
using GraphNodeTable = ObjectTable<GraphNode, CUgraphNode, HandleKind::kGraphNode>;
using GraphExecTable = ObjectTable<GraphExec, CUgraphExec, HandleKind::kGraphExec>;
GraphTable& graphs();
GraphNodeTable& graph_nodes();
GraphExecTable& graph_execs();

// Fail with INVALID_VALUE, which is what graph entries return for a handle that is not live.
Graph& graph_of(CUgraph handle);
GraphNode& node_of(CUgraphNode handle);
GraphExec& exec_of(CUgraphExec handle);

bool same_edge_data(const CUgraphEdgeData& a, const CUgraphEdgeData& b);
bool is_default(const CUgraphEdgeData& data);
// Whether an edge with this annotation may lead from one node to the other.
bool is_valid_edge(const Work& from, const Work& to, const CUgraphEdgeData& data);
bool has_edge(const GraphNode& from, const GraphNode& to, const CUgraphEdgeData& data);
void connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
void disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);

// A graph that clients can name; it lives until retire_graph.
std::shared_ptr<Graph> create_graph();
// Takes the handles of a graph, its nodes and its embedded graphs away.
void retire_graph(Graph& graph);
// Appends a node, with a handle if the graph has one. The caller has checked the dependencies.
GraphNode& append_node(Graph& graph, Work work, const std::vector<GraphEdge>& dependencies);
void remove_node(GraphNode& node);
// Takes away what clients can name of a node's work: inner graphs, the use of its condition.
void retire_work(const Work& work);
// A deep copy: embedded graphs are copied too. With handles: clients can name it, and it keeps the
// user objects.
std::shared_ptr<Graph> copy_graph(const Graph& source, bool with_handles);
// A deep copy of one node's work: the embedded graphs are copied too. Those of a conditional node
// are copied without handles only.
Work copy_work(const Work& work, bool with_handles);

// New references to the user objects of a graph and its embedded graphs.
void collect_user_objects(const Graph& graph, UserObjectRefs* references);

// Conditional nodes directly in it, which is all there can be: child graphs have none.
bool has_conditional_nodes(const Graph& graph);
// Captures run into it or into a graph inside it.
bool is_captured_into(const Graph& graph);

CUgraphNodeType node_type(const Work& work);
// The nodes in an order that respects the edges, insertion order among free ones. With a cycle:
// nothing, and `on_cycle` is one of the nodes that cannot be ordered.
std::vector<GraphNode*> topological_order(const Graph& graph, GraphNode** on_cycle);

}  // namespace softgpu
