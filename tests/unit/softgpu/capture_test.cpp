// SPDX-License-Identifier: Apache-2.0
// Stream capture: what becomes a node, forks and joins, which calls are refused in which mode and
// with which code, and that a captured program does what the program does.
#include <functional>
#include <thread>

#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

namespace {

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

void CUDA_CB do_nothing(void*) {}
void CUDA_CB ignore(CUstream, CUresult, void*) {}

void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  REQUIRE(cuStreamBeginCapture_v2(stream, mode) == CUDA_SUCCESS);
}

CUgraph end(CUstream stream) {
  CUgraph graph = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(graph != nullptr);
  return graph;
}

// What cuStreamEndCapture says to a capture that went wrong.
CUresult failed_end(CUstream stream) {
  CUgraph graph = reinterpret_cast<CUgraph>(1);
  const CUresult code = cuStreamEndCapture(stream, &graph);
  CHECK(graph == nullptr);
  return code;
}

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status{};
  REQUIRE(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  return status;
}

void set(CUstream stream, CUdeviceptr word, std::uint32_t value) {
  REQUIRE(cuMemsetD32Async(word, value, 1, stream) == CUDA_SUCCESS);
}

void copy(CUstream stream, CUdeviceptr to, CUdeviceptr from) {
  REQUIRE(cuMemcpyDtoDAsync_v2(to, from, 4, stream) == CUDA_SUCCESS);
}

void order(CUstream later, CUstream earlier, CUevent event) {
  REQUIRE(cuEventRecord(event, earlier) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitEvent(later, event, 0) == CUDA_SUCCESS);
}

CUresult in_other_thread(const std::function<CUresult()>& call) {
  const CUcontext context = Gpu::get().context;
  CUresult code = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    code = cuCtxSetCurrent(context);
    if (code == CUDA_SUCCESS) code = call();
  }).join();
  return code;
}

CUresult allocate() {
  CUdeviceptr address = 0;
  const CUresult code = cuMemAlloc_v2(&address, 64);
  if (code == CUDA_SUCCESS) cuMemFree_v2(address);
  return code;
}

}  // namespace

TEST_CASE("captured work does not run; its graph does, as often as launched") {
  const Gpu& gpu = Gpu::get();
  Words words(4);
  TestStream stream;
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  begin(stream);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  set(stream, words.at(0), 5);
  copy(stream, words.at(1), words.at(0));
  {  // the arguments are gone before the launch
    WordArguments arguments(words.at(2), 4);
    REQUIRE(cuLaunchKernel(gpu.scale, 1, 1, 1, 1, 1, 1, 0, stream, arguments.pointers, nullptr) ==
            CUDA_SUCCESS);
  }
  REQUIRE(cuLaunchHostFunc(stream, do_nothing, nullptr) == CUDA_SUCCESS);
  TestGraph graph(end(stream));
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(words.read() == std::vector<std::uint32_t>{0, 0, 0, 0});

  const auto nodes = nodes_of(graph);
  REQUIRE(nodes.size() == 4);
  CHECK(type_of(nodes[0]) == CU_GRAPH_NODE_TYPE_MEMSET);
  CHECK(type_of(nodes[1]) == CU_GRAPH_NODE_TYPE_MEMCPY);
  CHECK(type_of(nodes[2]) == CU_GRAPH_NODE_TYPE_KERNEL);
  CHECK(type_of(nodes[3]) == CU_GRAPH_NODE_TYPE_HOST);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    CHECK(dependencies_of(nodes[i]) == std::vector<CUgraphNode>{nodes[i - 1]});
  }
  TestExec exec(graph);
  exec.launch(stream);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{5, 5, 16, 0});
}

