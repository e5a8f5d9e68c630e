// SPDX-License-Identifier: Apache-2.0
// Scenarios about the program's own captures: what each mode forbids to whom, the ways a capture
// ends or fails, and that launches queue again behind it. Every code printed is the driver's own.
#include <thread>

#include "tests/programs/scenario.h"

namespace scenario {
namespace {

void report(const char* what, CUresult result) {
  std::printf("  %s %s\n", what, error_name(result));
}

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

// A device, a stream that captures, one that does not, and a sequence that is well known on both.
struct Setting {
  Setting()
      : affine(device.function("affine")),
        captured(CU_STREAM_NON_BLOCKING),
        other(CU_STREAM_NON_BLOCKING) {}
  void run(CUstream stream, unsigned value) {
    const CUdeviceptr memory = stream == captured ? x.at() : y.at();
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, memory, 3U, value + i, 64));
  }
  void warm_up() {
    for (unsigned round = 0; round < 3; ++round) {
      run(captured, round);
      run(other, round);
      captured.wait();
      other.wait();
    }
  }
  // Prints how the capture ended, and runs what it made.
  void end() {
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(captured, &graph);
    report("end", result);
    if (result != CUDA_SUCCESS) return;
    std::size_t nodes = 0;
    CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
    std::printf("  nodes %zu\n", nodes);
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    run(captured, 50);
    CHECK(cuGraphLaunch(exec, captured));
    run(captured, 60);
    captured.wait();
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
  }
  void print_all() {
    other.wait();
    captured.wait();
    print("x", x);
    print("y", y);
    print("z", z);
  }

  Device device;
  CUfunction affine;
  Stream captured, other;
  Buffer x, y, z;  // of captured, of other, of stream 0
};

// Each call is tried in a capture of its own: from the capturing thread, or from another one.
struct Attempt {
  const char* name;
  CUresult (*call)(Setting& setting);
};

constexpr Attempt kAttempts[] = {
    {"synchronize captured", [](Setting& s) { return cuStreamSynchronize(s.captured); }},
    {"query captured", [](Setting& s) { return cuStreamQuery(s.captured); }},
    {"synchronize other", [](Setting& s) { return cuStreamSynchronize(s.other); }},
    {"synchronize context", [](Setting&) { return cuCtxSynchronize(); }},
    {"synchronize stream 0", [](Setting&) { return cuStreamSynchronize(nullptr); }},
    {"allocate and free",
     [](Setting&) {
       CUdeviceptr memory = 0;
       const CUresult result = cuMemAlloc(&memory, 256);
       return result == CUDA_SUCCESS ? cuMemFree(memory) : result;
     }},
    {"pinned memory",
     [](Setting&) {
       void* memory = nullptr;
       const CUresult result = cuMemAllocHost(&memory, 256);
       return result == CUDA_SUCCESS ? cuMemFreeHost(memory) : result;
     }},
    {"load and unload",
     [](Setting&) {
       CUmodule module = nullptr;
       const CUresult result = cuModuleLoadData(&module, kScenarioPtx);
       return result == CUDA_SUCCESS ? cuModuleUnload(module) : result;
     }},
    {"create and destroy a stream",
     [](Setting&) {
       CUstream stream = nullptr;
       const CUresult result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
       return result == CUDA_SUCCESS ? cuStreamDestroy(stream) : result;
     }},
    {"launch on other",
     [](Setting& s) { return launch(s.affine, {}, s.other, s.y.at(), 3U, 1U, 64); }},
    {"launch on stream 0",
     [](Setting& s) { return launch(s.affine, {}, nullptr, s.z.at(), 3U, 1U, 64); }},
    {"launch on captured",
     [](Setting& s) { return launch(s.affine, {}, s.captured, s.x.at(), 3U, 1U, 64); }},
    {"synchronous copy", [](Setting& s) { return cuMemsetD32(s.z.at(), 1, 8); }},
    {"callback",
     [](Setting& s) {
       return cuStreamAddCallback(
           s.captured, [](CUstream, CUresult, void*) {}, nullptr, 0);
     }},
    {"begin again",
     [](Setting& s) { return cuStreamBeginCapture(s.captured, CU_STREAM_CAPTURE_MODE_RELAXED); }},
    {"capture stream 0",
     [](Setting&) { return cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED); }},
    {"event of the capture",
     [](Setting& s) {
       const Event event;
       const CUresult result = cuEventRecord(event, s.captured);
       return result == CUDA_SUCCESS ? cuEventSynchronize(event) : result;
     }},
};

