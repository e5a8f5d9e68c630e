// SPDX-License-Identifier: Apache-2.0
// Scenarios with graphs that the program builds, changes and launches between its own launches:
// none of it may be disturbed by graphs that it does not know of.
#include <array>

#include "tests/programs/scenario.h"

namespace scenario {
namespace {

void report(const char* what, CUresult result) {
  std::printf("%s %s\n", what, error_name(result));
}

// One launch of `affine` as a node.
struct AffineNode {
  AffineNode(CUfunction affine, CUdeviceptr data, unsigned multiply, unsigned add)
      : data_(data), multiply_(multiply), add_(add) {
    parameters.func = affine;
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 64;
    parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = list_;
  }
  AffineNode(const AffineNode&) = delete;
  AffineNode& operator=(const AffineNode&) = delete;

  CUDA_KERNEL_NODE_PARAMS parameters{};

 private:
  CUdeviceptr data_;
  unsigned multiply_, add_;
  int count_ = 64;
  void* list_[4] = {&data_, &multiply_, &add_, &count_};
};

// Three nodes in a chain on `data`.
struct Chain {
  Chain(CUfunction affine, CUdeviceptr data, unsigned add) {
    CHECK(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < 3; ++i) {
      const AffineNode node(affine, data, 3 + 2 * i, add + i);
      CHECK(cuGraphAddKernelNode(&nodes[i], graph, i == 0 ? nullptr : &nodes[i - 1], i == 0 ? 0 : 1,
                                 &node.parameters));
    }
  }
  ~Chain() { CHECK(cuGraphDestroy(graph)); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  CUgraph graph = nullptr;
  std::array<CUgraphNode, 3> nodes{};
};

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

void run(CUfunction affine, CUstream stream, CUdeviceptr data, unsigned value) {
  for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, data, 3U, value + i, 64));
}

// Single nodes, the whole graph, and which nodes run, all changed between launches.
void changed_execs() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream stream;
  Buffer x, y;
  Chain chain(affine, x.at(), 10);
  const CUgraphExec exec = instantiate(chain.graph);
  for (unsigned round = 0; round < 8; ++round) {
    run(affine, stream, x.at(), round);
    const AffineNode changed(affine, round % 2 == 0 ? x.at() : y.at(), 5, 100 + round);
    CHECK(cuGraphExecKernelNodeSetParams(exec, chain.nodes[1], &changed.parameters));
    CHECK(cuGraphNodeSetEnabled(exec, chain.nodes[2], round % 3 != 1));
    CHECK(cuGraphLaunch(exec, stream));
    run(affine, stream, x.at(), 20 + round);
    const Chain other(affine, round % 3 == 0 ? y.at() : x.at(), 200 + round);
    CUgraphExecUpdateResultInfo info{};
    report("update", cuGraphExecUpdate(exec, other.graph, &info));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(launch(mix, {}, stream, y.at(), x.at(), round, 64));
    unsigned enabled = 0;
    CHECK(cuGraphNodeGetEnabled(exec, chain.nodes[2], &enabled));
    std::printf("enabled %u\n", enabled);
    // One that does not fit leaves the exec as it was.
    CUgraph longer = nullptr;
    CHECK(cuGraphClone(&longer, other.graph));
    CUgraphNode more = nullptr;
    CHECK(cuGraphAddEmptyNode(&more, longer, nullptr, 0));
    report("update with another shape", cuGraphExecUpdate(exec, longer, &info));
    std::printf("reason %d\n", static_cast<int>(info.result));
    CHECK(cuGraphDestroy(longer));
    print("x", x);
    print("y", y);
  }
  CHECK(cuGraphExecDestroy(exec));
}

void clones_and_children() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream(CU_STREAM_NON_BLOCKING);
  Buffer x, y;
  for (unsigned round = 0; round < 5; ++round) {
    Chain chain(affine, x.at(), round);
    CUgraph clone = nullptr, parent = nullptr;
    CHECK(cuGraphClone(&clone, chain.graph));
    CUgraphNode in_clone = nullptr, child = nullptr, last = nullptr;
    CHECK(cuGraphNodeFindInClone(&in_clone, chain.nodes[0], clone));
    const AffineNode changed(affine, y.at(), 7, round);
    CHECK(cuGraphKernelNodeSetParams(in_clone, &changed.parameters));
    CHECK(cuGraphCreate(&parent, 0));
    CHECK(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, chain.graph));
    CHECK(cuGraphAddChildGraphNode(&last, parent, &child, 1, clone));
    const CUgraphExec exec = instantiate(parent), alone = instantiate(clone);
    run(affine, stream, x.at(), round);
    CHECK(cuGraphLaunch(exec, stream));
    run(affine, stream, y.at(), round);
    CHECK(cuGraphLaunch(alone, stream));
    run(affine, stream, x.at(), round);
    CHECK(cuGraphUpload(exec, stream));
    CHECK(cuGraphLaunch(exec, stream));
    stream.wait();
    print("x", x);
    print("y", y);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphExecDestroy(alone));
    CHECK(cuGraphDestroy(parent));
    CHECK(cuGraphDestroy(clone));
  }
}

// Graph launches between launches that wait: on the same stream, on others, on stream 0; one exec
// on two streams, which the driver keeps apart; execs destroyed while they may be running.
void graphs_between_launches() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream a, b(CU_STREAM_NON_BLOCKING);
  Event from_a, from_b;
  Buffer x, y, z;
  const Chain on_x(affine, x.at(), 1), on_y(affine, y.at(), 2), on_z(affine, z.at(), 3);
  const CUgraphExec exec_x = instantiate(on_x.graph), exec_z = instantiate(on_z.graph);
  for (unsigned round = 0; round < 8; ++round) {
    run(affine, a, x.at(), round);
    run(affine, b, z.at(), round);
    CHECK(cuGraphLaunch(exec_x, a));
    run(affine, a, x.at(), 10 + round);
    CHECK(cuGraphLaunch(exec_x, nullptr));  // joins a
    CHECK(launch(mix, {}, nullptr, y.at(), x.at(), round, 64));
    run(affine, nullptr, y.at(), round);
    const CUgraphExec shortly = instantiate(on_y.graph);
    CHECK(cuGraphLaunch(shortly, a));  // after stream 0
    CHECK(launch(affine, {}, a, y.at(), 3U, round, 64));
    CHECK(cuGraphExecDestroy(shortly));
    // The second launch of the exec waits for the first, whatever the streams.
    CHECK(cuGraphLaunch(exec_z, b));
    CHECK(cuEventRecord(from_b, b));
    CHECK(cuStreamWaitEvent(a, from_b, 0));
    run(affine, a, z.at(), 30 + round);
    CHECK(cuGraphLaunch(exec_z, a));
    CHECK(cuEventRecord(from_a, a));
    CHECK(cuStreamWaitEvent(b, from_a, 0));
    run(affine, b, z.at(), 40 + round);
    if (round % 3 == 2) {
      b.wait();
      print("x", x);
      print("y", y);
      print("z", z);
    }
  }
  CHECK(cuGraphLaunch(exec_z, b));
  CHECK(cuGraphExecDestroy(exec_z));
  CHECK(cuGraphExecDestroy(exec_x));
  b.wait();
  print("z", z);
}

}  // namespace

const std::vector<Scenario> kOwnGraphScenarios = {
    {"changed_execs", changed_execs},
    {"clones_and_children", clones_and_children},
    {"graphs_between_launches", graphs_between_launches},
};

}  // namespace scenario
