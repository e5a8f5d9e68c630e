// SPDX-License-Identifier: Apache-2.0
// Scenarios with conditional graph nodes between the program's launches. What they choose depends
// on everything launched before, so a launch that comes too late or twice takes another branch.
#include <latch>
#include <thread>

#include "tests/programs/scenario.h"

extern "C" const char kConditionalPtx[];

namespace scenario {
namespace {

void report(const char* what, CUresult result) {
  std::printf("%s %s\n", what, error_name(result));
}

// The ordinary kernels, and those that choose.
struct Kernels {
  Device device;
  CUmodule module = nullptr;
  CUfunction affine, mix, choose, one_round;

  Kernels() : affine(device.function("affine")), mix(device.function("mix")) {
    CHECK(cuModuleLoadData(&module, kConditionalPtx));
    choose = function_of(module, "choose");
    one_round = function_of(module, "one_round");
  }
  ~Kernels() { CHECK(cuModuleUnload(module)); }
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
};

template <typename... Args>
CUgraphNode add_kernel(CUgraph graph, CUgraphNode after, CUfunction function, Args... args) {
  void* list[] = {&args...};
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = function;
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = 64;
  parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.kernelParams = list;
  CUgraphNode node = nullptr;
  CHECK(cuGraphAddKernelNode(&node, graph, &after, after == nullptr ? 0 : 1, &parameters));
  return node;
}

CUgraphConditionalHandle create_handle(CUgraph graph, const Kernels& kernels, unsigned value,
                                       unsigned flags) {
  CUgraphConditionalHandle handle = 0;
  CHECK(cuGraphConditionalHandleCreate(&handle, graph, kernels.device.context(), value, flags));
  return handle;
}

struct Conditional {
  CUgraphNode node = nullptr;
  CUgraph* bodies = nullptr;  // the driver's
};

CUgraphNodeParams parameters_of(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                unsigned size, const Kernels& kernels) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = size;
  parameters.conditional.ctx = kernels.device.context();
  return parameters;
}

Conditional add_conditional(CUgraph graph, CUgraphNode after, const CUgraphNodeParams& wanted) {
  CUgraphNodeParams parameters = wanted;
  Conditional added;
  CHECK(cuGraphAddNode(&added.node, graph, &after, nullptr, after == nullptr ? 0 : 1, &parameters));
  added.bodies = parameters.conditional.phGraph_out;
  return added;
}

// Either one of two bodies on `data`, then one of three or none.
struct Branches {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;

  Branches(const Kernels& kernels, const Buffer& data) {
    CHECK(cuGraphCreate(&graph, 0));
    const CUdeviceptr at = data.at();
    const auto which = create_handle(graph, kernels, 0, 0);
    const CUgraphNode first = add_kernel(graph, nullptr, kernels.choose, which, at, 2U, 1U, 64);
    const Conditional either =
        add_conditional(graph, first, parameters_of(which, CU_GRAPH_COND_TYPE_IF, 2, kernels));
    for (unsigned i = 0; i < 2; ++i)
      add_kernel(either.bodies[i], nullptr, kernels.affine, at, 3U, 10 + i, 64);
    const auto one = create_handle(graph, kernels, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    const CUgraphNode second = add_kernel(graph, either.node, kernels.choose, one, at, 4U, 2U, 64);
    const Conditional some =
        add_conditional(graph, second, parameters_of(one, CU_GRAPH_COND_TYPE_SWITCH, 3, kernels));
    for (unsigned i = 0; i < 3; ++i) {
      CUgraphNode node = nullptr;
      for (unsigned k = 0; k <= i; ++k)
        node = add_kernel(some.bodies[i], node, kernels.affine, at, 7U, 20 + 5 * i + k, 64);
    }
    add_kernel(graph, some.node, kernels.mix, at, at, 3U, 64);
    CHECK(cuGraphInstantiate(&exec, graph, 0));
  }
  ~Branches() {
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
  }
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;
};

// On a stream of each kind: launches that wait, a graph that looks at what they did, launches of
// the kernels of its bodies, the graph again.
void conditional_branches() {
  const Kernels kernels;
  Stream blocking, free_running(CU_STREAM_NON_BLOCKING);
  const CUstream streams[] = {nullptr, blocking, free_running};
  const char* const names[] = {"legacy", "blocking", "non-blocking"};
  Buffer data[3];
  const Branches graphs[] = {{kernels, data[0]}, {kernels, data[1]}, {kernels, data[2]}};
  const auto run = [&](int s, unsigned value) {
    for (unsigned i = 0; i < 3; ++i)
      CHECK(launch(kernels.affine, {}, streams[s], data[s].at(), 3U, value + i, 64));
    const CUgraphConditionalHandle nobody = 0;
    CHECK(launch(kernels.choose, {}, streams[s], nobody, data[s].at(), 2U, value, 64));
    // The legacy and the blocking stream wait for each other.
    if (s < 2)
      CHECK(launch(kernels.mix, {}, streams[s], data[s].at(), data[1 - s].at(), value, 64));
  };
  for (unsigned round = 0; round < 6; ++round) {
    for (int s = 0; s < 3; ++s) {
      run(s, round);
      CHECK(cuGraphLaunch(graphs[s].exec, streams[s]));
      run(s, 30 + round);
      CHECK(cuGraphLaunch(graphs[s].exec, streams[s]));
      run(s, 60 + round);
    }
    free_running.wait();
    for (int s = 0; s < 3; ++s) print(names[s], data[s]);
  }
}

// A loop on `data` of as many rounds as `left` says, with a branch inside.
struct Loop {
  CUgraph graph = nullptr;
  CUgraphNode inside = nullptr;  // of the body

