// SPDX-License-Identifier: Apache-2.0
// cuGraphExecUpdate: what it takes over, and every reason for which it refuses.
#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

namespace {

CUgraphExecUpdateResultInfo update(CUgraphExec exec, CUgraph graph) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
  CHECK(code == (info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS
                     ? CUDA_SUCCESS
                     : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE));
  return info;
}

}  // namespace

TEST_CASE("an update takes over the parameters of an equal topology") {
  Gpu::get();
  Words words(6);
  TestGraph graph, next;
  const CUgraphNode a = graph.set(words.at(0), 1);
  graph.store(words.at(2), 1, {graph.copy(words.at(1), words.at(0), {a})});
  const CUgraphNode b = next.set(words.at(3), 2);
  next.store(words.at(5), 2, {next.copy(words.at(4), words.at(3), {b})});
  TestExec exec(graph);
  TestStream stream;
  exec.launch(stream);
  CHECK(update(exec, next).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  CUgraphNode error_node = reinterpret_cast<CUgraphNode>(1);
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
  REQUIRE(cuGraphExecUpdate(exec, next, &error_node, &result) == CUDA_SUCCESS);
  CHECK(error_node == nullptr);
  CHECK(result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{1, 1, 1, 0, 0, 0});
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{1, 1, 1, 2, 2, 2});
  // Its nodes are still named by the graph it was made from.
  const auto params = word_set(words.at(0), 9);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, a, &params, Gpu::get().context) == CUDA_SUCCESS);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, b, &params, Gpu::get().context) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an update is refused with the reason and the node") {
  const Gpu& gpu = Gpu::get();
  Words words(16);
  TestGraph graph;
  const CUgraphNode a = graph.set(words.at(0), 1), b = graph.set(words.at(1), 1, {a});
  graph.copy(words.at(3), words.at(1), {a, b});
  TestExec exec(graph);

  SECTION("the number of nodes differs") {
    TestGraph next;
    next.set(words.at(0), 2);
    const auto info = update(exec, next);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK(info.errorNode == nullptr);
  }
  SECTION("there are more exits") {
    TestGraph next;
    const CUgraphNode na = next.set(words.at(0), 2), nb = next.set(words.at(1), 2, {na});
    const CUgraphNode exit = next.copy(words.at(3), words.at(1), {na});
    const auto info = update(exec, next);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK((info.errorNode == nb || info.errorNode == exit));
  }
  SECTION("a node has fewer dependencies") {
    TestGraph next;
    const CUgraphNode na = next.set(words.at(0), 2), nb = next.set(words.at(1), 2, {na});
    const CUgraphNode exit = next.copy(words.at(3), words.at(1), {nb});
    const auto info = update(exec, next);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK(info.errorNode == exit);
    CHECK(info.errorFromNode == nullptr);
  }
  SECTION("the order of edges differs") {
    TestGraph next;
    const CUgraphNode na = next.set(words.at(0), 2), nb = next.set(words.at(1), 2, {na});
    next.copy(words.at(3), words.at(1), {nb, na});
    const auto info = update(exec, next);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK(info.errorNode != nullptr);
  }
  SECTION("a node has another type") {
    TestGraph next;
    const CUgraphNode na = next.set(words.at(0), 2), nb = next.copy(words.at(1), words.at(5), {na});
    next.copy(words.at(3), words.at(1), {na, nb});
    const auto info = update(exec, next);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    CHECK(info.errorNode == nb);
  }
  SECTION("a copy changes its memory type") {
    std::uint32_t pageable = 0;
    TestGraph next;
    const CUgraphNode na = next.set(words.at(0), 2), nb = next.set(words.at(1), 2, {na});
    auto params = word_copy(0, words.at(1));
    params.dstMemoryType = CU_MEMORYTYPE_HOST;
    params.dstHost = &pageable;
    const CUgraphNode after[] = {na, nb};
    CUgraphNode copy = nullptr;
    REQUIRE(cuGraphAddMemcpyNode(&copy, next, after, 2, &params, gpu.context) == CUDA_SUCCESS);
    const auto info = update(exec, next);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
    CHECK(info.errorNode == copy);
  }
  SECTION("a handle is dead") {
    CUgraphExecUpdateResultInfo info{};
    CHECK(cuGraphExecUpdate_v2(exec, nullptr, &info) == CUDA_ERROR_INVALID_VALUE);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR);
    CHECK(cuGraphExecUpdate_v2(nullptr, graph, &info) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuGraphExecUpdate_v2(exec, graph, nullptr) == CUDA_ERROR_INVALID_VALUE);
  }
  // Nothing was changed half way.
  TestStream stream;
  exec.launch(stream);
  stream.sync();
  CHECK(words.read(0) == 1);
  CHECK(words.read(1) == 1);
  CHECK(words.read(3) == 1);
}

