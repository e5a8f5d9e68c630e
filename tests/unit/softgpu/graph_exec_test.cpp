// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiation, order of launches, updates that reach later launches only,
// updates that are refused.
#include <atomic>
#include <string>
#include <thread>

#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

namespace {

void CUDA_CB do_nothing(void*) {}

void CUDA_CB count_call(void* counter) {
  ++*static_cast<std::atomic<int>*>(counter);
}

// Counts how many are inside at once.
struct Section {
  std::atomic<int> inside{0}, most{0}, entered{0};
  static void CUDA_CB enter(void* self) {
    auto* section = static_cast<Section*>(self);
    const int now = ++section->inside;
    if (now > section->most) section->most = now;
    ++section->entered;
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
  }
  static void CUDA_CB leave(void* self) { --static_cast<Section*>(self)->inside; }
};

}  // namespace

TEST_CASE("instantiation in all its forms") {
  Gpu::get();
  TestGraph graph;
  graph.empty();
  CUgraphExec exec = nullptr;
  CUgraphNode error_node = reinterpret_cast<CUgraphNode>(1);
  char log[64] = "x";
  REQUIRE(cuGraphInstantiate(&exec, graph, &error_node, log, sizeof(log)) == CUDA_SUCCESS);
  CHECK(error_node == nullptr);
  CHECK(std::string(log).empty());
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  CHECK(cuGraphExecDestroy(exec) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuGraphInstantiate_v2(&exec, graph, nullptr, nullptr, 0) == CUDA_SUCCESS);
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);

  REQUIRE(cuGraphInstantiateWithFlags(
              &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) == CUDA_SUCCESS);
  cuuint64_t flags = 0;
  REQUIRE(cuGraphExecGetFlags(exec, &flags) == CUDA_SUCCESS);
  CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 64) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) ==
        CUDA_ERROR_NOT_SUPPORTED);

  TestStream stream;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags =
      CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  params.hUploadStream = stream;
  params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  REQUIRE(cuGraphInstantiateWithParams(&exec, graph, &params) == CUDA_SUCCESS);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
  CHECK(params.hErrNode_out == nullptr);
  REQUIRE(cuGraphExecGetFlags(exec, &flags) == CUDA_SUCCESS);
  CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  CHECK(cuGraphUpload(exec, stream) == CUDA_SUCCESS);
  CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  params.flags = 64;
  CHECK(cuGraphInstantiateWithParams(&exec, graph, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_ERROR);
  CHECK(cuGraphInstantiateWithParams(&exec, graph, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphInstantiateWithFlags(nullptr, graph, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a cycle is found at instantiation") {
  Gpu::get();
  TestGraph graph;
  const CUgraphNode root = graph.empty(), a = graph.empty({root}), b = graph.empty({a});
  REQUIRE(cuGraphAddDependencies(graph, &b, &a, 1) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  CUgraphNode error_node = nullptr;
  char log[64] = "";
  CHECK(cuGraphInstantiate_v2(&exec, graph, &error_node, log, sizeof(log)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK((error_node == a || error_node == b));
  CHECK(!std::string(log).empty());
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CHECK(cuGraphInstantiateWithParams(&exec, graph, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK((params.hErrNode_out == a || params.hErrNode_out == b));
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a launch runs its nodes in order, between the stream's other work") {
  Gpu::get();
  Words words(4);
  TestGraph graph;
  const CUgraphNode first = graph.copy(words.at(1), words.at(0));
  const CUgraphNode second = graph.set(words.at(0), 20, {first});
  graph.copy(words.at(2), words.at(0), {second});
  TestExec exec(graph);
  TestStream stream;
  REQUIRE(cuMemsetD32Async(words.at(0), 10, 1, stream) == CUDA_SUCCESS);
  exec.launch(stream);
  REQUIRE(cuMemcpyDtoDAsync_v2(words.at(3), words.at(2), 4, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD32Async(words.at(2), 30, 1, stream) == CUDA_SUCCESS);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{20, 10, 30, 20});
}

TEST_CASE("kernels of a graph run in dependency order") {
  Gpu::get();
  Words words(1);
  TestGraph graph;
  // Insertion order is not execution order.
  const CUgraphNode last = graph.scale(words.at(0), 5);
  const CUgraphNode first = graph.store(words.at(0), 2);
  const CUgraphNode middle = graph.scale(words.at(0), 1, {first});
  REQUIRE(cuGraphAddDependencies(graph, &middle, &last, 1) == CUDA_SUCCESS);
  TestExec exec(graph);
  TestStream stream;
  exec.launch(stream);
  stream.sync();
  CHECK(words.read(0) == (2 * 3 + 1) * 3 + 5);
}

TEST_CASE("embedded graphs run in place") {
  Gpu::get();
  Words words(3);
  TestGraph inner, nothing, outer;
  inner.copy(words.at(1), words.at(0));
  const CUgraphNode set = outer.set(words.at(0), 4);
  const CUgraphNode child = outer.child(inner, {set});
  const CUgraphNode idle = outer.child(nothing, {child});
  outer.copy(words.at(2), words.at(1), {idle});
  outer.set(words.at(0), 5, {child});
  TestExec exec(outer);
  TestStream stream;
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{5, 4, 4});
}

TEST_CASE("launches of one exec never overlap, also across streams") {
  Gpu::get();
  Section section;
  TestGraph graph;
  const CUgraphNode enter = graph.host(Section::enter, &section);
  graph.host(Section::leave, &section, {enter});
  TestExec exec(graph);
  TestStream a, b;
  for (int i = 0; i < 5; ++i) {
    exec.launch(a);
    exec.launch(b);
  }
  a.sync();
  b.sync();
  CHECK(section.entered == 10);
  CHECK(section.most == 1);
}

TEST_CASE("a change of parameters reaches later launches only") {
  const Gpu& gpu = Gpu::get();
  Words words(8);
  TestGraph graph;
  const CUgraphNode set = graph.set(words.at(0), 1);
  const CUgraphNode copy = graph.copy(words.at(1), words.at(0), {set});
  const CUgraphNode kernel = graph.store(words.at(2), 1, {copy});
  TestExec exec(graph);
  TestStream stream;
  exec.launch(stream);
  const auto next_set = word_set(words.at(0), 2);
  const auto next_copy = word_copy(words.at(3), words.at(0));
  WordArguments arguments(words.at(4), 2);
  const auto next_kernel = kernel_params(gpu.store, arguments.pointers);
  REQUIRE(cuGraphExecMemsetNodeSetParams(exec, set, &next_set, gpu.context) == CUDA_SUCCESS);
  REQUIRE(cuGraphExecMemcpyNodeSetParams(exec, copy, &next_copy, gpu.context) == CUDA_SUCCESS);
  REQUIRE(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &next_kernel) == CUDA_SUCCESS);
  arguments.word = 0;  // copied by the call
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{1, 1, 1, 0, 0, 0, 0, 0});
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{2, 1, 1, 2, 2, 0, 0, 0});
  // The source graph kept what it had.
  TestExec again(graph);
  again.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{1, 1, 1, 2, 2, 0, 0, 0});
}

TEST_CASE("a change of function, shape and old-style parameters") {
  const Gpu& gpu = Gpu::get();
  Words words(2);
  TestGraph graph;
  const CUgraphNode node = graph.store(words.at(0), 6);
  TestExec exec(graph);
  TestStream stream;
  exec.launch(stream);
  WordArguments arguments(words.at(0), 2);
  const CUDA_KERNEL_NODE_PARAMS_v1 params{gpu.scale,          1,      1, 1, 1, 1, 1, 0,
                                          arguments.pointers, nullptr};
  REQUIRE(cuGraphExecKernelNodeSetParams(exec, node, &params) == CUDA_SUCCESS);
  exec.launch(stream);
  struct {
    CUdeviceptr to, from;
  } packed{words.at(1), words.at(0)};
  std::size_t size = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  auto mix = kernel_params(gpu.mix, nullptr);
  mix.extra = extra;
  REQUIRE(cuGraphExecKernelNodeSetParams_v2(exec, node, &mix) == CUDA_SUCCESS);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{20, 20});
}

TEST_CASE("a kernel of a library runs in the context that the node names") {
  const Gpu& gpu = Gpu::get();
  Words words(2);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  REQUIRE(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          CUDA_SUCCESS);
  REQUIRE(cuLibraryGetKernel(&kernel, library, "store") == CUDA_SUCCESS);
  TestGraph graph;
  WordArguments arguments(words.at(0), 4);
  auto params = kernel_params(nullptr, arguments.pointers);
  params.kern = kernel;
  CUgraphNode named = nullptr, current = nullptr;
  params.ctx = gpu.context;
  REQUIRE(cuGraphAddKernelNode_v2(&named, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  params.ctx = nullptr;  // the caller's
  arguments.word = words.at(1);
  REQUIRE(cuGraphAddKernelNode_v2(&current, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS_v2 got{};
  REQUIRE(cuGraphKernelNodeGetParams_v2(named, &got) == CUDA_SUCCESS);
  CHECK(got.func != nullptr);
  CHECK(got.ctx == gpu.context);
  {
    TestExec exec(graph);
    arguments.value = 5;
    REQUIRE(cuGraphExecKernelNodeSetParams_v2(exec, current, &params) == CUDA_SUCCESS);
    TestStream stream;
    exec.launch(stream);
    stream.sync();
  }
  CHECK(words.read() == std::vector<std::uint32_t>{4, 5});
  params.ctx = reinterpret_cast<CUcontext>(0x1234);
  CHECK(cuGraphAddKernelNode_v2(&named, graph, nullptr, 0, &params) == CUDA_ERROR_INVALID_CONTEXT);
  params.ctx = nullptr;
  params.kern = reinterpret_cast<CUkernel>(0x1234);
  CHECK(cuGraphAddKernelNode_v2(&named, graph, nullptr, 0, &params) != CUDA_SUCCESS);
  REQUIRE(cuLibraryUnload(library) == CUDA_SUCCESS);
}

TEST_CASE("many threads build, change and launch graphs of their own") {
  Gpu::get();
  constexpr std::uint32_t kThreads = 4, kRounds = 20;
  Words words(kThreads);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread, gpu = &Gpu::get()] {
      const auto expect = [&](CUresult code) { failures += code != CUDA_SUCCESS ? 1 : 0; };
      expect(cuCtxSetCurrent(gpu->context));
      CUstream stream = nullptr;
      CUgraph graph = nullptr;
      CUgraphExec exec = nullptr;
      CUgraphNode node = nullptr;
      expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      expect(cuGraphCreate(&graph, 0));
      WordArguments arguments(words.at(thread), 0);
      const auto params = kernel_params(gpu->scale, arguments.pointers);
      expect(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params));
      expect(cuGraphInstantiateWithFlags(&exec, graph, 0));
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        arguments.value = round;
        expect(cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
        expect(cuGraphLaunch(exec, stream));
      }
      expect(cuGraphExecDestroy(exec));
      expect(cuGraphDestroy(graph));
      expect(cuStreamSynchronize(stream));
      expect(cuStreamDestroy_v2(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  std::uint32_t expected = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) expected = expected * 3 + round;
  CHECK(words.read() == std::vector<std::uint32_t>(kThreads, expected));
}

TEST_CASE("an exec's node is named by a node that its graph still has") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  TestGraph graph, other;
  const CUgraphNode node = graph.store(words.at(0), 1);
  TestExec exec(graph);
  const CUgraphNode added_later = graph.store(words.at(0), 2);
  const CUgraphNode foreign = other.store(words.at(0), 3);
  WordArguments arguments(words.at(0), 4);
  const auto params = kernel_params(gpu.store, arguments.pointers);
  CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &params) == CUDA_SUCCESS);
  CHECK(cuGraphExecKernelNodeSetParams_v2(exec, added_later, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphExecKernelNodeSetParams_v2(exec, foreign, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphExecKernelNodeSetParams_v2(nullptr, node, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuGraphDestroyNode(node) == CUDA_SUCCESS);
  CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &params) == CUDA_ERROR_INVALID_VALUE);
  // The slot of the handle may be used again; the node behind it is still not the exec's.
  const CUgraphNode reused = graph.store(words.at(0), 5);
  CHECK(cuGraphExecKernelNodeSetParams_v2(exec, reused, &params) == CUDA_ERROR_INVALID_VALUE);
  TestStream stream;
  exec.launch(stream);
  stream.sync();
  CHECK(words.read(0) == 4);
}

TEST_CASE("copy and memset nodes of an exec change within limits") {
  const Gpu& gpu = Gpu::get();
  Words words(64);
  std::uint32_t pageable[4] = {};
  TestGraph graph;
  const CUgraphNode copy = graph.copy(words.at(1), words.at(0));
  const CUgraphNode set = graph.set(words.at(0), 1);
  CUDA_MEMSET_NODE_PARAMS two_rows = word_set(words.at(8), 1, 2);
  two_rows.height = 2;
  two_rows.pitch = 16;
  CUgraphNode set_2d = nullptr;
  REQUIRE(cuGraphAddMemsetNode(&set_2d, graph, nullptr, 0, &two_rows, gpu.context) == CUDA_SUCCESS);
  TestExec exec(graph);

  auto next_copy = word_copy(words.at(3), words.at(2), 2);
  CHECK(cuGraphExecMemcpyNodeSetParams(exec, copy, &next_copy, gpu.context) == CUDA_SUCCESS);
  next_copy.Height = 2;
  next_copy.srcPitch = next_copy.dstPitch = 16;
  CHECK(cuGraphExecMemcpyNodeSetParams(exec, copy, &next_copy, gpu.context) ==
        CUDA_ERROR_INVALID_VALUE);
  next_copy = word_copy(words.at(3), words.at(2));
  next_copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  next_copy.dstHost = pageable;
  CHECK(cuGraphExecMemcpyNodeSetParams(exec, copy, &next_copy, gpu.context) ==
        CUDA_ERROR_INVALID_VALUE);
  next_copy = word_copy(words.at(3), words.at(2), 0);
  CHECK(cuGraphExecMemcpyNodeSetParams(exec, copy, &next_copy, gpu.context) ==
        CUDA_ERROR_INVALID_VALUE);

  auto next_set = word_set(words.at(4), 2, 3);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, set, &next_set, gpu.context) == CUDA_SUCCESS);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, set, &two_rows, gpu.context) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, copy, &next_set, gpu.context) ==
        CUDA_ERROR_INVALID_VALUE);
  two_rows.dst = words.at(32);
  two_rows.value = 9;
  CHECK(cuGraphExecMemsetNodeSetParams(exec, set_2d, &two_rows, gpu.context) == CUDA_SUCCESS);
  two_rows.width = 1;
  CHECK(cuGraphExecMemsetNodeSetParams(exec, set_2d, &two_rows, gpu.context) ==
        CUDA_ERROR_INVALID_VALUE);

  TestStream stream;
  exec.launch(stream);
  stream.sync();
  const auto values = words.read();
  CHECK(values[0] == 0);
  CHECK(values[6] == 2);
  CHECK(values[32] == 9);
  CHECK(values[36] == 9);
  CHECK(values[8] == 0);
}

