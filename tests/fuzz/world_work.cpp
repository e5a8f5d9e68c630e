// SPDX-License-Identifier: Apache-2.0
// Runs the steps that launch, capture and build graphs, and those that must be refused.
#include <atomic>
#include <iterator>
#include <thread>

#include "tests/fuzz/world.h"

namespace fuzz {
namespace {

constexpr unsigned long long kNoFlags = 0;

void host_function(void* data) {
  const auto* const call = static_cast<const HostCall*>(data);
  for (unsigned i = 0; i < kWords; ++i) call->words[i] = call->words[i] * 33 + call->value + i;
}

void CUDA_CB callback(CUstream, CUresult, void* data) {
  host_function(data);
}

CUDA_KERNEL_NODE_PARAMS kernel_parameters(CUfunction function, int grid, int block, int shared,
                                          void** parameters) {
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = function;
  node.gridDimX = static_cast<unsigned>(grid);
  node.blockDimX = static_cast<unsigned>(block);
  node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
  node.sharedMemBytes = static_cast<unsigned>(shared);
  node.kernelParams = parameters;
  return node;
}

// Those of its nodes that a bit stands for.
std::vector<CUgraphNode> nodes_of(const GraphSlot& slot, int bits) {
  std::vector<CUgraphNode> found;
  for (std::size_t i = 0; i < slot.nodes.size(); ++i) {
    if ((bits >> i & 1) != 0 && slot.nodes[i] != nullptr) found.push_back(slot.nodes[i]);
  }
  return found;
}

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

}  // namespace

HostCall* Actor::host_call(int buffer, int value) {
  return &host_calls_.emplace_back(
      HostCall{world_.buffers[buffer].words, static_cast<unsigned>(value)});
}

// how module kernel stream grid block shared b0 b1 b2 key
void Actor::run_launch(const Step& s) {
  const CUfunction function = function_of(s[1], s[2]);
  Arguments arguments(s[2], address_of(s[7]), address_of(s[8]), address_of(s[9]), s[10]);
  const CUstream stream = stream_of(s[3]);
  const bool is_per_thread = s[3] == kPtszStream;
  const auto grid = static_cast<unsigned>(s[4]), block = static_cast<unsigned>(s[5]),
             shared = static_cast<unsigned>(s[6]);
  // Kernels that only add do not mind several blocks at one place; one has a place for each.
  const bool has_rows = s[2] == kShape || s[2] == kCountUp || s[2] == kEmpty || s[2] == kWhere;
  const unsigned rows = has_rows ? 1 + static_cast<unsigned>(s[10] / 8 % 3) : 1;
  void** const parameters = s[0] == kExtra ? nullptr : arguments.parameters();
  void** const extra = s[0] == kExtra ? arguments.extra() : nullptr;
  const bool has_config =
      s[0] == kEx || s[0] == kExAttributes || s[0] == kClusters || s[0] == kClustersCooperative;
  if (has_config) {
    launch_with_attributes(s, rows, arguments);
  } else if (s[0] == kCooperative) {
    failed((is_per_thread ? cuLaunchCooperativeKernel_ptsz : cuLaunchCooperativeKernel)(
        function, grid, rows, 1, block, 1, 1, shared, stream, parameters));
  } else if (s[0] == kGrid) {
    launch_grid(s, static_cast<int>(rows), arguments);
  } else if (is_per_thread) {
    failed(cuLaunchKernel_ptsz(function, grid, rows, 1, block, 1, 1, shared, nullptr, parameters,
                               extra));
  } else {
    failed(cuLaunchKernel(function, grid, rows, 1, block, 1, 1, shared, stream, parameters, extra));
  }
  arguments.overwrite();
}

void Actor::launch_with_attributes(const Step& s, unsigned rows, Arguments& arguments) {
  const int key = s[10];
  CUlaunchAttribute attributes[3] = {};
  CUlaunchConfig config{};
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[1].value.cooperative = key % 2;
  if (s[0] == kEx || s[0] == kExAttributes) {
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    attributes[2].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[2].value.priority = -(key % 3);
    config.numAttrs = static_cast<unsigned>(s[0] == kEx ? key % 2 : 2 + key / 2 % 2);
  } else {
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim = {kClusterWidth, 1, 1};
    attributes[1].value.cooperative = 1;
    config.numAttrs = s[0] == kClusters ? 1 : 2;
  }
  config.gridDimX = static_cast<unsigned>(s[4]);
  config.gridDimY = rows;
  config.blockDimX = static_cast<unsigned>(s[5]);
  config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(s[6]);
  config.hStream = stream_of(s[3]);
  config.attrs = attributes;
  const auto launch = s[3] == kPtszStream ? cuLaunchKernelEx_ptsz : cuLaunchKernelEx;
  failed(launch(&config, function_of(s[1], s[2]), arguments.parameters(), nullptr));
  config.gridDimX = config.blockDimX = 9999;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // deprecated since CUDA 4, still there

void Actor::launch_grid(const Step& s, int rows, Arguments& arguments) {
  const CUfunction function = function_of(s[1], s[2]);
  failed(cuFuncSetBlockShape(function, s[5], 1, 1));
  failed(cuFuncSetSharedSize(function, static_cast<unsigned>(s[6])));
  failed(cuParamSetSize(function, arguments.size()));
  if (arguments.size() != 0) failed(cuParamSetv(function, 0, arguments.bytes(), arguments.size()));
  if (s[3] != kNullStream) {
    const CUstream stream = s[3] == kPtszStream ? CU_STREAM_PER_THREAD : stream_of(s[3]);
    failed(cuLaunchGridAsync(function, s[4], rows, stream));
  } else {
    failed(s[4] == 1 && rows == 1 ? cuLaunch(function) : cuLaunchGrid(function, s[4], rows));
  }
}

#pragma GCC diagnostic pop

// as_callback stream buffer value
void Actor::run_host_function(const Step& s) {
  const bool is_own = s[1] == kPtszStream;
  const CUstream stream = stream_of(s[1]);
  if (world_.buffers[s[2]].words == nullptr) return saw(-1);
  HostCall* const call = host_call(s[2], s[3]);
  if (s[0] != 0) {
    failed((is_own ? cuStreamAddCallback_ptsz : cuStreamAddCallback)(stream, callback, call, 0));
  } else {
    failed((is_own ? cuLaunchHostFunc_ptsz : cuLaunchHostFunc)(stream, host_function, call));
  }
}

// module stream buffer value
void Actor::run_spin(const Step& s) {
  unsigned* const word = world_.buffers[s[2]].words;
  if (word == nullptr) return saw(-1);
  const auto value = static_cast<unsigned>(s[3]);
  Arguments arguments(kKernelCount, address_of(s[2]), 0, 0, s[3]);
  const CUstream stream = s[1] == kPtszStream ? CU_STREAM_PER_THREAD : stream_of(s[1]);
  if (failed(cuLaunchKernel(function_of(s[0], kKernelCount), 1, 1, 1, 1, 1, 1, 0, stream,
                            arguments.parameters(), nullptr))) {
    return;
  }
  arguments.overwrite();
  while (std::atomic_ref<unsigned>(*word).load(std::memory_order_acquire) != value) {
    std::this_thread::yield();
  }
}

void Actor::run_capture(const Step& s) {
  switch (s.kind) {
    case Kind::k_thread_mode: {
      CUstreamCaptureMode mode = kModes[s[0]];
      failed(cuThreadExchangeStreamCaptureMode(&mode));
      saw(mode);
      break;
    }
    case Kind::k_capture_begin:
    case Kind::k_capture_into:
      begin_capture(s);
      break;
    case Kind::k_capture_end:
      end_capture(s);
      break;
    case Kind::k_capture_info:
      run_capture_info(s);
      break;
    default: {
      const CUstream stream = s[0] == kPtszStream ? CU_STREAM_PER_THREAD : stream_of(s[0]);
      if (s[1] == 0) failed(cuStreamSynchronize(stream));
      if (s[1] == 1) failed(cuStreamQuery(stream));
      if (s[1] == 2) {
        CUdeviceptr memory = 0;
        if (!failed(cuMemAlloc(&memory, 64))) failed(cuMemFree(memory));
      }
      if (s[1] == 3) failed(cuStreamAddCallback(stream, callback, nullptr, 0));
    }
  }
}

// stream mode, and of a capture into a graph that is there: graph after
void Actor::begin_capture(const Step& s) {
  const bool is_own = s[0] == kPtszStream;
  const CUstream stream = stream_of(s[0]);
  const CUstreamCaptureMode mode = kModes[s[1]];
  capture_into_ = kNoGraph;
  if (s.kind == Kind::k_capture_begin) {
    failed((is_own ? cuStreamBeginCapture_v2_ptsz : cuStreamBeginCapture)(stream, mode));
    return;
  }
  const GraphSlot& graph = world_.graphs[s[2]];
  if (graph.handle == nullptr) return saw(-1);
  const std::vector<CUgraphNode> after = nodes_of(graph, s[3]);
  failed((is_own ? cuStreamBeginCaptureToGraph_ptsz : cuStreamBeginCaptureToGraph)(
      stream, graph.handle, after.data(), nullptr, after.size(), mode));
  capture_into_ = s[2];
}

void Actor::end_capture(const Step& s) {
  CUgraph graph = nullptr;
  failed((s[0] == kPtszStream ? cuStreamEndCapture_ptsz : cuStreamEndCapture)(stream_of(s[0]),
                                                                              &graph));
  if (graph == nullptr) return;
  std::size_t nodes = 0, edges = 0;
  failed(cuGraphGetNodes(graph, nullptr, &nodes));
  failed(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  saw(static_cast<long long>(nodes));
  saw(static_cast<long long>(edges));
  if (capture_into_ != kNoGraph) {
    saw(graph == world_.graphs[capture_into_].handle ? 1 : 0);
  } else if (s[1] == kNoGraph) {
    failed(cuGraphDestroy(graph));
  } else {
    GraphSlot& slot = world_.graphs[s[1]];
    slot.handle = graph;
    slot.nodes.clear();
    slot.context = stack_.back();
  }
}

void Actor::run_capture_info(const Step& s) {
  const bool is_own = s[0] == kPtszStream;
  const CUstream stream = stream_of(s[0]);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (s.number % 2 == 0) {
    failed((is_own ? cuStreamIsCapturing_ptsz : cuStreamIsCapturing)(stream, &status));
    return saw(status);
  }
  std::size_t count = 0;
  const CUgraphNode* dependencies = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  failed(cuStreamGetCaptureInfo(is_own ? CU_STREAM_PER_THREAD : stream, &status, nullptr, nullptr,
                                &dependencies, &edges, &count));
  saw(status);
  saw(static_cast<long long>(count));
}

void Actor::run_graph(const Step& s) {
  GraphSlot& slot = world_.graphs[s[0]];
  if (s.kind == Kind::k_graph_destroy) {
    if (slot.handle == nullptr) return saw(-1);
    failed(cuGraphDestroy(slot.handle));
    slot.handle = nullptr;
    slot.context = -1;
    return;
  }
  slot.handle = nullptr;
  slot.nodes.clear();
  slot.kernels.clear();
  slot.modules.clear();
  if (s.kind == Kind::k_graph_create) {
    failed(cuGraphCreate(&slot.handle, 0));
  } else {
    if (world_.graphs[s[1]].handle == nullptr) return saw(-1);
    failed(cuGraphClone(&slot.handle, world_.graphs[s[1]].handle));
  }
  slot.context = stack_.back();
}

void Actor::run_graph_node(const Step& s) {
  GraphSlot& slot = world_.graphs[s[0]];
  const CUcontext context = world_.contexts[stack_.back()].handle;
  const std::vector<CUgraphNode> after = nodes_of(slot, s[1]);
  CUgraphNode node = nullptr;
  const auto count = after.size();
  int kernel = kEmpty, module = 0;
  if (s.kind == Kind::k_graph_kernel) {
    module = s[2];
    kernel = s[3];
    Arguments arguments(kernel, address_of(s[6]), address_of(s[7]), address_of(s[8]), s[9]);
    const auto p = kernel_parameters(function_of(module, kernel), s[4], s[5], 4 * s[5],
                                     arguments.parameters());
    failed(cuGraphAddKernelNode(&node, slot.handle, after.data(), count, &p));
    arguments.overwrite();
  } else if (s.kind == Kind::k_graph_memset) {
    CUDA_MEMSET_NODE_PARAMS p{};
    p.dst = address_of(s[2]);
    p.value = static_cast<unsigned>(s[3]);
    p.elementSize = 4;
    p.width = kWords;
    p.height = 1;
    failed(cuGraphAddMemsetNode(&node, slot.handle, after.data(), count, &p, context));
  } else if (s.kind == Kind::k_graph_copy) {
    const BufferSlot &to = world_.buffers[s[2]], &from = world_.buffers[s[3]];
    CUDA_MEMCPY3D p{};
    if (is_array(to.memory) || is_array(from.memory)) {
      p = whole_copy(to, from);
    } else {
      p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
      p.srcDevice = address_of(s[3]);
      p.dstDevice = address_of(s[2]);
      p.WidthInBytes = kWords * sizeof(unsigned);
      p.Height = p.Depth = 1;
    }
    failed(cuGraphAddMemcpyNode(&node, slot.handle, after.data(), count, &p, context));
  } else if (s.kind == Kind::k_graph_host) {
    CUDA_HOST_NODE_PARAMS p{};
    p.fn = host_function;
    p.userData = host_call(s[2], s[3]);
    failed(cuGraphAddHostNode(&node, slot.handle, after.data(), count, &p));
  } else if (s.kind == Kind::k_graph_child) {
    const CUgraph child = world_.graphs[s[2]].handle;
    if (child != nullptr)
      failed(cuGraphAddChildGraphNode(&node, slot.handle, after.data(), count, child));
  } else {
    failed(cuGraphAddEmptyNode(&node, slot.handle, after.data(), count));
  }
  slot.nodes.push_back(node);
  slot.kernels.push_back(static_cast<KernelId>(kernel));
  slot.modules.push_back(module);
}

void Actor::run_exec(const Step& s) {
  ExecSlot& slot = world_.execs[s[0]];
  if (s.kind == Kind::k_exec_create) {
    slot.handle = nullptr;
    slot.graph = s[1];
    if (world_.graphs[s[1]].handle == nullptr) return saw(-1);
    slot.may_launch =
        !failed(cuGraphInstantiate(&slot.handle, world_.graphs[s[1]].handle, kNoFlags));
    slot.context = stack_.back();
    return;
  }
  if (slot.handle == nullptr) return saw(-1);
  if (s.kind == Kind::k_exec_update) {
    if (world_.graphs[s[1]].handle == nullptr) return saw(-1);
    CUgraphExecUpdateResultInfo info{};
    // Refused, it still holds what may be gone by now: it is not launched any more.
    if (failed(cuGraphExecUpdate(slot.handle, world_.graphs[s[1]].handle, &info)))
      slot.may_launch = false;
    saw(info.result);
    return;
  }
  if (s.kind == Kind::k_exec_destroy) {
    failed(cuGraphExecDestroy(slot.handle));
    slot.handle = nullptr;
    slot.context = -1;
    return;
  }
  if (!slot.may_launch) return saw(-1);
  const CUstream stream = stream_of(s[1]);
  const bool is_own = s[1] == kPtszStream;
  if (s.kind == Kind::k_exec_upload) {
    failed((is_own ? cuGraphUpload_ptsz : cuGraphUpload)(slot.handle, stream));
  } else {
    failed((is_own ? cuGraphLaunch_ptsz : cuGraphLaunch)(slot.handle, stream));
  }
}

// exec node b0 b1 b2 key
void Actor::run_exec_set_kernel(const Step& s) {
  ExecSlot& slot = world_.execs[s[0]];
  if (slot.handle == nullptr || slot.graph < 0) return saw(-1);
  GraphSlot& graph = world_.graphs[slot.graph];
  const auto index = static_cast<std::size_t>(s[1]);
  if (index >= graph.nodes.size() || graph.nodes[index] == nullptr) return saw(-1);
  const int kernel = graph.kernels[index];
  Arguments arguments(kernel, address_of(s[2]), address_of(s[3]), address_of(s[4]), s[5]);
  const auto p = kernel_parameters(function_of(graph.modules[index], kernel), 1,
                                   kernel == kPublish ? 1 : kWords, 256, arguments.parameters());
  failed(cuGraphExecKernelNodeSetParams(slot.handle, graph.nodes[index], &p));
  arguments.overwrite();
}

// The kernel stores at an address that nobody has; from its report on every call repeats the error
// (a launch that is queued ahead of the report says so later: docs/semantics.md).
void Actor::run_fault(const Step& s) {
  const CUfunction function = function_of(s[1], kAffine);
  const auto launch = [&] {
    Arguments arguments(kAffine, 0x10, 0, 0, 63);
    failed(
        cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments.parameters(), nullptr));
    arguments.overwrite();
  };
  launch();
  failed(cuCtxSynchronize());
  launch();
  CUdeviceptr memory = 0;
  failed(cuMemAlloc(&memory, 64));
  failed(cuStreamSynchronize(nullptr));
  failed(cuCtxSynchronize());
  world_.contexts[s[0]].is_broken = true;
}

void Actor::run_bad_launch(const Step& s) {
  const CUfunction function = function_of(s[1], kAffine);
  const CUstream stream = s[2] == kPtszStream ? CU_STREAM_PER_THREAD : stream_of(s[2]);
  Arguments arguments(kAffine, 0, 0, 0, 5);
  void** const parameters = arguments.parameters();
  switch (s[0]) {
    case 0:
      failed(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
      break;
    case 1:
      failed(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, stream, parameters, nullptr));
      break;
    case 2:
      failed(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 1 << 20, stream, parameters, nullptr));
      break;
    case 3:
      failed(cuLaunchKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
      break;
    case 4:
      failed(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
      break;
    default:
      failed(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, arguments.extra()));
  }
}

void Actor::run_bad_handle(const Step& s) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  failed(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  failed(cuStreamDestroy(stream));
  failed(cuEventCreate(&event, 0));
  failed(cuEventDestroy(event));
  failed(cuMemAlloc(&memory, 64));
  failed(cuMemFree(memory));
  switch (s[0]) {
    case 0:
      failed(cuStreamSynchronize(stream));
      break;
    case 1:
      failed(cuStreamQuery(stream));
      break;
    case 2:
      failed(cuEventRecord(event, nullptr));
      break;
    case 3:
      failed(cuEventDestroy(event));
      break;
    case 4:
      failed(cuStreamDestroy(stream));
      break;
    default:
      failed(cuMemFree(memory));
  }
}

}  // namespace fuzz