TEST_CASE("an update is refused when attributes of a kernel change") {
  Gpu::get();
  Words words(1);
  TestGraph graph, next;
  graph.store(words.at(0), 1);
  const CUgraphNode node = next.store(words.at(0), 2);
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiateWithFlags(
              &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) == CUDA_SUCCESS);
  CUlaunchAttributeValue value{};
  value.priority = -1;
  REQUIRE(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) ==
          CUDA_SUCCESS);
  auto info = update(exec, next);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
  CHECK(info.errorNode == node);
  REQUIRE(cuGraphExecDestroy(exec) == CUDA_SUCCESS);

  TestExec plain(graph);  // priorities do not matter to this one, cooperation does
  CHECK(update(plain, next).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  value = {};
  value.cooperative = 1;
  REQUIRE(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
          CUDA_SUCCESS);
  info = update(plain, next);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
  CHECK(info.errorNode == node);
}

TEST_CASE("a kernel node cannot move to another context") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  TestGraph graph;
  const CUgraphNode node = graph.store(words.at(0), 1);
  TestExec exec(graph);
  CUcontext second = nullptr;
  REQUIRE(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction foreign = nullptr;
  REQUIRE(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&foreign, module, "store") == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS);
  WordArguments arguments(words.at(0), 2);
  const auto params = kernel_params(foreign, arguments.pointers);
  CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &params) == CUDA_ERROR_INVALID_VALUE);

  TestGraph moved;
  const CUgraphNode moved_node = moved.kernel(foreign, arguments.pointers);
  const auto info = update(exec, moved);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
  CHECK(info.errorNode == moved_node);
  REQUIRE(cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS);
}

TEST_CASE("an update keeps cluster shapes silently") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  TestGraph graph, next;
  const CUgraphNode old_node = graph.store(words.at(0), 1);
  const CUgraphNode new_node = next.store(words.at(0), 2);
  CUlaunchAttributeValue value{};
  value.clusterDim = {2, 1, 1};
  REQUIRE(cuGraphKernelNodeSetAttribute(old_node, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                        &value) == CUDA_SUCCESS);
  value.clusterDim = {4, 1, 1};
  REQUIRE(cuGraphKernelNodeSetAttribute(new_node, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                        &value) == CUDA_SUCCESS);
  TestExec exec(graph);
  REQUIRE(update(exec, next).result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  // An exec's nodes can be looked at where it is captured as a child graph.
  TestStream stream;
  REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  exec.launch(stream);
  CUgraph captured = nullptr, embedded = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &captured) == CUDA_SUCCESS);
  TestGraph owned(captured);
  REQUIRE(cuGraphChildGraphNodeGetGraph(nodes_of(captured)[0], &embedded) == CUDA_SUCCESS);
  const CUgraphNode inside = nodes_of(embedded)[0];
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  REQUIRE(cuGraphKernelNodeGetParams_v2(inside, &params) == CUDA_SUCCESS);
  CHECK(params.func == gpu.store);
  CHECK(*static_cast<std::uint32_t*>(params.kernelParams[1]) == 2);
  REQUIRE(cuGraphKernelNodeGetAttribute(inside, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                        &value) == CUDA_SUCCESS);
  CHECK(value.clusterDim.x == 2);
}