TEST_CASE("host, event and child nodes of an exec change") {
  Gpu::get();
  Words words(2);
  std::atomic<int> first{0}, second{0};
  TestEvent unused_event, event;
  TestGraph inner, outer;
  const CUgraphNode inner_set = inner.set(words.at(0), 1);
  const CUgraphNode host = outer.host(count_call, &first);
  const CUgraphNode child = outer.child(inner);
  const CUgraphNode record = outer.record(unused_event, {host, child});
  const CUgraphNode wait = outer.wait(unused_event);
  TestExec exec(outer);
  const CUDA_HOST_NODE_PARAMS host_params{count_call, &second};
  REQUIRE(cuGraphExecHostNodeSetParams(exec, host, &host_params) == CUDA_SUCCESS);
  REQUIRE(cuGraphExecEventRecordNodeSetEvent(exec, record, event) == CUDA_SUCCESS);
  REQUIRE(cuGraphExecEventWaitNodeSetEvent(exec, wait, event) == CUDA_SUCCESS);
  CHECK(cuGraphExecEventWaitNodeSetEvent(exec, record, event) == CUDA_ERROR_INVALID_VALUE);

  TestGraph other;
  other.set(words.at(0), 8);
  REQUIRE(cuGraphExecChildGraphNodeSetParams(exec, child, other) == CUDA_SUCCESS);
  TestStream stream;
  exec.launch(stream);
  REQUIRE(cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(first == 0);
  CHECK(second == 1);
  CHECK(words.read(0) == 8);
  stream.sync();

  // The copy inside the node names nodes of the exec as well.
  CUgraph embedded = nullptr;
  REQUIRE(cuGraphChildGraphNodeGetGraph(child, &embedded) == CUDA_SUCCESS);
  CUgraphNode embedded_set = nullptr;
  REQUIRE(cuGraphNodeFindInClone(&embedded_set, inner_set, embedded) == CUDA_SUCCESS);
  const auto params = word_set(words.at(1), 3);
  REQUIRE(cuGraphExecMemsetNodeSetParams(exec, embedded_set, &params, Gpu::get().context) ==
          CUDA_SUCCESS);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, inner_set, &params, Gpu::get().context) ==
        CUDA_ERROR_INVALID_VALUE);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{8, 3});

  TestGraph longer;
  longer.set(words.at(0), 1, {longer.empty()});
  CHECK(cuGraphExecChildGraphNodeSetParams(exec, child, longer) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("generic parameters of an exec's nodes") {
  const Gpu& gpu = Gpu::get();
  Words words(2);
  TestGraph graph;
  const CUgraphNode set = graph.set(words.at(0), 1);
  const CUgraphNode kernel = graph.store(words.at(1), 1);
  TestExec exec(graph);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset = {words.at(0), 0, 5, 4, 1, 1, gpu.context};
  REQUIRE(cuGraphExecNodeSetParams(exec, set, &params) == CUDA_SUCCESS);
  CHECK(cuGraphExecNodeSetParams(exec, kernel, &params) == CUDA_ERROR_INVALID_VALUE);
  WordArguments arguments(words.at(1), 6);
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = gpu.store;
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = arguments.pointers;
  REQUIRE(cuGraphExecNodeSetParams(exec, kernel, &params) == CUDA_SUCCESS);
  TestStream stream;
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{5, 6});
}

