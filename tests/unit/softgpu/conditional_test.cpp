// SPDX-License-Identifier: Apache-2.0
// Conditional graph nodes: what runs for which value, defaults, nesting, capture into bodies, what
// an update may change, and everything that is refused.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

namespace {

// As nvcc declares cudaGraphSetConditional. choose: sets the condition to *word. count_down: takes
// one off *word and sets the condition to what is left.
constexpr char kChoosers[] = R"(
.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 p0, .param .b32 p1);
.visible .entry choose(.param .u64 handle, .param .u64 word) {
  .reg .b64 %rd<4>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [word];
  cvta.to.global.u64 %rd3, %rd2;
  ld.global.u32 %r1, [%rd3];
  { .param .b64 a0; st.param.b64 [a0], %rd1;
    .param .b32 a1; st.param.b32 [a1], %r1;
    call.uni cudaGraphSetConditional, (a0, a1); }
  ret;
}
.visible .entry count_down(.param .u64 handle, .param .u64 word) {
  .reg .b64 %rd<4>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [word];
  cvta.to.global.u64 %rd3, %rd2;
  ld.global.u32 %r1, [%rd3];
  add.u32 %r2, %r1, -1;
  st.global.u32 [%rd3], %r2;
  { .param .b64 a0; st.param.b64 [a0], %rd1;
    .param .b32 a1; st.param.b32 [a1], %r2;
    call.uni cudaGraphSetConditional, (a0, a1); }
  ret;
}
)";

struct Choosers {
  CUfunction choose = nullptr, count_down = nullptr;

  static const Choosers& get() {
    Gpu::get();
    static const Choosers choosers;
    return choosers;
  }

 private:
  Choosers() {
    CUmodule module = nullptr;
    REQUIRE(cuModuleLoadData(&module, kChoosers) == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&choose, module, "choose") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&count_down, module, "count_down") == CUDA_SUCCESS);
  }
};

using Nodes = std::vector<CUgraphNode>;
using Values = std::vector<std::uint32_t>;

struct ChooserArguments {
  CUgraphConditionalHandle handle;
  CUdeviceptr word;
  void* pointers[2] = {&handle, &word};
  ChooserArguments(CUgraphConditionalHandle h, CUdeviceptr w) : handle(h), word(w) {}
  ChooserArguments(const ChooserArguments&) = delete;
};

CUgraphConditionalHandle create_handle(CUgraph graph, unsigned value = 0, unsigned flags = 0) {
  CUgraphConditionalHandle handle = 0;
  REQUIRE(cuGraphConditionalHandleCreate(&handle, graph, Gpu::get().context, value, flags) ==
          CUDA_SUCCESS);
  return handle;
}

CUgraphConditionalHandle create_default(CUgraph graph, unsigned value) {
  return create_handle(graph, value, CU_GRAPH_COND_ASSIGN_DEFAULT);
}

CUgraphNodeParams conditional_params(CUgraphConditionalHandle handle,
                                     CUgraphConditionalNodeType type, unsigned size) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  params.conditional.ctx = Gpu::get().context;
  return params;
}

CUresult add(CUgraph graph, const CUgraphNodeParams& wanted, CUgraphNode* node = nullptr) {
  CUgraphNodeParams params = wanted;
  CUgraphNode added = nullptr;
  return cuGraphAddNode(node != nullptr ? node : &added, graph, nullptr, 0, &params);
}

// A conditional node with its bodies, which belong to the driver.
struct Conditional {
  CUgraphNode node = nullptr;
  std::vector<CUgraph> bodies;

  Conditional(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
              unsigned size, const Nodes& after = {}) {
    CUgraphNodeParams params = conditional_params(handle, type, size);
    REQUIRE(cuGraphAddNode(&node, graph, after.data(), after.size(), &params) == CUDA_SUCCESS);
    REQUIRE(params.conditional.phGraph_out != nullptr);
    bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + size);
  }
};

CUgraphNode add_kernel(CUgraph graph, CUfunction function, void** arguments,
                       const Nodes& after = {}) {
  const auto params = kernel_params(function, arguments);
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &params) ==
          CUDA_SUCCESS);
  return node;
}

CUgraphNode add_scale(CUgraph graph, CUdeviceptr word, std::uint32_t value,
                      const Nodes& after = {}) {
  WordArguments arguments(word, value);
  return add_kernel(graph, Gpu::get().scale, arguments.pointers, after);
}

