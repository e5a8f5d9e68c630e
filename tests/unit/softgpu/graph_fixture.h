// SPDX-License-Identifier: Apache-2.0
// What the graph and capture tests share: a current context, device words, three kernels. The tests
// run once for each order policy (CAJETA_SOFTGPU_ORDER), so each must hold under all of them.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // every ABI version by its own name
#endif
#include <cuda.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/catch.h"

namespace graph_test {

inline bool is_late() {
  const char* order = std::getenv("CAJETA_SOFTGPU_ORDER");
  return order != nullptr && std::string(order) == "late";
}

// store: *word = value. scale: *word = *word * 3 + value. mix: *to = *to * 5 + *from.
inline constexpr char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 word, .param .u32 value) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [word]; ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry scale(.param .u64 word, .param .u32 value) {
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [word]; ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r2, [%rd2];
  mad.lo.u32 %r3, %r2, 3, %r1;
  st.global.u32 [%rd2], %r3;
  ret;
}
.visible .entry mix(.param .u64 to, .param .u64 from) {
  .reg .b64 %rd<5>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from];
  cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;
  ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd4];
  mad.lo.u32 %r3, %r1, 5, %r2;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";

// The primary context of device 0, current in this thread, and its kernels. Kept for the whole
// process.
struct Gpu {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction store = nullptr, scale = nullptr, mix = nullptr;

  static const Gpu& get() {
    static const Gpu gpu;
    REQUIRE(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS);
    return gpu;
  }

 private:
  Gpu() {
    REQUIRE(cuInit(0) == CUDA_SUCCESS);
    REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    REQUIRE(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&store, module, "store") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&scale, module, "scale") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&mix, module, "mix") == CUDA_SUCCESS);
  }
};