TEST_CASE("a kernel node has the priority of the stream it was captured from") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  int least = 0, greatest = 0;
  REQUIRE(cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS);
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest) == CUDA_SUCCESS);
  begin(stream);
  WordArguments arguments(words.at(0), 1);
  REQUIRE(cuLaunchKernel(gpu.store, 1, 1, 1, 1, 1, 1, 0, stream, arguments.pointers, nullptr) ==
          CUDA_SUCCESS);
  TestGraph graph(end(stream));
  CUlaunchAttributeValue value{};
  REQUIRE(cuGraphKernelNodeGetAttribute(nodes_of(graph)[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) ==
          CUDA_SUCCESS);
  CHECK(value.priority == greatest);
  REQUIRE(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
}

TEST_CASE("a launch that may overlap its predecessor is captured with a programmatic edge") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  TestStream stream;
  WordArguments arguments(words.at(0), 2);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream, &attribute, 1};
  begin(stream);
  set(stream, words.at(0), 1);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(cuLaunchKernelEx(&config, gpu.scale, arguments.pointers, nullptr) == CUDA_SUCCESS);
  }
  TestGraph graph(end(stream));
  CUgraphNode from[2], to[2];
  CUgraphEdgeData data[2];
  std::size_t count = 2;
  REQUIRE(cuGraphGetEdges_v2(graph, from, to, data, &count) == CUDA_SUCCESS);
  REQUIRE(count == 2);
  CHECK(data[0].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);  // after a memset
  CHECK(data[1].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  CHECK(data[1].from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  TestExec exec(graph);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read(0) == (1 * 3 + 2) * 3 + 2);
}

TEST_CASE("an event forks a capture into another stream and joins it back") {
  Gpu::get();
  Words words(4);
  TestStream origin, side;
  TestEvent fork, join;
  begin(origin);
  set(origin, words.at(0), 1);
  order(side, origin, fork);
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  copy(side, words.at(1), words.at(0));
  copy(origin, words.at(2), words.at(0));
  order(origin, side, join);
  copy(origin, words.at(3), words.at(1));
  TestGraph graph(end(origin));
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  const auto nodes = nodes_of(graph);
  REQUIRE(nodes.size() == 4);
  CHECK(dependencies_of(nodes[1]) == std::vector<CUgraphNode>{nodes[0]});
  CHECK(dependencies_of(nodes[2]) == std::vector<CUgraphNode>{nodes[0]});
  CHECK(dependencies_of(nodes[3]).size() == 2);
  // The events belong to a capture for good, until they are recorded again.
  CHECK(cuEventQuery(fork) == CUDA_ERROR_CAPTURED_EVENT);
  CHECK(cuEventSynchronize(join) == CUDA_ERROR_CAPTURED_EVENT);
  CHECK(cuStreamWaitEvent(side, fork, 0) == CUDA_ERROR_CAPTURED_EVENT);
  REQUIRE(cuEventRecord(fork, side) == CUDA_SUCCESS);
  CHECK(cuEventSynchronize(fork) == CUDA_SUCCESS);

  TestExec exec(graph);
  exec.launch(side);
  side.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{1, 1, 1, 1});
}