CUgraphNode add_store(CUgraph graph, CUdeviceptr word, std::uint32_t value,
                      const Nodes& after = {}) {
  WordArguments arguments(word, value);
  return add_kernel(graph, Gpu::get().store, arguments.pointers, after);
}

CUgraphNode add_choose(CUgraph graph, CUgraphConditionalHandle handle, CUdeviceptr word,
                       const Nodes& after = {}) {
  ChooserArguments arguments(handle, word);
  return add_kernel(graph, Choosers::get().choose, arguments.pointers, after);
}

CUgraphNode add_count_down(CUgraph graph, CUgraphConditionalHandle handle, CUdeviceptr word,
                           const Nodes& after = {}) {
  ChooserArguments arguments(handle, word);
  return add_kernel(graph, Choosers::get().count_down, arguments.pointers, after);
}

void store(CUstream stream, CUdeviceptr word, std::uint32_t value) {
  WordArguments arguments(word, value);
  REQUIRE(cuLaunchKernel(Gpu::get().store, 1, 1, 1, 1, 1, 1, 0, stream, arguments.pointers,
                         nullptr) == CUDA_SUCCESS);
}

// The result of instantiating, and which node is to blame.
CUgraphInstantiateResult instantiate(CUgraph graph, CUgraphNode* node = nullptr) {
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CUgraphExec exec = nullptr;
  const CUresult code = cuGraphInstantiateWithParams(&exec, graph, &params);
  CHECK((code == CUDA_SUCCESS) == (params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS));
  if (code == CUDA_SUCCESS) CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  if (code != CUDA_SUCCESS) CHECK(code == CUDA_ERROR_INVALID_VALUE);
  if (node != nullptr) *node = params.hErrNode_out;
  return params.result_out;
}

void CUDA_CB do_nothing(void*) {}

}  // namespace

TEST_CASE("an if node runs its body for any value but zero") {
  Choosers::get();
  Words words(3);  // the value, what the body writes, what comes after
  TestStream stream;
  TestGraph graph;
  const auto handle = create_handle(graph);
  const CUgraphNode chooser = add_choose(graph, handle, words.at(0));
  const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_IF, 1, {chooser});
  CHECK(type_of(node.node) == CU_GRAPH_NODE_TYPE_CONDITIONAL);
  add_scale(node.bodies[0], words.at(1), 1, {add_scale(node.bodies[0], words.at(1), 7)});
  graph.copy(words.at(2), words.at(1), {node.node});
  TestExec exec(graph);
  const Values chosen = {1, 0, 0x80000000u, 0};
  std::uint32_t expected = 0;
  for (const std::uint32_t value : chosen) {
    store(stream, words.at(0), value);
    exec.launch(stream);
    stream.sync();
    if (value != 0) expected = (expected * 3 + 7) * 3 + 1;
    CHECK(words.read() == Values{value, expected, expected});
  }
}

TEST_CASE("an if node of two bodies runs the second for zero") {
  Choosers::get();
  Words words(2);
  TestStream stream;
  TestGraph graph;
  const auto handle = create_handle(graph);
  const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_IF, 2,
                         {add_choose(graph, handle, words.at(0))});
  add_scale(node.bodies[0], words.at(1), 1);
  add_scale(node.bodies[1], words.at(1), 2);
  TestExec exec(graph);
  // Queued one behind the other: each sees its own value.
  for (const std::uint32_t value : {5u, 0u, 1u}) {
    store(stream, words.at(0), value);
    exec.launch(stream);
  }
  stream.sync();
  CHECK(words.read(1) == (1 * 3 + 2) * 3 + 1);
}

TEST_CASE("a while node runs its body as long as the value is not zero") {
  Choosers::get();
  Words words(2);
  TestStream stream;
  TestGraph graph;
  const auto handle = create_default(graph, 1);
  const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1);
  add_count_down(node.bodies[0], handle, words.at(0), {add_scale(node.bodies[0], words.at(1), 1)});
  TestExec exec(graph);
  std::uint32_t expected = 0;
  for (const std::uint32_t rounds : {4u, 1u, 60u}) {
    store(stream, words.at(0), rounds);
    exec.launch(stream);
    stream.sync();
    for (std::uint32_t i = 0; i < rounds; ++i) expected = expected * 3 + 1;
    CHECK(words.read() == Values{0, expected});
  }
}