// Device memory of 32-bit words, zero at first.
class Words {
 public:
  explicit Words(std::size_t count) : count_(count) {
    REQUIRE(cuMemAlloc_v2(&address_, count * 4) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD32_v2(address_, 0, count) == CUDA_SUCCESS);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  }
  ~Words() { cuMemFree_v2(address_); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  CUdeviceptr at(std::size_t index) const { return address_ + index * 4; }
  std::vector<std::uint32_t> read() const {
    std::vector<std::uint32_t> values(count_);
    REQUIRE(cuMemcpyDtoH_v2(values.data(), address_, count_ * 4) == CUDA_SUCCESS);
    return values;
  }
  std::uint32_t read(std::size_t index) const { return read()[index]; }

 private:
  CUdeviceptr address_ = 0;
  std::size_t count_;
};

class TestStream {
 public:
  explicit TestStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    REQUIRE(cuStreamCreate(&stream_, flags) == CUDA_SUCCESS);
  }
  ~TestStream() { cuStreamDestroy_v2(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator CUstream() const { return stream_; }
  void sync() const { REQUIRE(cuStreamSynchronize(stream_) == CUDA_SUCCESS); }

 private:
  CUstream stream_ = nullptr;
};

class TestEvent {
 public:
  TestEvent() { REQUIRE(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS); }
  ~TestEvent() { cuEventDestroy_v2(event_); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  operator CUevent() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

// The arguments of store and scale, kept alive by the caller.
struct WordArguments {
  CUdeviceptr word;
  std::uint32_t value;
  void* pointers[2] = {&word, &value};
  WordArguments(CUdeviceptr w, std::uint32_t v) : word(w), value(v) {}
  WordArguments(const WordArguments&) = delete;
};

inline CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(CUfunction function, void** arguments) {
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  params.func = function;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  return params;
}

inline CUDA_MEMSET_NODE_PARAMS word_set(CUdeviceptr word, std::uint32_t value,
                                        std::size_t count = 1) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = word;
  params.value = value;
  params.elementSize = 4;
  params.width = count;
  params.height = 1;
  return params;
}

inline CUDA_MEMCPY3D word_copy(CUdeviceptr to, CUdeviceptr from, std::size_t count = 1) {
  CUDA_MEMCPY3D params{};
  params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = from;
  params.dstDevice = to;
  params.WidthInBytes = count * 4;
  params.Height = params.Depth = 1;
  return params;
}

// A graph being built; destroyed with its nodes.
class TestGraph {
 public:
  TestGraph() { REQUIRE(cuGraphCreate(&graph_, 0) == CUDA_SUCCESS); }
  explicit TestGraph(CUgraph graph) : graph_(graph) {}
  ~TestGraph() { cuGraphDestroy(graph_); }
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;
  operator CUgraph() const { return graph_; }

  using Nodes = std::vector<CUgraphNode>;
  CUgraphNode empty(const Nodes& after = {}) {
    return added(cuGraphAddEmptyNode(&node_, graph_, after.data(), after.size()));
  }
  CUgraphNode kernel(CUfunction function, void** arguments, const Nodes& after = {}) {
    const auto params = kernel_params(function, arguments);
    return added(cuGraphAddKernelNode_v2(&node_, graph_, after.data(), after.size(), &params));
  }
  CUgraphNode store(CUdeviceptr word, std::uint32_t value, const Nodes& after = {}) {
    WordArguments arguments(word, value);
    return kernel(Gpu::get().store, arguments.pointers, after);
  }
  CUgraphNode scale(CUdeviceptr word, std::uint32_t value, const Nodes& after = {}) {
    WordArguments arguments(word, value);
    return kernel(Gpu::get().scale, arguments.pointers, after);
  }
  CUgraphNode set(CUdeviceptr word, std::uint32_t value, const Nodes& after = {}) {
    const auto params = word_set(word, value);
    return added(cuGraphAddMemsetNode(&node_, graph_, after.data(), after.size(), &params,
                                      Gpu::get().context));
  }
  CUgraphNode copy(CUdeviceptr to, CUdeviceptr from, const Nodes& after = {}) {
    const auto params = word_copy(to, from);
    return added(cuGraphAddMemcpyNode(&node_, graph_, after.data(), after.size(), &params,
                                      Gpu::get().context));
  }
  CUgraphNode host(CUhostFn function, void* data, const Nodes& after = {}) {
    const CUDA_HOST_NODE_PARAMS params{function, data};
    return added(cuGraphAddHostNode(&node_, graph_, after.data(), after.size(), &params));
  }
  CUgraphNode child(CUgraph graph, const Nodes& after = {}) {
    return added(cuGraphAddChildGraphNode(&node_, graph_, after.data(), after.size(), graph));
  }
  CUgraphNode record(CUevent event, const Nodes& after = {}) {
    return added(cuGraphAddEventRecordNode(&node_, graph_, after.data(), after.size(), event));
  }
  CUgraphNode wait(CUevent event, const Nodes& after = {}) {
    return added(cuGraphAddEventWaitNode(&node_, graph_, after.data(), after.size(), event));
  }

 private:
  CUgraphNode added(CUresult code) {
    REQUIRE(code == CUDA_SUCCESS);
    return node_;
  }

  CUgraph graph_ = nullptr;
  CUgraphNode node_ = nullptr;
};

class TestExec {
 public:
  explicit TestExec(CUgraph graph) {
    REQUIRE(cuGraphInstantiateWithFlags(&exec_, graph, 0) == CUDA_SUCCESS);
  }
  ~TestExec() {
    if (exec_ != nullptr) cuGraphExecDestroy(exec_);
  }
  TestExec(const TestExec&) = delete;
  TestExec& operator=(const TestExec&) = delete;
  operator CUgraphExec() const { return exec_; }
  void launch(CUstream stream) const { REQUIRE(cuGraphLaunch(exec_, stream) == CUDA_SUCCESS); }
  CUgraphExec release() { return std::exchange(exec_, nullptr); }

 private:
  CUgraphExec exec_ = nullptr;
};

inline std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  REQUIRE(cuGraphGetNodes(graph, nodes.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

inline std::vector<CUgraphNode> dependencies_of(CUgraphNode node) {
  std::size_t count = 0;
  REQUIRE(cuGraphNodeGetDependencies_v2(node, nullptr, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  std::vector<CUgraphEdgeData> data(count);
  REQUIRE(cuGraphNodeGetDependencies_v2(node, nodes.data(), data.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

inline std::size_t edge_count(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count) == CUDA_SUCCESS);
  return count;
}

inline CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type{};
  REQUIRE(cuGraphNodeGetType(node, &type) == CUDA_SUCCESS);
  return type;
}

}  // namespace graph_test