TEST_CASE("a disabled node does nothing and still orders") {
  Gpu::get();
  Words words(3);
  TestGraph graph;
  const CUgraphNode set = graph.set(words.at(0), 7);
  const CUgraphNode between = graph.set(words.at(1), 7, {set});
  graph.copy(words.at(2), words.at(0), {between});
  const CUgraphNode empty = graph.empty();
  TestExec exec(graph);
  TestStream stream;
  exec.launch(stream);
  unsigned enabled = 9;
  REQUIRE(cuGraphNodeGetEnabled(exec, between, &enabled) == CUDA_SUCCESS);
  CHECK(enabled == 1);
  REQUIRE(cuGraphNodeSetEnabled(exec, between, 0) == CUDA_SUCCESS);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{7, 7, 7});
  REQUIRE(cuMemsetD32_v2(words.at(0), 0, 3) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{7, 0, 7});
  REQUIRE(cuGraphNodeGetEnabled(exec, between, &enabled) == CUDA_SUCCESS);
  CHECK(enabled == 0);
  REQUIRE(cuGraphNodeSetEnabled(exec, between, 1) == CUDA_SUCCESS);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read(1) == 7);
  CHECK(cuGraphNodeSetEnabled(exec, empty, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an exec and its graph may go while a launch is pending") {
  Gpu::get();
  Words words(2);
  TestStream stream;
  {
    TestGraph graph;
    graph.copy(words.at(1), words.at(0), {graph.set(words.at(0), 3)});
    TestExec exec(graph);
    exec.launch(stream);
  }
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{3, 3});
}