TEST_CASE("a switch node runs the body of the value's number, if there is one") {
  Choosers::get();
  Words words(2);
  TestStream stream;
  TestGraph graph;
  const auto handle = create_handle(graph);
  const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 3,
                         {add_choose(graph, handle, words.at(0))});
  for (std::uint32_t i = 0; i < 3; ++i) add_store(node.bodies[i], words.at(1), 100 + i);
  TestExec exec(graph);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> cases = {
      {0, 100}, {2, 102}, {1, 101}, {3, 7}, {0xffffffffu, 7}};
  for (const auto& [value, expected] : cases) {
    store(stream, words.at(0), value);
    store(stream, words.at(1), 7);
    exec.launch(stream);
    stream.sync();
    CHECK(words.read(1) == expected);
  }
}

TEST_CASE("a default is assigned by every launch, other values stay") {
  Choosers::get();
  Words words(3);
  TestStream stream;
  TestGraph graph;
  const auto with_default = create_default(graph, 1), without = create_handle(graph, 1, 0);
  const Conditional first(graph, with_default, CU_GRAPH_COND_TYPE_IF, 1);
  add_scale(first.bodies[0], words.at(0), 1);
  const Conditional second(graph, without, CU_GRAPH_COND_TYPE_IF, 1, {first.node});
  add_scale(second.bodies[0], words.at(1), 1);
  // Behind both, for the next launch.
  const CUgraphNode chooser = add_choose(graph, with_default, words.at(2), {second.node});
  add_choose(graph, without, words.at(2), {chooser});
  TestExec exec(graph);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{1, 0, 0});
  store(stream, words.at(2), 9);
  exec.launch(stream);
  store(stream, words.at(2), 0);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{13, 1, 0});
}

TEST_CASE("conditional nodes nest, and defaults are for launches, not for rounds") {
  Choosers::get();
  Words words(5);  // rounds left, odd rounds, even rounds, first round, whether it was
  TestStream stream;
  TestGraph graph;
  const auto loop = create_default(graph, 1);
  const Conditional outer(graph, loop, CU_GRAPH_COND_TYPE_WHILE, 1);
  const CUgraph body = outer.bodies[0];
  // One handle of the whole graph and one of the body: both may be used here.
  const auto choice = create_default(body, 0), first = create_default(graph, 1);
  const Conditional once(body, first, CU_GRAPH_COND_TYPE_IF, 1);
  add_scale(once.bodies[0], words.at(3), 1);
  const CUgraphNode off = add_choose(body, first, words.at(4), {once.node});
  const CUgraphNode chooser = add_choose(body, choice, words.at(0), {off});
  const Conditional branch(body, choice, CU_GRAPH_COND_TYPE_SWITCH, 4, {chooser});
  add_scale(branch.bodies[1], words.at(1), 1);
  add_scale(branch.bodies[2], words.at(2), 1);
  TestGraph child;
  child.scale(words.at(1), 1);
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddChildGraphNode(&node, branch.bodies[3], nullptr, 0, child) == CUDA_SUCCESS);
  add_count_down(body, loop, words.at(0), {branch.node});
  TestExec exec(graph);
  for (std::uint32_t launches = 1; launches <= 2; ++launches) {
    store(stream, words.at(0), 3);
    exec.launch(stream);
    stream.sync();
    CHECK(words.read() == (launches == 1 ? Values{0, 4, 1, 1, 0} : Values{0, 40, 4, 4, 0}));
  }
}

TEST_CASE("a body holds copies, memsets, empty and disabled nodes") {
  Choosers::get();
  Words words(3);
  TestStream stream;
  TestGraph graph;
  const auto handle = create_default(graph, 1);
  const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_IF, 1);
  const CUgraph body = node.bodies[0];
  const auto set = word_set(words.at(0), 6);
  CUgraphNode setting = nullptr, empty = nullptr, copying = nullptr;
  REQUIRE(cuGraphAddMemsetNode(&setting, body, nullptr, 0, &set, Gpu::get().context) ==
          CUDA_SUCCESS);
  REQUIRE(cuGraphAddEmptyNode(&empty, body, &setting, 1) == CUDA_SUCCESS);
  const auto copy = word_copy(words.at(1), words.at(0));
  REQUIRE(cuGraphAddMemcpyNode(&copying, body, &empty, 1, &copy, Gpu::get().context) ==
          CUDA_SUCCESS);
  const CUgraphNode scale = add_scale(body, words.at(1), 1, {copying});
  TestExec exec(graph);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{6, 19, 0});
  // Launches keep what they were given.
  exec.launch(stream);
  REQUIRE(cuGraphNodeSetEnabled(exec, scale, 0) == CUDA_SUCCESS);
  const auto other = word_set(words.at(0), 8);
  REQUIRE(cuGraphExecMemsetNodeSetParams(exec, setting, &other, Gpu::get().context) ==
          CUDA_SUCCESS);
  WordArguments arguments(words.at(2), 5);
  const auto params = kernel_params(Gpu::get().store, arguments.pointers);
  REQUIRE(cuGraphExecKernelNodeSetParams_v2(exec, scale, &params) == CUDA_SUCCESS);
  stream.sync();
  CHECK(words.read() == Values{6, 19, 0});
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{8, 8, 0});
  REQUIRE(cuGraphNodeSetEnabled(exec, scale, 1) == CUDA_SUCCESS);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{8, 8, 5});
}

