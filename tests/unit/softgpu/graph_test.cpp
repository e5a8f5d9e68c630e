// SPDX-License-Identifier: Apache-2.0
// Graphs as data: nodes, edges, clones, embedded graphs, parameters of nodes, user objects. Nothing
// here is launched.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

namespace {

void CUDA_CB do_nothing(void*) {}

void CUDA_CB count_call(void* counter) {
  ++*static_cast<std::atomic<int>*>(counter);
}

constexpr CUgraphEdgeData kProgrammatic = {
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};

}  // namespace

TEST_CASE("graph entries refuse handles that are not live") {
  Gpu::get();
  int local = 0;
  TestGraph graph;  // first: handles of dead objects are used again
  CUgraph dead_graph = nullptr;
  REQUIRE(cuGraphCreate(&dead_graph, 0) == CUDA_SUCCESS);
  CUgraphNode dead_node = nullptr;
  REQUIRE(cuGraphAddEmptyNode(&dead_node, dead_graph, nullptr, 0) == CUDA_SUCCESS);
  REQUIRE(cuGraphDestroy(dead_graph) == CUDA_SUCCESS);
  CUgraphNode out = nullptr;
  CUgraphNodeType type{};
  std::size_t count = 0;
  for (void* bad : {static_cast<void*>(nullptr), static_cast<void*>(dead_graph),
                    reinterpret_cast<void*>(0x1234), static_cast<void*>(&local)}) {
    const auto bad_graph = static_cast<CUgraph>(bad);
    CHECK(cuGraphDestroy(bad_graph) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuGraphAddEmptyNode(&out, bad_graph, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuGraphGetNodes(bad_graph, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuGraphAddChildGraphNode(&out, graph, nullptr, 0, bad_graph) == CUDA_ERROR_INVALID_VALUE);
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&exec, bad_graph, 0) == CUDA_ERROR_INVALID_VALUE);
  }
  for (void* bad : {static_cast<void*>(nullptr), static_cast<void*>(dead_node),
                    reinterpret_cast<void*>(0x1234), static_cast<void*>(&local)}) {
    const auto bad_node = static_cast<CUgraphNode>(bad);
    CHECK(cuGraphNodeGetType(bad_node, &type) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuGraphDestroyNode(bad_node) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuGraphAddEmptyNode(&out, graph, &bad_node, 1) == CUDA_ERROR_INVALID_VALUE);
  }
  // A live handle of another kind is as foreign as a wild pointer.
  CHECK(cuGraphDestroy(reinterpret_cast<CUgraph>(graph.empty())) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(static_cast<CUgraph>(graph))) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("graph creation checks its arguments") {
  Gpu::get();
  CUgraph graph = nullptr;
  CHECK(cuGraphCreate(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphCreate(&graph, 1) == CUDA_ERROR_INVALID_VALUE);
  TestGraph real;
  CHECK(cuGraphAddEmptyNode(nullptr, real, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CUgraphNode node = nullptr;
  CHECK(cuGraphAddEmptyNode(&node, real, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(real).empty());
}

TEST_CASE("topology queries count, fill and pad") {
  Gpu::get();
  TestGraph graph;
  const CUgraphNode a = graph.empty(), b = graph.empty();
  const CUgraphNode c = graph.empty({a, b}), d = graph.empty({c});
  CHECK(nodes_of(graph) == std::vector<CUgraphNode>{a, b, c, d});
  CHECK(dependencies_of(c) == std::vector<CUgraphNode>{a, b});

  CUgraphNode some[6];
  std::size_t count = 6;
  REQUIRE(cuGraphGetNodes(graph, some, &count) == CUDA_SUCCESS);
  CHECK(count == 4);
  CHECK(some[4] == nullptr);
  CHECK(some[5] == nullptr);
  count = 2;
  REQUIRE(cuGraphGetNodes(graph, some, &count) == CUDA_SUCCESS);
  CHECK(count == 2);

  count = 6;
  REQUIRE(cuGraphGetRootNodes(graph, some, &count) == CUDA_SUCCESS);
  CHECK(count == 2);
  CHECK(some[0] == a);
  CHECK(some[1] == b);
  CHECK(some[2] == nullptr);

  count = 6;
  REQUIRE(cuGraphNodeGetDependentNodes(a, some, &count) == CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(some[0] == c);
  CHECK(some[1] == nullptr);

  CUgraphNode from[5], to[5];
  count = 5;
  REQUIRE(cuGraphGetEdges(graph, from, to, &count) == CUDA_SUCCESS);
  CHECK(count == 3);
  CHECK(from[3] == nullptr);
  CHECK(to[3] == nullptr);
  CHECK(cuGraphGetEdges(graph, from, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphGetNodes(graph, some, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("dependencies are added and removed all or none") {
  Gpu::get();
  TestGraph graph, other;
  const CUgraphNode a = graph.empty(), b = graph.empty(), c = graph.empty();
  const CUgraphNode foreign = other.empty();
  const CUgraphNode from[] = {a, b}, to[] = {b, c};
  REQUIRE(cuGraphAddDependencies(graph, from, to, 2) == CUDA_SUCCESS);
  CHECK(edge_count(graph) == 2);

  const CUgraphNode again_from[] = {a, a}, again_to[] = {c, b};  // the second exists
  CHECK(cuGraphAddDependencies(graph, again_from, again_to, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(edge_count(graph) == 2);
  CHECK(cuGraphAddDependencies(graph, &a, &a, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddDependencies(graph, &a, &foreign, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddDependencies(other, &a, &b, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddDependencies(graph, nullptr, nullptr, 0) == CUDA_SUCCESS);

  const CUgraphNode gone_from[] = {a, a}, gone_to[] = {b, c};  // the second does not exist
  CHECK(cuGraphRemoveDependencies(graph, gone_from, gone_to, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(edge_count(graph) == 2);
  REQUIRE(cuGraphRemoveDependencies(graph, from, to, 2) == CUDA_SUCCESS);
  CHECK(edge_count(graph) == 0);

  CUgraphNode node = nullptr;
  const CUgraphNode twice[] = {a, a};
  CHECK(cuGraphAddEmptyNode(&node, graph, twice, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddEmptyNode(&node, graph, &foreign, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(graph).size() == 3);
}

TEST_CASE("destroying a node severs its edges") {
  Gpu::get();
  TestGraph graph;
  const CUgraphNode a = graph.empty(), b = graph.empty({a}), c = graph.empty({b});
  REQUIRE(cuGraphDestroyNode(b) == CUDA_SUCCESS);
  CHECK(nodes_of(graph) == std::vector<CUgraphNode>{a, c});
  CHECK(edge_count(graph) == 0);
  CHECK(cuGraphDestroyNode(b) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("edge data is checked, kept, and not lost silently") {
  Gpu::get();
  Words words(1);
  TestGraph graph;
  const CUgraphNode a = graph.store(words.at(0), 1), b = graph.store(words.at(0), 2);
  const CUgraphNode e = graph.empty();
  REQUIRE(cuGraphAddDependencies_v2(graph, &a, &b, &kProgrammatic, 1) == CUDA_SUCCESS);
  CHECK(cuGraphAddDependencies_v2(graph, &a, &e, &kProgrammatic, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddDependencies_v2(graph, &e, &a, &kProgrammatic, 1) == CUDA_ERROR_INVALID_VALUE);
  CUgraphEdgeData bad = kProgrammatic;
  bad.reserved[2] = 1;
  CHECK(cuGraphAddDependencies_v2(graph, &b, &a, &bad, 1) == CUDA_ERROR_INVALID_VALUE);
  bad = {0, 1, 0, {}};
  CHECK(cuGraphAddDependencies_v2(graph, &b, &a, &bad, 1) == CUDA_ERROR_INVALID_VALUE);
  bad = {CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT, {}};
  CHECK(cuGraphAddDependencies_v2(graph, &b, &a, &bad, 1) == CUDA_ERROR_INVALID_VALUE);

  CUgraphNode from[2], to[2];
  CUgraphEdgeData data[2];
  std::size_t count = 2;
  CHECK(cuGraphGetEdges(graph, from, to, &count) == CUDA_ERROR_LOSSY_QUERY);
  CHECK(cuGraphNodeGetDependencies(b, from, &count) == CUDA_ERROR_LOSSY_QUERY);
  CHECK(cuGraphNodeGetDependentNodes(a, to, &count) == CUDA_ERROR_LOSSY_QUERY);
  count = 2;
  REQUIRE(cuGraphGetEdges_v2(graph, from, to, data, &count) == CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(data[0].from_port == kProgrammatic.from_port);
  CHECK(data[0].type == kProgrammatic.type);
  // Removal must name the data too.
  CHECK(cuGraphRemoveDependencies(graph, &a, &b, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphRemoveDependencies_v2(graph, &a, &b, &kProgrammatic, 1) == CUDA_SUCCESS);
  CHECK(edge_count(graph) == 0);
}

TEST_CASE("a clone is independent and its nodes can be found") {
  Gpu::get();
  TestGraph graph;
  const CUgraphNode a = graph.empty(), b = graph.empty({a});
  CUgraph clone_handle = nullptr;
  REQUIRE(cuGraphClone(&clone_handle, graph) == CUDA_SUCCESS);
  TestGraph clone(clone_handle);
  const CUgraphNode late = graph.empty({b});
  CHECK(nodes_of(clone).size() == 2);
  CHECK(edge_count(clone) == 1);

  CUgraphNode found_a = nullptr, found_b = nullptr;
  REQUIRE(cuGraphNodeFindInClone(&found_a, a, clone) == CUDA_SUCCESS);
  REQUIRE(cuGraphNodeFindInClone(&found_b, b, clone) == CUDA_SUCCESS);
  CHECK(dependencies_of(found_b) == std::vector<CUgraphNode>{found_a});
  CHECK(found_a != a);
  CUgraphNode none = nullptr;
  CHECK(cuGraphNodeFindInClone(&none, late, clone) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphNodeFindInClone(&none, a, graph) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuGraphDestroyNode(found_a) == CUDA_SUCCESS);
  CHECK(cuGraphNodeFindInClone(&none, a, clone) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphClone(nullptr, graph) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a child graph is copied in, editable in place, owned by its node") {
  Gpu::get();
  TestGraph inner, outer;
  const CUgraphNode a = inner.empty();
  const CUgraphNode child = outer.child(inner);
  inner.empty({a});
  CUgraph embedded = nullptr;
  REQUIRE(cuGraphChildGraphNodeGetGraph(child, &embedded) == CUDA_SUCCESS);
  CHECK(nodes_of(embedded).size() == 1);
  CUgraphNode found = nullptr, added = nullptr;
  REQUIRE(cuGraphNodeFindInClone(&found, a, embedded) == CUDA_SUCCESS);
  REQUIRE(cuGraphAddEmptyNode(&added, embedded, &found, 1) == CUDA_SUCCESS);
  CUgraph same = nullptr;
  REQUIRE(cuGraphChildGraphNodeGetGraph(child, &same) == CUDA_SUCCESS);
  CHECK(same == embedded);
  CHECK(nodes_of(same).size() == 2);
  CHECK(cuGraphDestroy(embedded) == CUDA_ERROR_INVALID_VALUE);
  CUgraphNode self = nullptr;
  CHECK(cuGraphAddChildGraphNode(&self, outer, nullptr, 0, outer) == CUDA_ERROR_INVALID_VALUE);

  CUgraph clone_handle = nullptr;
  REQUIRE(cuGraphClone(&clone_handle, outer) == CUDA_SUCCESS);
  TestGraph clone(clone_handle);
  CUgraph cloned_embedded = nullptr;
  REQUIRE(cuGraphChildGraphNodeGetGraph(nodes_of(clone)[0], &cloned_embedded) == CUDA_SUCCESS);
  CHECK(cloned_embedded != embedded);
  CHECK(nodes_of(cloned_embedded).size() == 2);

  REQUIRE(cuGraphDestroyNode(child) == CUDA_SUCCESS);
  CUgraphNodeType type{};
  std::size_t count = 0;
  CHECK(cuGraphGetNodes(embedded, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphNodeGetType(added, &type) == CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(cloned_embedded).size() == 2);
}

TEST_CASE("kernel node parameters are copied in and handed out") {
  const Gpu& gpu = Gpu::get();
  Words words(2);
  TestGraph graph;
  WordArguments arguments(words.at(0), 7);
  const CUgraphNode node = graph.kernel(gpu.store, arguments.pointers);
  CHECK(type_of(node) == CU_GRAPH_NODE_TYPE_KERNEL);
  arguments.word = 0;
  arguments.value = 0;
  CUDA_KERNEL_NODE_PARAMS_v2 got{};
  REQUIRE(cuGraphKernelNodeGetParams_v2(node, &got) == CUDA_SUCCESS);
  CHECK(got.func == gpu.store);
  CHECK(got.extra == nullptr);
  REQUIRE(got.kernelParams != nullptr);
  CHECK(*static_cast<CUdeviceptr*>(got.kernelParams[0]) == words.at(0));
  CHECK(*static_cast<std::uint32_t*>(got.kernelParams[1]) == 7);

  WordArguments next(words.at(1), 9);
  auto params = kernel_params(gpu.scale, next.pointers);
  params.gridDimX = 3;
  params.blockDimY = 2;
  REQUIRE(cuGraphKernelNodeSetParams_v2(node, &params) == CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS_v1 old{};
  REQUIRE(cuGraphKernelNodeGetParams(node, &old) == CUDA_SUCCESS);
  CHECK(old.func == gpu.scale);
  CHECK(old.gridDimX == 3);
  CHECK(old.blockDimY == 2);
  CHECK(*static_cast<std::uint32_t*>(old.kernelParams[1]) == 9);
}

TEST_CASE("kernel node parameters packed as extra come back as extra") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  TestGraph graph;
  struct {
    CUdeviceptr word;
    std::uint32_t value;
  } packed{words.at(0), 11};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS_v1 params{gpu.store, 1, 1, 1, 1, 1, 1, 0, nullptr, extra};
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  packed.value = 0;
  CUDA_KERNEL_NODE_PARAMS_v1 got{};
  REQUIRE(cuGraphKernelNodeGetParams(node, &got) == CUDA_SUCCESS);
  CHECK(got.kernelParams == nullptr);
  REQUIRE(got.extra != nullptr);
  const auto* bytes = static_cast<const std::byte*>(got.extra[1]);
  std::uint32_t value = 0;
  std::memcpy(&value, bytes + 8, 4);
  CHECK(value == 11);
  // What was handed out is good as input.
  CUgraphNode twin = nullptr;
  CHECK(cuGraphAddKernelNode(&twin, graph, nullptr, 0, &got) == CUDA_SUCCESS);
  WordArguments both(words.at(0), 1);
  params.kernelParams = both.pointers;
  CHECK(cuGraphAddKernelNode(&twin, graph, nullptr, 0, &params) == CUDA_ERROR_INVALID_VALUE);
  // Cooperative kernels take no packed arguments.
  params.kernelParams = nullptr;
  CUlaunchAttributeValue attribute{};
  attribute.cooperative = 1;
  REQUIRE(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute) ==
          CUDA_SUCCESS);
  CHECK(cuGraphKernelNodeSetParams(node, &params) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("bad kernel node parameters change nothing") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  TestGraph graph;
  const CUgraphNode node = graph.store(words.at(0), 5);
  WordArguments arguments(words.at(0), 6);
  auto params = kernel_params(nullptr, arguments.pointers);
  CHECK(cuGraphKernelNodeSetParams_v2(node, &params) == CUDA_ERROR_INVALID_VALUE);
  params = kernel_params(gpu.store, arguments.pointers);
  params.blockDimX = 4096;
  CHECK(cuGraphKernelNodeSetParams_v2(node, &params) != CUDA_SUCCESS);
  params = kernel_params(gpu.store, nullptr);
  CHECK(cuGraphKernelNodeSetParams_v2(node, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphKernelNodeSetParams_v2(node, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphKernelNodeSetParams_v2(graph.empty(), &params) == CUDA_ERROR_INVALID_VALUE);
  CUDA_KERNEL_NODE_PARAMS_v2 got{};
  REQUIRE(cuGraphKernelNodeGetParams_v2(node, &got) == CUDA_SUCCESS);
  CHECK(got.blockDimX == 1);
  CHECK(*static_cast<std::uint32_t*>(got.kernelParams[1]) == 5);
}

TEST_CASE("kernel node attributes are set, read and copied") {
  Gpu::get();
  Words words(1);
  TestGraph graph;
  const CUgraphNode a = graph.store(words.at(0), 1), b = graph.store(words.at(0), 2);
  CUlaunchAttributeValue value{};
  REQUIRE(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS);
  CHECK(value.priority == 0);
  value.priority = -3;
  REQUIRE(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS);
  value = {};
  value.cooperative = 1;
  REQUIRE(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
          CUDA_SUCCESS);
  REQUIRE(cuGraphKernelNodeCopyAttributes(b, a) == CUDA_SUCCESS);
  value = {};
  REQUIRE(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS);
  CHECK(value.priority == -3);
  REQUIRE(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
          CUDA_SUCCESS);
  CHECK(value.cooperative == 1);
  // Not for nodes, not for other kinds of node, not known.
  CHECK(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, &value) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphKernelNodeSetAttribute(graph.empty(), CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) ==
        CUDA_ERROR_INVALID_VALUE);
  value = {};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  CHECK(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                      &value) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("copy, memset, host and event nodes keep and change their parameters") {
  const Gpu& gpu = Gpu::get();
  Words words(4);
  TestGraph graph;
  const CUgraphNode copy = graph.copy(words.at(1), words.at(0));
  CUDA_MEMCPY3D copy_params{};
  REQUIRE(cuGraphMemcpyNodeGetParams(copy, &copy_params) == CUDA_SUCCESS);
  CHECK(copy_params.dstDevice == words.at(1));
  copy_params = word_copy(words.at(3), words.at(2));
  REQUIRE(cuGraphMemcpyNodeSetParams(copy, &copy_params) == CUDA_SUCCESS);
  copy_params.WidthInBytes = 0;
  CHECK(cuGraphMemcpyNodeSetParams(copy, &copy_params) == CUDA_ERROR_INVALID_VALUE);
  copy_params = word_copy(words.at(3), words.at(2), 100);  // past the end
  CHECK(cuGraphMemcpyNodeSetParams(copy, &copy_params) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuGraphMemcpyNodeGetParams(copy, &copy_params) == CUDA_SUCCESS);
  CHECK(copy_params.srcDevice == words.at(2));
  CHECK(copy_params.WidthInBytes == 4);

  const CUgraphNode set = graph.set(words.at(0), 3);
  CUDA_MEMSET_NODE_PARAMS set_params{};
  auto wrong = word_set(words.at(0), 1);
  wrong.elementSize = 3;
  CHECK(cuGraphMemsetNodeSetParams(set, &wrong) == CUDA_ERROR_INVALID_VALUE);
  CUgraphNode unused = nullptr;
  CHECK(cuGraphAddMemsetNode(&unused, graph, nullptr, 0, &wrong, gpu.context) ==
        CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuGraphMemsetNodeGetParams(set, &set_params) == CUDA_SUCCESS);
  CHECK(set_params.value == 3);

  int data = 0;
  const CUgraphNode host = graph.host(do_nothing, nullptr);
  CUDA_HOST_NODE_PARAMS host_params{do_nothing, &data};
  REQUIRE(cuGraphHostNodeSetParams(host, &host_params) == CUDA_SUCCESS);
  host_params = {};
  REQUIRE(cuGraphHostNodeGetParams(host, &host_params) == CUDA_SUCCESS);
  CHECK(host_params.userData == &data);
  host_params.fn = nullptr;
  CHECK(cuGraphHostNodeSetParams(host, &host_params) == CUDA_ERROR_INVALID_VALUE);

  TestEvent first, second;
  const CUgraphNode record = graph.record(first), wait = graph.wait(first);
  REQUIRE(cuGraphEventRecordNodeSetEvent(record, second) == CUDA_SUCCESS);
  REQUIRE(cuGraphEventWaitNodeSetEvent(wait, second) == CUDA_SUCCESS);
  CUevent event = nullptr;
  REQUIRE(cuGraphEventRecordNodeGetEvent(record, &event) == CUDA_SUCCESS);
  CHECK(event == second);
  REQUIRE(cuGraphEventWaitNodeGetEvent(wait, &event) == CUDA_SUCCESS);
  CHECK(event == second);
  CHECK(cuGraphEventWaitNodeGetEvent(record, &event) == CUDA_ERROR_INVALID_VALUE);
  CHECK(type_of(copy) == CU_GRAPH_NODE_TYPE_MEMCPY);
  CHECK(type_of(set) == CU_GRAPH_NODE_TYPE_MEMSET);
  CHECK(type_of(host) == CU_GRAPH_NODE_TYPE_HOST);
  CHECK(type_of(record) == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  CHECK(type_of(wait) == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

TEST_CASE("generic nodes: every type, unused bytes zero, type fixed") {
  const Gpu& gpu = Gpu::get();
  Words words(2);
  TestGraph graph, inner;
  inner.empty();
  WordArguments arguments(words.at(0), 3);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = gpu.store;
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = arguments.pointers;
  CUgraphNode kernel = nullptr, next = nullptr;
  REQUIRE(cuGraphAddNode(&kernel, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  REQUIRE(cuGraphAddNode_v2(&next, graph, &kernel, &kProgrammatic, 1, &params) == CUDA_SUCCESS);
  arguments.value = 4;
  REQUIRE(cuGraphNodeSetParams(next, &params) == CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS_v2 got{};
  REQUIRE(cuGraphKernelNodeGetParams_v2(next, &got) == CUDA_SUCCESS);
  CHECK(*static_cast<std::uint32_t*>(got.kernelParams[1]) == 4);
  params.reserved2 = 1;
  CHECK(cuGraphNodeSetParams(next, &params) == CUDA_ERROR_INVALID_VALUE);
  params.reserved2 = 0;
  params.reserved0[1] = 1;
  CHECK(cuGraphNodeSetParams(next, &params) == CUDA_ERROR_INVALID_VALUE);

  params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset = {words.at(1), 0, 1, 4, 1, 1, gpu.context};
  CUgraphNode set = nullptr;
  REQUIRE(cuGraphAddNode(&set, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  CHECK(cuGraphNodeSetParams(kernel, &params) == CUDA_ERROR_INVALID_VALUE);
  // Programmatic edges are for kernels only; a failed add leaves nothing behind.
  const std::size_t before = nodes_of(graph).size();
  CHECK(cuGraphAddNode_v2(&set, graph, &kernel, &kProgrammatic, 1, &params) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(graph).size() == before);

  params = {};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = inner;
  CUgraphNode child = nullptr;
  REQUIRE(cuGraphAddNode(&child, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  CHECK(type_of(child) == CU_GRAPH_NODE_TYPE_GRAPH);
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CHECK(cuGraphAddNode(&child, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  CHECK(cuGraphAddNode(&child, graph, nullptr, 0, &params) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuGraphAddNode(&child, graph, nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a graph is written as DOT") {
  Gpu::get();
  Words words(2);
  TestGraph graph, inner;
  inner.set(words.at(0), 1);
  const CUgraphNode a = graph.store(words.at(0), 1);
  graph.child(inner, {graph.copy(words.at(1), words.at(0), {a})});
  const std::string path = "graph_test." + std::to_string(getpid()) + ".dot";
  REQUIRE(cuGraphDebugDotPrint(graph, path.c_str(), CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE) ==
          CUDA_SUCCESS);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  for (const char* part : {"digraph", "KERNEL\\nstore", "device to device", "MEMSET", " -> "}) {
    CHECK(text.str().find(part) != std::string::npos);
  }
  CHECK(cuGraphDebugDotPrint(graph, "/nonexistent/graph.dot", 0) == CUDA_ERROR_OPERATING_SYSTEM);
  CHECK(cuGraphDebugDotPrint(graph, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphDebugDotPrint(graph, path.c_str(), 1u << 20) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("user objects live as long as references to them") {
  Gpu::get();
  std::atomic<int> destroyed{0};
  CUuserObject object = nullptr;
  CHECK(cuUserObjectCreate(&object, &destroyed, count_call, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuUserObjectCreate(&object, &destroyed, count_call, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) ==
        CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuUserObjectCreate(&object, &destroyed, count_call, 2,
                             CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) == CUDA_SUCCESS);
  CUgraph graph = nullptr, clone = nullptr;
  REQUIRE(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  REQUIRE(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
  REQUIRE(cuGraphClone(&clone, graph) == CUDA_SUCCESS);
  CHECK(cuGraphReleaseUserObject(graph, object, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuUserObjectRelease(object, 2) == CUDA_ERROR_INVALID_VALUE);  // one is the graph's
  REQUIRE(cuUserObjectRelease(object, 1) == CUDA_SUCCESS);
  REQUIRE(cuGraphReleaseUserObject(graph, object, 1) == CUDA_SUCCESS);
  REQUIRE(cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(destroyed == 0);
  REQUIRE(cuGraphRetainUserObject(clone, object, 3, 0) == CUDA_SUCCESS);
  REQUIRE(cuGraphDestroy(clone) == CUDA_SUCCESS);
  while (destroyed == 0)
    std::this_thread::yield();  // the test's time limit ends a destructor that never comes
  CHECK(cuUserObjectRetain(object, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(destroyed == 1);
}