  Loop(const Kernels& kernels, const Buffer& left, const Buffer& data, unsigned add) {
    CHECK(cuGraphCreate(&graph, 0));
    const auto again = create_handle(graph, kernels, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    const auto which = create_handle(graph, kernels, 0, 0);
    const Conditional loop =
        add_conditional(graph, nullptr, parameters_of(again, CU_GRAPH_COND_TYPE_WHILE, 1, kernels));
    const CUgraph body = loop.bodies[0];
    inside = add_kernel(body, nullptr, kernels.affine, data.at(), 3U, add, 64);
    const CUgraphNode chooser =
        add_kernel(body, inside, kernels.choose, which, data.at(), 2U, add, 64);
    const Conditional branch =
        add_conditional(body, chooser, parameters_of(which, CU_GRAPH_COND_TYPE_IF, 1, kernels));
    add_kernel(branch.bodies[0], nullptr, kernels.mix, data.at(), data.at(), add, 64);
    add_kernel(body, branch.node, kernels.one_round, again, left.at(), data.at(), add, 64);
  }
  ~Loop() { CHECK(cuGraphDestroy(graph)); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
};

// Queued launches set how often a loop runs; its bodies are changed between launches, node by node
// and as a whole; another stream waits for it by an event.
void conditional_loops() {
  const Kernels kernels;
  Stream stream, other(CU_STREAM_NON_BLOCKING);
  Event done;
  Buffer left, data, copy;
  const Loop loop(kernels, left, data, 1);
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiate(&exec, loop.graph, 0));
  for (unsigned round = 0; round < 6; ++round) {
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(launch(kernels.affine, {}, stream, left.at(), 0U, 1 + (round + i) % 4, 1));
      CHECK(launch(kernels.affine, {}, stream, data.at(), 5U, round + i, 64));
      CHECK(cuGraphLaunch(exec, stream));
      CHECK(launch(kernels.mix, {}, stream, data.at(), left.at(), i, 64));
      CHECK(launch(kernels.affine, {}, stream, data.at(), 5U, i, 64));
    }
    CHECK(cuEventRecord(done, stream));
    CHECK(cuStreamWaitEvent(other, done, 0));
    CHECK(launch(kernels.mix, {}, other, copy.at(), data.at(), round, 64));
    const CUgraphConditionalHandle nobody = 0;
    CHECK(launch(kernels.one_round, {}, other, nobody, copy.at() + 4, copy.at(), round, 1));
    other.wait();
    print("copy", copy);

    const unsigned multiply = 9, add = 50 + round;
    const int count = 64;
    const CUdeviceptr at = data.at();
    const void* list[] = {&at, &multiply, &add, &count};
    CUDA_KERNEL_NODE_PARAMS changed{};
    changed.func = kernels.affine;
    changed.gridDimX = changed.gridDimY = changed.gridDimZ = 1;
    changed.blockDimX = 64;
    changed.blockDimY = changed.blockDimZ = 1;
    changed.kernelParams = const_cast<void**>(list);
    CHECK(cuGraphExecKernelNodeSetParams(exec, loop.inside, &changed));
    if (round % 2 == 1) {
      const Loop next(kernels, left, data, 10 + round);
      CUgraphExecUpdateResultInfo info{};
      CHECK(cuGraphExecUpdate(exec, next.graph, &info));
    }
    print("data", data);
    print("left", left);
  }
  CHECK(cuGraphExecDestroy(exec));
}

// A body is filled by capturing while another thread goes on launching, whose launches must not
// become part of it, nor wait for it.
void conditional_body_captured() {
  const Kernels kernels;
  Stream stream(CU_STREAM_NON_BLOCKING), other(CU_STREAM_NON_BLOCKING);
  Buffer left, data, more;
  const auto run = [&](CUstream on, const Buffer& buffer, unsigned value) {
    for (unsigned i = 0; i < 4; ++i)
      CHECK(launch(kernels.affine, {}, on, buffer.at(), 3U, value + i, 64));
  };
  for (unsigned round = 0; round < 5; ++round) {
    CUgraph graph = nullptr, captured = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    const auto again = create_handle(graph, kernels, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    const Conditional loop =
        add_conditional(graph, nullptr, parameters_of(again, CU_GRAPH_COND_TYPE_WHILE, 1, kernels));
    run(stream, data, round);
    std::latch begun(1), launched(1), ended(1);
    std::thread thread([&] {
      CHECK(cuCtxSetCurrent(kernels.device.context()));
      run(other, more, round);
      begun.wait();
      run(other, more, 10 + round);
      run(other, more, 20 + round);
      launched.count_down();
      ended.wait();
      run(other, more, 30 + round);
      other.wait();
    });
    CHECK(cuStreamBeginCaptureToGraph(
        stream, loop.bodies[0], nullptr, nullptr, 0,
        round % 2 == 0 ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    begun.count_down();
    run(stream, data, 40 + round);
    launched.wait();
    CHECK(launch(kernels.one_round, {}, stream, again, left.at(), data.at(), round, 64));
    CHECK(cuStreamEndCapture(stream, &captured));
    ended.count_down();
    REQUIRE(captured == loop.bodies[0]);
    std::size_t nodes = 0;
    CHECK(cuGraphGetNodes(captured, nullptr, &nodes));
    std::printf("nodes %zu\n", nodes);
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (unsigned i = 0; i < 3; ++i) {
      run(stream, data, 50 + i);
      CHECK(launch(kernels.affine, {}, stream, left.at(), 0U, 1 + i, 1));
      CHECK(cuGraphLaunch(exec, stream));
    }
    run(stream, data, 60 + round);
    CHECK(cuGraphExecDestroy(exec));  // while it may be running
    CHECK(cuGraphDestroy(graph));
    thread.join();
    stream.wait();
    print("data", data);
    print("more", more);
  }
}

// As frameworks do it: the program adds the node to the graph that a stream is capturing, and
// another stream captures its body meanwhile. A third one has launches that wait.
void conditional_in_a_capture() {
  const Kernels kernels;
  Stream outer(CU_STREAM_NON_BLOCKING), inner(CU_STREAM_NON_BLOCKING);
  Stream other(CU_STREAM_NON_BLOCKING);
  Buffer left, data, more;
  const auto run = [&](CUstream on, const Buffer& buffer, unsigned value) {
    for (unsigned i = 0; i < 4; ++i)
      CHECK(launch(kernels.affine, {}, on, buffer.at(), 3U, value + i, 64));
  };
  for (unsigned round = 0; round < 5; ++round) {
    run(outer, data, round);
    run(other, more, round);
    CHECK(cuStreamBeginCapture(outer, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    run(outer, data, 10 + round);
    CUstreamCaptureStatus status{};
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    std::size_t count = 0;
    CHECK(cuStreamGetCaptureInfo(outer, &status, nullptr, &graph, &nodes, &edges, &count));
    REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count == 1);
    const auto again = create_handle(graph, kernels, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    Conditional loop = add_conditional(graph, nodes[0],
                                       parameters_of(again, CU_GRAPH_COND_TYPE_WHILE, 1, kernels));
    CHECK(cuStreamUpdateCaptureDependencies(outer, &loop.node, nullptr, 1,
                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    CHECK(cuStreamBeginCaptureToGraph(inner, loop.bodies[0], nullptr, nullptr, 0,
                                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    run(inner, data, 20 + round);
    run(other, more, 30 + round);
    CHECK(launch(kernels.one_round, {}, inner, again, left.at(), data.at(), round, 64));
    CUgraph captured = nullptr;
    CHECK(cuStreamEndCapture(inner, &captured));
    run(outer, data, 40 + round);
    CHECK(cuStreamEndCapture(outer, &captured));
    REQUIRE(captured == graph);
    CHECK(cuGraphGetNodes(graph, nullptr, &count));
    std::printf("nodes %zu\n", count);
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(launch(kernels.affine, {}, outer, left.at(), 0U, 1 + (round + i) % 3, 1));
      run(outer, data, 50 + round);
      CHECK(cuGraphLaunch(exec, outer));
    }
    run(outer, data, 60 + round);
    run(other, more, 60 + round);
    outer.wait();
    other.wait();
    print("data", data);
    print("more", more);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
  }
}

// What the driver refuses, with launches waiting: the codes are its own, and nothing else happens.
void conditional_refusals() {
  const Kernels kernels;
  Stream stream(CU_STREAM_NON_BLOCKING);
  Buffer data;
  CUgraph graph = nullptr, other = nullptr, clone = nullptr, captured = nullptr;
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphCreate(&other, 0));
  const auto run = [&](unsigned value) {
    for (unsigned i = 0; i < 4; ++i)
      CHECK(launch(kernels.affine, {}, stream, data.at(), 3U, value + i, 64));
  };
  const auto handle = create_handle(graph, kernels, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const auto wanted = [&](unsigned size) {
    return parameters_of(handle, CU_GRAPH_COND_TYPE_IF, size, kernels);
  };
  const auto try_to_add = [&](const char* what, CUgraph to, CUgraphNodeParams parameters) {
    run(1);
    CUgraphNode node = nullptr;
    report(what, cuGraphAddNode(&node, to, nullptr, nullptr, 0, &parameters));
  };
  CUgraphExec exec = nullptr, second = nullptr;
  report("handle without a node", cuGraphInstantiate(&exec, graph, 0));
  try_to_add("three bodies", graph, wanted(3));
  try_to_add("handle of another graph", other, wanted(1));
  const Conditional node = add_conditional(graph, nullptr, wanted(1));
  try_to_add("handle used twice", graph, wanted(1));
  run(2);
  report("clone", cuGraphClone(&clone, graph));
  CUgraphNode child = nullptr, host = nullptr;
  report("child", cuGraphAddChildGraphNode(&child, other, nullptr, 0, graph));
  add_kernel(node.bodies[0], nullptr, kernels.affine, data.at(), 5U, 3U, 64);
  const CUDA_HOST_NODE_PARAMS nothing{[](void*) {}, nullptr};
  if (cuGraphAddHostNode(&host, node.bodies[0], nullptr, 0, &nothing) == CUDA_SUCCESS) {
    run(3);
    report("host node in a body", cuGraphInstantiate(&exec, graph, 0));
    CHECK(cuGraphDestroyNode(host));
  }
  report("flags", cuGraphConditionalHandleCreate(nullptr, graph, kernels.device.context(), 0, 8));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  report("second exec", cuGraphInstantiate(&second, graph, 0));
  run(4);
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  report("captured launch", cuGraphLaunch(exec, stream));
  report("end", cuStreamEndCapture(stream, &captured));
  for (unsigned round = 0; round < 4; ++round) {
    run(round);
    CHECK(cuGraphLaunch(exec, stream));
    run(10 + round);
    stream.wait();
    print("data", data);
  }
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(other));
  CHECK(cuGraphDestroy(graph));
}

}  // namespace

const std::vector<Scenario> kConditionalScenarios = {
    {"conditional_branches", conditional_branches},
    {"conditional_loops", conditional_loops},
    {"conditional_body_captured", conditional_body_captured},
    {"conditional_in_a_capture", conditional_in_a_capture},
    {"conditional_refusals", conditional_refusals},
};

}  // namespace scenario