TEST_CASE("a stream captures into a body") {
  Choosers::get();
  Words words(2);
  TestStream stream, side;
  TestEvent forked, joined;
  TestGraph graph;
  const auto handle = create_default(graph, 1);
  const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1);
  const CUgraph body = node.bodies[0];
  REQUIRE(cuStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                      CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  WordArguments scale(words.at(1), 2);
  REQUIRE(cuLaunchKernel(Gpu::get().scale, 1, 1, 1, 1, 1, 1, 0, stream, scale.pointers, nullptr) ==
          CUDA_SUCCESS);
  // What a capture into a body forbids.
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphDestroy(graph) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphDestroyNode(node.node) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuEventRecord(forked, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitEvent(side, forked, 0) == CUDA_SUCCESS);
  ChooserArguments down(handle, words.at(0));
  REQUIRE(cuLaunchKernel(Choosers::get().count_down, 1, 1, 1, 1, 1, 1, 0, side, down.pointers,
                         nullptr) == CUDA_SUCCESS);
  REQUIRE(cuEventRecord(joined, side) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitEvent(stream, joined, 0) == CUDA_SUCCESS);
  CUgraph ended = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &ended) == CUDA_SUCCESS);
  CHECK(ended == body);
  CHECK(nodes_of(body).size() == 2);
  TestExec loop(graph);
  for (int i = 0; i < 2; ++i) {
    store(stream, words.at(0), 3);
    loop.launch(stream);
  }
  stream.sync();
  CHECK(words.read() == Values{0, 728});
}