TEST_CASE("work that is not joined fails the capture") {
  Gpu::get();
  Words words(2);
  TestStream origin, side;
  TestEvent fork;
  begin(origin);
  set(origin, words.at(0), 1);
  order(side, origin, fork);
  SECTION("a fork with work") {
    set(side, words.at(1), 1);
    CHECK(failed_end(origin) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
  SECTION("a fork without work has nothing to join") {
    TestGraph graph(end(origin));
  }
  SECTION("joined to the origin's last work only") {
    TestEvent join;
    set(side, words.at(1), 1);
    order(origin, side, join);
    TestGraph graph(end(origin));  // no work after the join is needed
    CHECK(nodes_of(graph).size() == 2);
  }
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  set(side, words.at(1), 2);
  side.sync();
  CHECK(words.read(1) == 2);
}

TEST_CASE("dependencies may not cross the border of a capture") {
  Gpu::get();
  Words words(2);
  TestStream a, b;
  TestEvent event;
  SECTION("waiting for work outside") {
    set(b, words.at(0), 1);
    REQUIRE(cuEventRecord(event, b) == CUDA_SUCCESS);
    begin(a);
    CHECK(cuStreamWaitEvent(a, event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK(status_of(a) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(cuMemsetD32Async(words.at(0), 1, 1, a) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(cuEventRecord(event, a) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(failed_end(a) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("waiting for work outside on purpose") {
    begin(a);
    REQUIRE(cuStreamWaitEvent(a, event, CU_EVENT_WAIT_EXTERNAL) == CUDA_SUCCESS);
    copy(a, words.at(1), words.at(0));
    REQUIRE(cuEventRecordWithFlags(event, a, CU_EVENT_RECORD_EXTERNAL) == CUDA_SUCCESS);
    TestGraph graph(end(a));
    const auto nodes = nodes_of(graph);
    REQUIRE(nodes.size() == 3);
    CHECK(type_of(nodes[0]) == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    CHECK(type_of(nodes[2]) == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    TestExec exec(graph);
    set(b, words.at(0), 4);
    REQUIRE(cuEventRecord(event, b) == CUDA_SUCCESS);
    exec.launch(a);
    REQUIRE(cuEventSynchronize(event) == CUDA_SUCCESS);
    CHECK(words.read(1) == 4);
  }
  SECTION("merging two captures") {
    begin(a);
    begin(b);
    set(b, words.at(0), 1);
    REQUIRE(cuEventRecord(event, b) == CUDA_SUCCESS);
    CHECK(cuStreamWaitEvent(a, event, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
    CHECK(failed_end(a) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(failed_end(b) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST_CASE("begin and end of a capture are matched") {
  Gpu::get();
  Words words(1);
  TestStream origin, side, idle;
  TestEvent fork;
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(idle, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(cuStreamBeginCapture_v2(idle, static_cast<CUstreamCaptureMode>(3)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(cuStreamBeginCapture(origin) == CUDA_SUCCESS);  // the first ABI: global mode
  CHECK(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(cuStreamEndCapture(origin, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(in_other_thread([&] { return cuStreamEndCapture(origin, &graph); }) ==
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CHECK(status_of(origin) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  set(origin, words.at(0), 1);
  order(side, origin, fork);
  CHECK(failed_end(side) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(failed_end(origin) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  begin(origin, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(in_other_thread([&] { return cuStreamEndCapture(origin, &graph); }) == CUDA_SUCCESS);
  TestGraph owned(graph);
  CHECK(nodes_of(graph).empty());
}

TEST_CASE("a call that conflicts with a capture is refused in every mode") {
  Gpu::get();
  Words words(1);
  TestEvent event;
  TestGraph empty;
  TestExec exec(empty);
  struct Conflict {
    const char* name;
    std::function<CUresult(CUstream)> call;
    CUresult code;
  };
  const Conflict conflicts[] = {
      {"cuStreamSynchronize", [](CUstream s) { return cuStreamSynchronize(s); },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {"cuStreamQuery", [](CUstream s) { return cuStreamQuery(s); },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {"cuCtxSynchronize", [](CUstream) { return cuCtxSynchronize(); },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {"cuStreamAddCallback", [](CUstream s) { return cuStreamAddCallback(s, ignore, nullptr, 0); },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {"cuGraphUpload", [&](CUstream s) { return cuGraphUpload(exec, s); },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {"cuEventQuery",
       [&](CUstream s) {
         CHECK(cuEventRecord(event, s) == CUDA_SUCCESS);
         return cuEventQuery(event);
       },
       CUDA_ERROR_CAPTURED_EVENT},
      {"cuEventSynchronize",
       [&](CUstream s) {
         CHECK(cuEventRecord(event, s) == CUDA_SUCCESS);
         return cuEventSynchronize(event);
       },
       CUDA_ERROR_CAPTURED_EVENT},
  };
  for (const CUstreamCaptureMode mode : kModes) {
    for (const Conflict& conflict : conflicts) {
      INFO(conflict.name << " in mode " << mode);
      TestStream stream;
      begin(stream, mode);
      set(stream, words.at(0), 1);
      CHECK(conflict.call(stream) == conflict.code);
      CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
      CHECK(failed_end(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      set(stream, words.at(0), 2);
      stream.sync();
    }
  }
  CHECK(words.read(0) == 2);
}

TEST_CASE("the legacy stream is unusable while a blocking stream captures") {
  Gpu::get();
  Words words(1);
  for (const CUstreamCaptureMode mode : kModes) {
    INFO("mode " << mode);
    TestStream blocking(CU_STREAM_DEFAULT), free_stream(CU_STREAM_NON_BLOCKING);
    begin(free_stream, mode);
    set(nullptr, words.at(0), 1);
    CHECK(status_of(nullptr) == CU_STREAM_CAPTURE_STATUS_NONE);
    TestGraph nothing(end(free_stream));

    begin(blocking, mode);
    CUstreamCaptureStatus status{};
    CHECK(cuStreamIsCapturing(nullptr, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);  // asking does no harm
    CHECK(cuMemsetD32Async(words.at(0), 2, 1, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(failed_end(blocking) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    set(nullptr, words.at(0), 3);
  }
  TestStream blocking(CU_STREAM_DEFAULT);
  TestEvent event;
  TestGraph empty;
  TestExec exec(empty);
  const std::function<CUresult()> legacy_calls[] = {
      [&] { return cuStreamSynchronize(nullptr); },
      [&] { return cuEventRecord(event, nullptr); },
      [&] { return cuGraphLaunch(exec, nullptr); },
      [&] { return cuMemsetD32_v2(words.at(0), 1, 1); },
      [&] { return cuMemcpyDtoD_v2(words.at(0), words.at(0), 4); },
  };
  for (const auto& call : legacy_calls) {
    begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK(call() == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(failed_end(blocking) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(words.read(0) == 3);
}

TEST_CASE("unsafe calls depend on the modes of thread and capture") {
  Gpu::get();
  TestEvent recorded;
  TestStream stream, outside;
  REQUIRE(cuEventRecord(recorded, outside) == CUDA_SUCCESS);
  outside.sync();
  const auto relaxed = [](const std::function<CUresult()>& call) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
    const CUresult code = call();
    if (cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
    return mode == CU_STREAM_CAPTURE_MODE_RELAXED ? code : CUDA_ERROR_UNKNOWN;
  };
  const auto thread_local_mode = [](const std::function<CUresult()>& call) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    cuThreadExchangeStreamCaptureMode(&mode);
    const CUresult code = call();
    cuThreadExchangeStreamCaptureMode(&mode);
    return code;
  };
  const auto query = [&] { return cuEventQuery(recorded); };
  struct Case {
    CUstreamCaptureMode capture;
    std::function<CUresult()> call;
    bool is_allowed;
  };
  const Case cases[] = {
      {CU_STREAM_CAPTURE_MODE_GLOBAL, allocate, false},
      {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, allocate, false},
      {CU_STREAM_CAPTURE_MODE_RELAXED, allocate, true},
      {CU_STREAM_CAPTURE_MODE_GLOBAL, query, false},
      {CU_STREAM_CAPTURE_MODE_RELAXED, query, true},
      {CU_STREAM_CAPTURE_MODE_GLOBAL, [&] { return relaxed(allocate); }, true},
      {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, [&] { return relaxed(allocate); }, true},
      {CU_STREAM_CAPTURE_MODE_GLOBAL, [&] { return thread_local_mode(allocate); }, false},
      {CU_STREAM_CAPTURE_MODE_GLOBAL, [&] { return in_other_thread(allocate); }, false},
      {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, [&] { return in_other_thread(allocate); }, true},
      {CU_STREAM_CAPTURE_MODE_RELAXED, [&] { return in_other_thread(allocate); }, true},
      {CU_STREAM_CAPTURE_MODE_GLOBAL,
       [&] { return in_other_thread([&] { return relaxed(allocate); }); }, true},
      {CU_STREAM_CAPTURE_MODE_GLOBAL,
       [&] { return in_other_thread([&] { return thread_local_mode(allocate); }); }, true},
  };
  int number = 0;
  for (const Case& test : cases) {
    INFO("case " << number++);
    begin(stream, test.capture);
    if (test.is_allowed) {
      CHECK(test.call() == CUDA_SUCCESS);
      TestGraph graph(end(stream));
    } else {
      CHECK(test.call() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      CHECK(failed_end(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
  }
  CUstreamCaptureMode wrong = static_cast<CUstreamCaptureMode>(3);
  CHECK(cuThreadExchangeStreamCaptureMode(&wrong) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuThreadExchangeStreamCaptureMode(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a capture can add to a graph that exists") {
  Gpu::get();
  Words words(2);
  TestStream stream;
  TestGraph graph, other;
  const CUgraphNode first = graph.set(words.at(0), 6);
  const CUgraphNode foreign = other.empty();
  CHECK(cuStreamBeginCaptureToGraph(stream, graph, &foreign, nullptr, 1,
                                    CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuStreamBeginCaptureToGraph(stream, nullptr, nullptr, nullptr, 0,
                                    CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1,
                                      CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  copy(stream, words.at(1), words.at(0));
  CUgraphExec exec_handle = nullptr;
  CHECK(cuGraphInstantiateWithFlags(&exec_handle, graph, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphDestroyNode(first) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphDestroy(graph) == CUDA_ERROR_INVALID_VALUE);
  CUgraph ended = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &ended) == CUDA_SUCCESS);
  CHECK(ended == static_cast<CUgraph>(graph));
  REQUIRE(nodes_of(graph).size() == 2);
  CHECK(dependencies_of(nodes_of(graph)[1]) == std::vector<CUgraphNode>{first});
  TestExec exec(graph);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{6, 6});

  // A capture that fails leaves the client's graph to the client.
  REQUIRE(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                      CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(failed_end(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(nodes_of(graph).size() == 2);
}

TEST_CASE("capture information in all its versions") {
  Gpu::get();
  Words words(2);
  TestStream stream;
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0, other_id = 0;
  REQUIRE(cuStreamGetCaptureInfo(stream, &status, &id) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  begin(stream);
  set(stream, words.at(0), 1);
  REQUIRE(cuStreamGetCaptureInfo(stream, &status, &id) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  const CUgraphEdgeData* data = nullptr;
  std::size_t count = 0;
  REQUIRE(cuStreamGetCaptureInfo_v2(stream, &status, &other_id, &graph, &dependencies, &count) ==
          CUDA_SUCCESS);
  CHECK(other_id == id);
  REQUIRE(count == 1);
  CHECK(dependencies[0] == nodes_of(graph)[0]);
  REQUIRE(cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &dependencies, &data,
                                    &count) == CUDA_SUCCESS);
  CHECK(data[0].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
  CHECK(cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, nullptr, &data, &count) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuStreamGetCaptureInfo(stream, nullptr, &id) == CUDA_ERROR_INVALID_VALUE);
  TestGraph owned(end(stream));
  CHECK(static_cast<CUgraph>(owned) == graph);
  begin(stream);
  REQUIRE(cuStreamGetCaptureInfo(stream, &status, &other_id) == CUDA_SUCCESS);
  CHECK(other_id != id);
  TestGraph second(end(stream));
}

TEST_CASE("a client may edit the dependencies of a capturing stream") {
  const Gpu& gpu = Gpu::get();
  Words words(3);
  TestStream stream;
  CHECK(cuStreamUpdateCaptureDependencies(stream, nullptr, 0, 0) == CUDA_ERROR_ILLEGAL_STATE);
  begin(stream);
  set(stream, words.at(0), 1);
  CUstreamCaptureStatus status{};
  CUgraph graph = nullptr;
  REQUIRE(cuStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr) ==
          CUDA_SUCCESS);
  CUgraphNode own = nullptr;  // added by hand while the capture goes on
  const auto params = word_set(words.at(1), 2);
  REQUIRE(cuGraphAddMemsetNode(&own, graph, nullptr, 0, &params, gpu.context) == CUDA_SUCCESS);
  REQUIRE(cuStreamUpdateCaptureDependencies(stream, &own, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES) ==
          CUDA_SUCCESS);
  set(stream, words.at(2), 3);
  const auto nodes = nodes_of(graph);
  REQUIRE(nodes.size() == 3);
  CHECK(dependencies_of(nodes[2]).size() == 2);
  CHECK(cuStreamUpdateCaptureDependencies(stream, &own, 1, 7) == CUDA_ERROR_INVALID_VALUE);
  TestGraph other;
  CUgraphNode foreign = other.empty();
  CHECK(cuStreamUpdateCaptureDependencies(stream, &foreign, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  // What leaves the set on purpose needs no join.
  REQUIRE(cuStreamUpdateCaptureDependencies_v2(stream, &own, nullptr, 1,
                                               CU_STREAM_SET_CAPTURE_DEPENDENCIES) == CUDA_SUCCESS);
  set(stream, words.at(0), 4);
  CHECK(dependencies_of(nodes_of(graph)[3]) == std::vector<CUgraphNode>{own});
  TestGraph owned(end(stream));
  CHECK(nodes_of(owned).size() == 4);
}

TEST_CASE("a graph launched into a capturing stream becomes a child graph node") {
  Gpu::get();
  Words words(2);
  TestStream stream;
  TestGraph inner;
  const CUgraphNode inner_set = inner.set(words.at(0), 1);
  TestExec inner_exec(inner);
  const auto changed = word_set(words.at(0), 8);
  REQUIRE(cuGraphExecMemsetNodeSetParams(inner_exec, inner_set, &changed, Gpu::get().context) ==
          CUDA_SUCCESS);
  begin(stream);
  inner_exec.launch(stream);
  copy(stream, words.at(1), words.at(0));
  TestGraph outer(end(stream));
  const auto nodes = nodes_of(outer);
  REQUIRE(nodes.size() == 2);
  CHECK(type_of(nodes[0]) == CU_GRAPH_NODE_TYPE_GRAPH);
  TestExec exec(outer);
  exec.launch(stream);
  stream.sync();
  CHECK(words.read() == std::vector<std::uint32_t>{8, 8});
}

TEST_CASE("a stream destroyed while it captures takes its capture with it") {
  Gpu::get();
  Words words(1);
  CUstream gone = nullptr;
  TestStream side;
  TestEvent fork;
  REQUIRE(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  begin(gone);
  set(gone, words.at(0), 1);
  order(side, gone, fork);
  REQUIRE(cuStreamDestroy_v2(gone) == CUDA_SUCCESS);
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(allocate() == CUDA_SUCCESS);
  set(side, words.at(0), 2);
  side.sync();
  CHECK(words.read(0) == 2);
}

TEST_CASE("the calling thread's own default stream can capture") {
  Gpu::get();
  Words words(1);
  REQUIRE(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
          CUDA_SUCCESS);
  set(CU_STREAM_PER_THREAD, words.at(0), 3);
  TestGraph graph(end(CU_STREAM_PER_THREAD));
  CHECK(nodes_of(graph).size() == 1);
  TestExec exec(graph);
  exec.launch(CU_STREAM_PER_THREAD);
  REQUIRE(cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  CHECK(words.read(0) == 3);
}
