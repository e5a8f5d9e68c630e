// SPDX-License-Identifier: Apache-2.0
// Scenarios with the program's own captures and graphs between its launches.
#include "tests/programs/scenario.h"

namespace scenario {
namespace {

class Exec {
 public:
  explicit Exec(CUgraph graph) : graph_(graph) { CHECK(cuGraphInstantiate(&exec_, graph, 0)); }
  ~Exec() {
    CHECK(cuGraphExecDestroy(exec_));
    CHECK(cuGraphDestroy(graph_));
  }
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  operator CUgraphExec() const { return exec_; }

 private:
  CUgraph graph_;
  CUgraphExec exec_ = nullptr;
};

// Launches before, in and after a capture; the captured ones run only when the graph does.
void own_capture() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream stream, other(CU_STREAM_NON_BLOCKING);
  Buffer x, y;
  for (unsigned round = 0; round < 5; ++round) {
    for (unsigned i = 0; i < 4; ++i) {
      CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
      CHECK(launch(affine, {}, other, y.at(), 5U, round + i, 64));
    }
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(mix, {}, stream, x.at(), x.at(), round * i, 64));
    CHECK(launch(affine, {}, other, y.at(), 7U, round, 64));
    CUgraph graph = nullptr;
    CHECK(cuStreamEndCapture(stream, &graph));
    print("not yet mixed", x);
    std::size_t nodes = 0;
    CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
    std::printf("nodes %zu\n", nodes);
    const Exec exec(graph);
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(launch(affine, {}, stream, x.at(), 3U, i, 64));
      CHECK(cuGraphLaunch(exec, stream));
      CHECK(launch(affine, {}, stream, x.at(), 5U, i, 64));
    }
    print("x", x);
    other.wait();
    print("y", y);
  }
}

void capture_across_streams() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream a(CU_STREAM_NON_BLOCKING), b(CU_STREAM_NON_BLOCKING);
  Event fork, join;
  Buffer x, y;
  CHECK(launch(affine, {}, a, x.at(), 3U, 1U, 64));
  CHECK(launch(affine, {}, b, y.at(), 3U, 2U, 64));
  CHECK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(launch(affine, {}, a, x.at(), 5U, 1U, 64));
  CHECK(cuEventRecord(fork, a));
  CHECK(cuStreamWaitEvent(b, fork, 0));
  CHECK(launch(mix, {}, b, y.at(), y.at(), 3U, 64));
  CHECK(launch(affine, {}, a, x.at(), 7U, 1U, 64));
  CHECK(cuEventRecord(join, b));
  CHECK(cuStreamWaitEvent(a, join, 0));
  CHECK(launch(mix, {}, a, x.at(), y.at(), 4U, 64));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(a, &graph));
  const Exec exec(graph);
  for (unsigned round = 0; round < 6; ++round) {
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, b, y.at(), 3U, i, 64));
    b.wait();
    CHECK(cuGraphLaunch(exec, a));
    CHECK(launch(affine, {}, a, x.at(), 3U, round, 64));
    a.wait();
    print("x", x);
    print("y", y);
  }
}

// An event takes a stream of another context into the capture: its launches become nodes of that
// graph, one each.
void capture_across_contexts() {
  Device one;
  const CUfunction affine = one.function("affine");
  Stream a(CU_STREAM_NON_BLOCKING);
  Event fork;
  Buffer x;
  Device two;
  const CUfunction other_affine = two.function("affine");
  Stream b(CU_STREAM_NON_BLOCKING);
  Event done;
  Buffer y;
  for (unsigned round = 0; round < 5; ++round) {
    for (unsigned i = 0; i < 4; ++i) {
      CHECK(launch(other_affine, {}, b, y.at(), 3U, round + i, 64));
    }
    b.wait();
    CHECK(cuCtxSetCurrent(one.context()));
    CHECK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(launch(affine, {}, a, x.at(), 5U, round, 64));
    CHECK(cuEventRecord(fork, a));
    CHECK(cuCtxSetCurrent(two.context()));
    CHECK(cuStreamWaitEvent(b, fork, 0));
    for (unsigned i = 0; i < 4; ++i) {
      CHECK(launch(other_affine, {}, b, y.at(), 3U, round + i, 64));
    }
    CHECK(cuEventRecord(done, b));
    CHECK(cuCtxSetCurrent(one.context()));
    CHECK(cuStreamWaitEvent(a, done, 0));
    CUgraph graph = nullptr;
    CHECK(cuStreamEndCapture(a, &graph));
    std::size_t nodes = 0;
    CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
    std::printf("nodes %zu\n", nodes);
    {
      const Exec exec(graph);
      CHECK(cuGraphLaunch(exec, a));
      a.wait();
    }
    print("x", x);
    CHECK(cuCtxSetCurrent(two.context()));
    print("y", y);
  }
}

// A hand-built graph whose node is patched between launches, as libraries do.
void own_graph() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  CUdeviceptr data = x.at();
  unsigned multiply = 3, add = 1;
  int count = 64;
  void* parameters[] = {&data, &multiply, &add, &count};
  CUDA_KERNEL_NODE_PARAMS node_parameters{};
  node_parameters.func = affine;
  node_parameters.gridDimX = node_parameters.gridDimY = node_parameters.gridDimZ = 1;
  node_parameters.blockDimX = 64;
  node_parameters.blockDimY = node_parameters.blockDimZ = 1;
  node_parameters.kernelParams = parameters;
  CUgraph graph = nullptr;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode first = nullptr, second = nullptr;
  CHECK(cuGraphAddKernelNode(&first, graph, nullptr, 0, &node_parameters));
  CHECK(cuGraphAddKernelNode(&second, graph, &first, 1, &node_parameters));
  const Exec exec(graph);
  for (unsigned round = 0; round < 10; ++round) {
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 5U, round + i, 64));
    add = 100 + round;
    CHECK(cuGraphExecKernelNodeSetParams(exec, second, &node_parameters));
    CHECK(cuGraphLaunch(exec, stream));
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 7U, i, 64));
    print("x", x);
  }
}

// A capture that fails must fail the same way, and leave the launches around it alone.
void broken_capture() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream(CU_STREAM_NON_BLOCKING);
  Buffer x;
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK(launch(affine, {}, stream, x.at(), 5U, round, 64));
    std::printf("synchronize %s\n", error_name(cuStreamSynchronize(stream)));
    CUgraph graph = nullptr;
    std::printf("end %s\n", error_name(cuStreamEndCapture(stream, &graph)));
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 7U, round + i, 64));
    stream.wait();
    print("x", x);
  }
}

}  // namespace

const std::vector<Scenario> kGraphScenarios = {
    {"own_capture", own_capture},
    {"capture_across_streams", capture_across_streams},
    {"capture_across_contexts", capture_across_contexts},
    {"own_graph", own_graph},
    {"broken_capture", broken_capture},
};

}  // namespace scenario