TEST_CASE("user objects outlive the exec while a launch is pending") {
  Gpu::get();
  std::atomic<int> destroyed{0}, ran{0};
  CUuserObject object = nullptr;
  REQUIRE(cuUserObjectCreate(&object, &destroyed, count_call, 1,
                             CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) == CUDA_SUCCESS);
  TestStream stream;
  {
    TestGraph graph;
    graph.host(do_nothing, nullptr, {graph.host(count_call, &ran)});
    REQUIRE(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
    TestExec exec(graph);
    exec.launch(stream);
    if (is_late()) CHECK(ran == 0);
  }
  if (is_late()) CHECK(destroyed == 0);
  stream.sync();
  while (destroyed == 0)
    std::this_thread::yield();  // the test's time limit ends a destructor that never comes
  CHECK(ran == 1);
}

TEST_CASE("event nodes tie graphs and streams together") {
  Gpu::get();
  Words words(3);
  TestEvent before, after;
  TestGraph graph;
  const CUgraphNode wait = graph.wait(before);
  const CUgraphNode copy = graph.copy(words.at(1), words.at(0), {wait});
  graph.record(after, {copy});
  TestExec exec(graph);
  TestStream producer, runner, consumer;
  REQUIRE(cuMemsetD32Async(words.at(0), 6, 1, producer) == CUDA_SUCCESS);
  REQUIRE(cuEventRecord(before, producer) == CUDA_SUCCESS);
  exec.launch(runner);
  REQUIRE(cuStreamWaitEvent(consumer, after, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoDAsync_v2(words.at(2), words.at(1), 4, consumer) == CUDA_SUCCESS);
  consumer.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{6, 6, 6});
  runner.sync();
  producer.sync();
}

TEST_CASE("an empty graph and a wide one can be launched") {
  Gpu::get();
  Words words(64);
  TestGraph nothing, wide;
  const CUgraphNode root = wide.empty();
  for (unsigned i = 0; i < 64; ++i) wide.set(words.at(i), i + 1, {root});
  TestExec idle(nothing), exec(wide);
  TestStream stream;
  idle.launch(stream);
  exec.launch(stream);
  idle.launch(stream);
  stream.sync();
  const auto values = words.read();
  for (unsigned i = 0; i < 64; ++i) CHECK(values[i] == i + 1);
  CHECK(cuGraphLaunch(nullptr, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphLaunch(exec, reinterpret_cast<CUstream>(0x1234)) == CUDA_ERROR_INVALID_HANDLE);
}