void try_all(bool in_another_thread) {
  Setting setting;
  setting.warm_up();
  for (const CUstreamCaptureMode mode : kModes) {
    std::printf("mode %d\n", static_cast<int>(mode));
    for (const Attempt& attempt : kAttempts) {
      setting.run(setting.captured, 10);  // waits while the capture begins
      setting.run(setting.other, 20);
      CHECK(cuStreamBeginCapture(setting.captured, mode));
      setting.run(setting.captured, 30);
      if (in_another_thread) {
        std::thread([&] {
          CHECK(cuCtxSetCurrent(setting.device.context()));
          report(attempt.name, attempt.call(setting));
        }).join();
      } else {
        report(attempt.name, attempt.call(setting));
      }
      setting.run(setting.other, 40);
      setting.end();
    }
    setting.print_all();
  }
  // The launches queue again.
  setting.warm_up();
  setting.print_all();
}

void forbidden_in_the_capturing_thread() {
  try_all(false);
}
void forbidden_in_another_thread() {
  try_all(true);
}

// A thread changes what captures forbid to it; the exchange is the program's own.
void exchanged_capture_mode() {
  Setting setting;
  setting.warm_up();
  for (const CUstreamCaptureMode mode : kModes) {
    CHECK(cuStreamBeginCapture(setting.captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    setting.run(setting.captured, 1);
    CUstreamCaptureMode mine = mode;
    CHECK(cuThreadExchangeStreamCaptureMode(&mine));
    std::printf("was %d\n", static_cast<int>(mine));
    setting.run(setting.other, 2);
    CUdeviceptr memory = 0;
    report("allocate", cuMemAlloc(&memory, 256));
    CHECK(cuThreadExchangeStreamCaptureMode(&mine));
    std::printf("is %d\n", static_cast<int>(mine));
    setting.end();
    if (memory != 0) CHECK(cuMemFree(memory));
    setting.warm_up();
  }
  setting.print_all();
}

// Captures that fail, and streams that go while they capture: the launches behind must queue again.
void failing_captures() {
  Setting setting;
  Event fork;
  setting.warm_up();
  for (unsigned round = 0; round < 3; ++round) {
    std::printf("unjoined\n");
    CHECK(cuStreamBeginCapture(setting.captured, kModes[round]));
    setting.run(setting.captured, round);
    CHECK(cuEventRecord(fork, setting.captured));
    CHECK(cuStreamWaitEvent(setting.other, fork, 0));
    setting.run(setting.other, round);
    setting.end();
    setting.run(setting.other, 7);

    std::printf("wrong thread\n");
    CHECK(cuStreamBeginCapture(setting.captured, kModes[round]));
    setting.run(setting.captured, round);
    std::thread([&] {
      CHECK(cuCtxSetCurrent(setting.device.context()));
      CUgraph graph = nullptr;
      report("end elsewhere", cuStreamEndCapture(setting.captured, &graph));
    }).join();
    setting.end();

    std::printf("ended on the forked stream\n");
    CHECK(cuStreamBeginCapture(setting.captured, kModes[round]));
    CHECK(cuEventRecord(fork, setting.captured));
    CHECK(cuStreamWaitEvent(setting.other, fork, 0));
    setting.run(setting.other, round);
    CUgraph graph = nullptr;
    report("end on other", cuStreamEndCapture(setting.other, &graph));
    setting.end();

    std::printf("destroyed while capturing\n");
    CUstream doomed = nullptr;
    CHECK(cuStreamCreate(&doomed, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(doomed, kModes[round]));
    CHECK(launch(setting.affine, {}, doomed, setting.x.at(), 3U, round, 64));
    report("destroy", cuStreamDestroy(doomed));

    std::printf("not begun\n");
    setting.end();
    setting.print_all();
    setting.warm_up();
    setting.print_all();
  }
}

// Nodes are added to a graph that exists, and dependencies are set by hand.
void capture_into_a_graph() {
  Setting setting;
  setting.warm_up();
  CUgraph graph = nullptr;
  CHECK(cuGraphCreate(&graph, 0));
  for (unsigned round = 0; round < 3; ++round) {
    setting.run(setting.captured, round);
    CHECK(cuStreamBeginCaptureToGraph(setting.captured, graph, nullptr, nullptr, 0,
                                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    setting.run(setting.captured, round);
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    CUgraph same = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    std::size_t count = 0;
    CHECK(cuStreamGetCaptureInfo(setting.captured, &status, &id, &same, &nodes, &edges, &count));
    REQUIRE(same == graph && count == 1);
    CUgraphNode first = nodes[0];
    setting.run(setting.captured, 10 + round);
    CHECK(cuStreamUpdateCaptureDependencies(setting.captured, &first, nullptr, 1,
                                            CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    setting.run(setting.captured, 20 + round);
    setting.run(setting.other, 30 + round);
    CUgraph ended = nullptr;
    CHECK(cuStreamEndCapture(setting.captured, &ended));
    REQUIRE(ended == graph);
    std::size_t all = 0, edge_count = 0;
    CHECK(cuGraphGetNodes(graph, nullptr, &all));
    CHECK(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edge_count));
    std::printf("nodes %zu edges %zu\n", all, edge_count);
    CUgraphConditionalHandle handle = 0;
    report("conditional handle",
           cuGraphConditionalHandleCreate(&handle, graph, setting.device.context(), 0, 0));
  }
  CHECK(cuGraphDestroy(graph));
  setting.warm_up();
  setting.print_all();
}

// One context captures while another one queues; and a blocking stream that captures makes stream 0
// unusable, launches that waited there having been sent on before.
void capture_beside_a_queue() {
  Setting setting;
  setting.warm_up();
  Device second;
  const CUfunction affine = second.function("affine");
  Stream stream;
  Buffer z;
  for (unsigned round = 0; round < 5; ++round) {
    CHECK(cuCtxSetCurrent(setting.device.context()));
    setting.run(setting.other, round);
    CHECK(cuStreamBeginCapture(setting.captured, kModes[round % 3]));
    setting.run(setting.captured, round);
    CHECK(cuCtxSetCurrent(second.context()));
    for (unsigned repeat = 0; repeat < 3; ++repeat) {
      for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, z.at(), 3U, i, 64));
      CHECK(launch(affine, {}, nullptr, z.at(), 5U, round, 64));
      CHECK(launch(affine, {}, stream, z.at(), 7U, round, 64));
      report("elsewhere", cuStreamSynchronize(stream));
    }
    CHECK(cuCtxSetCurrent(setting.device.context()));
    setting.end();
  }
  for (unsigned round = 0; round < 4; ++round) {
    const Stream blocking;
    CHECK(launch(setting.affine, {}, nullptr, setting.y.at(), 3U, round, 64));
    CHECK(launch(setting.affine, {}, nullptr, setting.y.at(), 5U, round, 64));
    CHECK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(launch(setting.affine, {}, blocking, setting.y.at(), 3U, round, 64));
    if (round % 2 == 1) {
      report("stream 0", launch(setting.affine, {}, nullptr, setting.y.at(), 7U, round, 64));
    }
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(blocking, &graph);
    report("end", result);
    if (result == CUDA_SUCCESS) CHECK(cuGraphDestroy(graph));
    CHECK(launch(setting.affine, {}, nullptr, setting.y.at(), 9U, round, 64));
    print("y", setting.y);
  }
  setting.print_all();
  CHECK(cuCtxSetCurrent(second.context()));
  print("z", z);
}

}  // namespace

const std::vector<Scenario> kCaptureScenarios = {
    {"forbidden_in_the_capturing_thread", forbidden_in_the_capturing_thread},
    {"forbidden_in_another_thread", forbidden_in_another_thread},
    {"exchanged_capture_mode", exchanged_capture_mode},
    {"failing_captures", failing_captures},
    {"capture_into_a_graph", capture_into_a_graph},
    {"capture_beside_a_queue", capture_beside_a_queue},
};

}  // namespace scenario