TEST_CASE("an exec with conditional nodes cannot be captured") {
  Choosers::get();
  TestStream stream;
  TestGraph graph;
  const Conditional node(graph, create_default(graph, 1), CU_GRAPH_COND_TYPE_IF, 1);
  TestExec exec(graph);
  REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(cuGraphLaunch(exec, stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph captured = nullptr;
  CHECK(cuStreamEndCapture(stream, &captured) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  exec.launch(stream);
  stream.sync();
}

TEST_CASE("a stream that captures gets a conditional node, and another one captures its body") {
  Choosers::get();
  Words words(2);
  TestStream stream, side;
  CUgraph graph = nullptr;
  REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  WordArguments first(words.at(1), 1), again(words.at(1), 2), last(words.at(1), 3);
  const auto scale = [](CUstream on, WordArguments& arguments) {
    REQUIRE(cuLaunchKernel(Gpu::get().scale, 1, 1, 1, 1, 1, 1, 0, on, arguments.pointers,
                           nullptr) == CUDA_SUCCESS);
  };
  scale(stream, first);
  CUstreamCaptureStatus status{};
  const CUgraphNode* after = nullptr;
  std::size_t count = 0;
  REQUIRE(cuStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, &after, &count) ==
          CUDA_SUCCESS);
  const auto handle = create_default(graph, 1);
  Conditional loop(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, Nodes(after, after + count));
  REQUIRE(cuStreamUpdateCaptureDependencies(stream, &loop.node, 1,
                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES) == CUDA_SUCCESS);
  REQUIRE(cuStreamBeginCaptureToGraph(side, loop.bodies[0], nullptr, nullptr, 0,
                                      CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  scale(side, again);
  ChooserArguments down(handle, words.at(0));
  REQUIRE(cuLaunchKernel(Choosers::get().count_down, 1, 1, 1, 1, 1, 1, 0, side, down.pointers,
                         nullptr) == CUDA_SUCCESS);
  CUgraph ended = nullptr;
  REQUIRE(cuStreamEndCapture(side, &ended) == CUDA_SUCCESS);
  CHECK(ended == loop.bodies[0]);
  scale(stream, last);
  REQUIRE(cuStreamEndCapture(stream, &ended) == CUDA_SUCCESS);
  REQUIRE(ended == graph);
  CHECK(nodes_of(graph).size() == 3);
  TestGraph owned(graph);
  TestExec exec(owned);
  store(stream, words.at(0), 2);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{0, ((1 * 3 + 2) * 3 + 2) * 3 + 3});
}

TEST_CASE("an exec outlives its graph, and handles die with both") {
  Choosers::get();
  Words words(2);
  TestStream stream;
  CUgraphConditionalHandle handle = 0;
  CUgraphExec exec = nullptr;
  {
    TestGraph graph;
    handle = create_handle(graph);
    const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_IF, 1,
                           {add_choose(graph, handle, words.at(0))});
    add_scale(node.bodies[0], words.at(1), 1);
    add_choose(graph, handle, words.at(0), {node.node});  // behind the last use of the value
    exec = TestExec(graph).release();
  }
  store(stream, words.at(0), 1);
  REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  // The launch has all it needs.
  REQUIRE(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  stream.sync();
  CHECK(words.read(1) == 1);
  TestGraph other;
  CHECK(add(other, conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 1)) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a graph with conditional nodes has one exec at a time") {
  Choosers::get();
  TestGraph graph;
  const Conditional node(graph, create_handle(graph), CU_GRAPH_COND_TYPE_IF, 1);
  {
    TestExec exec(graph);
    CHECK(instantiate(graph) == CUDA_GRAPH_INSTANTIATE_ERROR);
  }
  CHECK(instantiate(graph) == CUDA_GRAPH_INSTANTIATE_SUCCESS);
}

TEST_CASE("handles that cannot be created") {
  const Gpu& gpu = Gpu::get();
  TestGraph graph;
  CUgraphConditionalHandle handle = 0;
  CHECK(cuGraphConditionalHandleCreate(nullptr, graph, gpu.context, 0, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphConditionalHandleCreate(&handle, nullptr, gpu.context, 0, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphConditionalHandleCreate(&handle, graph, gpu.context, 0, 2) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphConditionalHandleCreate(&handle, graph, reinterpret_cast<CUcontext>(1), 0, 0) ==
        CUDA_ERROR_INVALID_CONTEXT);
  CHECK(handle == 0);
  // One without a node stops the instantiation.
  const CUgraphConditionalHandle unused = create_handle(graph);
  CHECK(instantiate(graph) == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  const Conditional node(graph, unused, CU_GRAPH_COND_TYPE_IF, 1);
  CHECK(instantiate(graph) == CUDA_GRAPH_INSTANTIATE_SUCCESS);
  const CUgraphConditionalHandle inner = create_handle(node.bodies[0]);
  CHECK(instantiate(graph) == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  const Conditional nested(node.bodies[0], inner, CU_GRAPH_COND_TYPE_IF, 1);
  CHECK(instantiate(graph) == CUDA_GRAPH_INSTANTIATE_SUCCESS);
}

TEST_CASE("conditional nodes that cannot be added") {
  const Gpu& gpu = Gpu::get();
  TestGraph graph, other;
  const auto handle = create_handle(graph), foreign = create_handle(other);
  const auto refused = [&](CUgraphConditionalHandle one, CUgraphConditionalNodeType type,
                           unsigned size) {
    const CUresult code = add(graph, conditional_params(one, type, size));
    CHECK(nodes_of(graph).empty());
    return code;
  };
  const CUgraphConditionalHandle dead[] = {0, 1, handle + 1000, ~CUgraphConditionalHandle{0}};
  for (const auto one : dead)
    CHECK(refused(one, CU_GRAPH_COND_TYPE_IF, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused(foreign, CU_GRAPH_COND_TYPE_IF, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused(handle, CU_GRAPH_COND_TYPE_IF, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused(handle, CU_GRAPH_COND_TYPE_IF, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused(handle, CU_GRAPH_COND_TYPE_WHILE, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused(handle, CU_GRAPH_COND_TYPE_SWITCH, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused(handle, CU_GRAPH_COND_TYPE_SWITCH, ~0u) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(refused(handle, static_cast<CUgraphConditionalNodeType>(3), 1) == CUDA_ERROR_INVALID_VALUE);
  auto params = conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 1);
  params.conditional.ctx = reinterpret_cast<CUcontext>(1);
  CHECK(add(graph, params) == CUDA_ERROR_INVALID_CONTEXT);
  CUcontext second = nullptr;
  REQUIRE(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
  params.conditional.ctx = second;
  CHECK(add(graph, params) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS);
  params = conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 1);
  params.reserved2 = 1;
  CHECK(add(graph, params) == CUDA_ERROR_INVALID_VALUE);

  // An edge that is refused leaves the handle free.
  const CUgraphNode empty = graph.empty();
  constexpr CUgraphEdgeData kPort{
      CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
  params = conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 1);
  CUgraphNode node = nullptr;
  CHECK(cuGraphAddNode_v2(&node, graph, &empty, &kPort, 1, &params) == CUDA_ERROR_INVALID_VALUE);
  params = conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 1);
  REQUIRE(cuGraphAddNode_v2(&node, graph, &empty, nullptr, 1, &params) == CUDA_SUCCESS);
  CHECK(add(graph, conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 1)) ==
        CUDA_ERROR_INVALID_VALUE);  // used twice
  // A handle of a body is not for the graph around it.
  const CUgraph body = *params.conditional.phGraph_out;
  const auto inner = create_handle(body);
  CHECK(add(graph, conditional_params(inner, CU_GRAPH_COND_TYPE_IF, 1)) ==
        CUDA_ERROR_INVALID_VALUE);
  // Parameters cannot be set.
  CHECK(cuGraphNodeSetParams(node, &params) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuGraphDestroyNode(node) == CUDA_SUCCESS);
  std::size_t count = 0;
  CHECK(cuGraphGetNodes(body, nullptr, &count) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(graph, conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 1)) == CUDA_SUCCESS);
}

TEST_CASE("graphs with conditional nodes are neither cloned nor children") {
  Gpu::get();
  TestGraph graph, parent, plain;
  const auto handle = create_handle(graph);
  const Conditional node(graph, handle, CU_GRAPH_COND_TYPE_IF, 1);
  const CUgraph body = node.bodies[0];
  CUgraph clone = nullptr;
  CHECK(cuGraphClone(&clone, graph) == CUDA_ERROR_INVALID_VALUE);
  CUgraphNode child = nullptr;
  CHECK(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, graph) == CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = graph;
  CHECK(add(parent, params) == CUDA_ERROR_INVALID_VALUE);
  // Nor does the graph of a child become one later.
  child = parent.child(plain);
  CUgraph embedded = nullptr;
  REQUIRE(cuGraphChildGraphNodeGetGraph(child, &embedded) == CUDA_SUCCESS);
  const auto late = create_handle(embedded);
  CHECK(add(embedded, conditional_params(late, CU_GRAPH_COND_TYPE_IF, 1)) ==
        CUDA_ERROR_INVALID_VALUE);
  // A body belongs to its node.
  CHECK(cuGraphDestroy(body) == CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiateWithFlags(&exec, body, 0) == CUDA_ERROR_INVALID_VALUE);
  TestExec whole(graph);
  CUgraphExecUpdateResultInfo info{};
  CHECK(cuGraphExecUpdate_v2(whole, body, &info) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("what a body may not hold stops the instantiation") {
  const Gpu& gpu = Gpu::get();
  Words words(2);
  TestEvent event;
  TestGraph graph;
  const auto handle = create_handle(graph);
  const Conditional outer(graph, handle, CU_GRAPH_COND_TYPE_IF, 1);
  const Conditional inner(outer.bodies[0], create_handle(graph), CU_GRAPH_COND_TYPE_WHILE, 1);
  CUgraphNode blamed = nullptr, node = nullptr;
  const auto check_refused = [&] {
    CHECK(instantiate(graph, &blamed) == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    CHECK(blamed == node);
    CHECK(cuGraphDestroyNode(node) == CUDA_SUCCESS);
    CHECK(instantiate(graph, &blamed) == CUDA_GRAPH_INSTANTIATE_SUCCESS);
  };
  for (const CUgraph body : {outer.bodies[0], inner.bodies[0]}) {
    const CUDA_HOST_NODE_PARAMS host{do_nothing, nullptr};
    REQUIRE(cuGraphAddHostNode(&node, body, nullptr, 0, &host) == CUDA_SUCCESS);
    check_refused();
    REQUIRE(cuGraphAddEventRecordNode(&node, body, nullptr, 0, event) == CUDA_SUCCESS);
    check_refused();
    REQUIRE(cuGraphAddEventWaitNode(&node, body, nullptr, 0, event) == CUDA_SUCCESS);
    check_refused();
    // Pageable memory is out of the device's reach.
    std::uint32_t pageable = 0;
    CUDA_MEMCPY3D copy = word_copy(words.at(0), words.at(1));
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = &pageable;
    REQUIRE(cuGraphAddMemcpyNode(&node, body, nullptr, 0, &copy, gpu.context) == CUDA_SUCCESS);
    check_refused();
    // In a child graph it is no better.
    TestGraph child;
    child.host(do_nothing, nullptr);
    CUgraphNode holder = nullptr;
    CUgraph embedded = nullptr;
    REQUIRE(cuGraphAddChildGraphNode(&holder, body, nullptr, 0, child) == CUDA_SUCCESS);
    REQUIRE(cuGraphChildGraphNodeGetGraph(holder, &embedded) == CUDA_SUCCESS);
    node = nodes_of(embedded)[0];
    check_refused();
    CHECK(cuGraphDestroyNode(holder) == CUDA_SUCCESS);
  }
  // A cycle in a body.
  const CUgraph body = inner.bodies[0];
  const CUgraphNode first = add_store(body, words.at(0), 1);
  const CUgraphNode second = add_store(body, words.at(0), 2, {first});
  REQUIRE(cuGraphAddDependencies(body, &second, &first, 1) == CUDA_SUCCESS);
  CHECK(instantiate(graph, &blamed) == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK((blamed == first || blamed == second));
  CUgraphExec exec = nullptr;
  char log[64] = "";
  CHECK(cuGraphInstantiate(&exec, graph, &blamed, log, sizeof log) == CUDA_ERROR_INVALID_VALUE);
  CHECK(std::string(log) == "the graph has a cycle");
}

TEST_CASE("a kernel of another context may not be in a body") {
  const Gpu& gpu = Gpu::get();
  TestGraph graph;
  const Conditional node(graph, create_handle(graph), CU_GRAPH_COND_TYPE_IF, 1);
  CUcontext second = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "store") == CUDA_SUCCESS);
  WordArguments arguments(0, 0);
  const CUgraphNode foreign = add_kernel(node.bodies[0], function, arguments.pointers);
  CUgraphNode blamed = nullptr;
  CHECK(instantiate(graph, &blamed) == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK(blamed == foreign);
  REQUIRE(cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS);
}

namespace {

// A while node whose body scales words[1] by `add`, words[0] times, with its own handle.
struct Loop {
  TestGraph graph;
  CUgraphConditionalHandle handle;
  Conditional node;

  Loop(const Words& words, std::uint32_t added, unsigned first, bool in_order = true)
      : handle(create_default(graph, first)), node(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1) {
    const CUgraphNode scale = add_scale(node.bodies[0], words.at(1), added);
    add_count_down(node.bodies[0], handle, words.at(0), in_order ? Nodes{scale} : Nodes{});
  }
};

}  // namespace

TEST_CASE("an update reaches bodies, handles and defaults") {
  Choosers::get();
  Words words(2);
  TestStream stream;
  Loop first(words, 1, 1);
  TestExec exec(first.graph);
  store(stream, words.at(0), 2);
  exec.launch(stream);
  {
    Loop next(words, 2, 1);
    CUgraphExecUpdateResultInfo info{};
    REQUIRE(cuGraphExecUpdate_v2(exec, next.graph, &info) == CUDA_SUCCESS);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  }
  store(stream, words.at(0), 2);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{0, (4 * 3 + 2) * 3 + 2});
  const Loop off(words, 2, 0);  // its default is zero
  CUgraphExecUpdateResultInfo info{};
  REQUIRE(cuGraphExecUpdate_v2(exec, off.graph, &info) == CUDA_SUCCESS);
  store(stream, words.at(0), 2);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{2, 44});
}

TEST_CASE("an update that a conditional node forbids changes nothing") {
  Choosers::get();
  Words words(2);
  TestStream stream;
  const Loop loop(words, 1, 1);
  TestExec exec(loop.graph);
  CUgraphExecUpdateResultInfo info{};

  TestGraph other_type;
  const Conditional branch(other_type, create_default(other_type, 1), CU_GRAPH_COND_TYPE_IF, 1);
  CHECK(cuGraphExecUpdate_v2(exec, other_type, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
  CHECK(info.errorNode == branch.node);

  const Loop loose(words, 5, 1, false);
  CHECK(cuGraphExecUpdate_v2(exec, loose.graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

  TestGraph empty;
  const CUgraphNode plain = empty.empty();
  CHECK(cuGraphExecUpdate_v2(exec, empty, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  CHECK(info.errorNode == plain);

  auto params = conditional_params(loop.handle, CU_GRAPH_COND_TYPE_WHILE, 1);
  CHECK(cuGraphExecNodeSetParams(exec, loop.node.node, &params) == CUDA_ERROR_NOT_SUPPORTED);
  unsigned enabled = 0;
  CHECK(cuGraphNodeSetEnabled(exec, loop.node.node, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphNodeGetEnabled(exec, loop.node.node, &enabled) == CUDA_ERROR_INVALID_VALUE);

  store(stream, words.at(0), 2);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == Values{0, 4});
}

TEST_CASE("a kernel that sets a handle that is not its own fails") {
  const Gpu& gpu = Gpu::get();
  TestGraph graph;
  const CUgraphConditionalHandle foreign = create_handle(graph);
  CUcontext doomed = nullptr;
  CUmodule module = nullptr;
  CUfunction choose = nullptr;
  for (const CUgraphConditionalHandle handle : {CUgraphConditionalHandle{12}, foreign}) {
    REQUIRE(cuCtxCreate_v2(&doomed, 0, 0) == CUDA_SUCCESS);
    REQUIRE(cuModuleLoadData(&module, kChoosers) == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&choose, module, "choose") == CUDA_SUCCESS);
    {
      CUdeviceptr word = 0;
      REQUIRE(cuMemAlloc_v2(&word, 4) == CUDA_SUCCESS);
      ChooserArguments arguments(handle, word);
      CHECK(cuLaunchKernel(choose, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.pointers, nullptr) ==
            CUDA_SUCCESS);
      CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    CHECK(cuCtxDestroy_v2(doomed) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS);
}

TEST_CASE("a fault in a body ends its loop and the launch") {
  const Gpu& gpu = Gpu::get();
  CUcontext doomed = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuCtxCreate_v2(&doomed, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "store") == CUDA_SUCCESS);
  TestGraph graph;
  CUgraphConditionalHandle handle = 0;
  REQUIRE(cuGraphConditionalHandleCreate(&handle, graph, doomed, 1, CU_GRAPH_COND_ASSIGN_DEFAULT) ==
          CUDA_SUCCESS);
  auto params = conditional_params(handle, CU_GRAPH_COND_TYPE_WHILE, 1);
  REQUIRE(cuCtxSetCurrent(doomed) == CUDA_SUCCESS);
  params.conditional.ctx = doomed;
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddNode(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  WordArguments arguments(8, 1);  // an address of nobody
  add_kernel(*params.conditional.phGraph_out, function, arguments.pointers);
  TestExec exec(graph);
  const CUresult launched = cuGraphLaunch(exec, nullptr);
  CHECK((launched == CUDA_SUCCESS || launched == CUDA_ERROR_ILLEGAL_ADDRESS));
  CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuCtxDestroy_v2(doomed) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS);
}

// Run by the test below only: the log is chosen before the first driver call.
TEST_CASE("conditional log child", "[.]") {
  Choosers::get();
  Words words(2);
  TestStream stream;
  const Loop loop(words, 1, 1);
  TestExec exec(loop.graph);
  store(stream, words.at(0), 2);
  exec.launch(stream);
  store(stream, words.at(0), 3);
  stream.sync();
}

TEST_CASE("every step of a conditional node has its log line, in order") {
  const std::string path = "conditional_log." + std::to_string(getpid());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("CAJETA_SOFTGPU_LOG", path.c_str(), 1);
    execl("/proc/self/exe", "softgpu_test", "conditional log child", "-o", "/dev/null",
          static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  // Sequence and kind of the lines of the only stream with kernels; what is behind is left out.
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t text = line.find(' ');
    if (line.find("kernel") == std::string::npos && line.find("while") == std::string::npos)
      continue;
    const std::size_t end = std::min(line.find(" grid"), line.size());
    lines.push_back(line.substr(text + 1, end - text - 1));
  }
  unlink(path.c_str());
  const std::string loop = "1 while condition 1 bodies 1";
  CHECK(lines == std::vector<std::string>{"0 kernel store", loop + " value 1 runs body 0",
                                          "1 kernel scale", "1 kernel count_down",
                                          loop + " value 1 runs body 0", "1 kernel scale",
                                          "1 kernel count_down", loop + " value 0 runs nothing",
                                          loop, "2 kernel store"});
}

TEST_CASE("a DOT file shows conditional nodes and their bodies") {
  Choosers::get();
  Words words(2);
  const Loop loop(words, 1, 1);
  const std::string path = "conditional_test." + std::to_string(getpid()) + ".dot";
  REQUIRE(cuGraphDebugDotPrint(loop.graph, path.c_str(),
                               CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS) == CUDA_SUCCESS);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  for (const char* part : {"CONDITIONAL\\nwhile condition", "KERNEL\\ncount_down"}) {
    CHECK(text.str().find(part) != std::string::npos);
  }
}
