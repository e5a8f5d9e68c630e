// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/fake_driver.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace fake {
namespace {

Driver* g_driver = nullptr;

// Handles are small multiples of 16 above the context values.
template <typename Handle>
Handle handle(std::uintptr_t& next) {
  next += 16;
  return reinterpret_cast<Handle>(next);
}

std::uintptr_t g_next_object = 0x1000000;

struct Slots {
  static CUresult CUDAAPI get_current(CUcontext* context) {
    std::lock_guard guard(g_driver->mutex);
    *context = g_driver->current;
    return g_driver->enter("cuCtxGetCurrent");
  }
  static CUresult CUDAAPI push(CUcontext) { return CUDA_SUCCESS; }
  static CUresult CUDAAPI pop(CUcontext*) { return CUDA_SUCCESS; }
  static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode* mode) {
    std::lock_guard guard(g_driver->mutex);
    std::swap(*mode, g_driver->capture_mode);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI get_device(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
  static CUresult CUDAAPI device_attribute(int* value, CUdevice_attribute attribute, CUdevice) {
    bool is_grid_yz = attribute == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y ||
                      attribute == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
    bool is_grid_x = attribute == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X;
    *value = is_grid_x ? 2147483647 : is_grid_yz ? 65535 : 1024;
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = g_driver->multiprocessors;
    if (attribute == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) *value = 1;
    if (attribute == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) *value = g_driver->has_clusters ? 1 : 0;
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI exec_affinity(CUexecAffinityParam*, CUexecAffinityType) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  static CUresult CUDAAPI active_blocks(int* blocks, CUfunction, int, std::size_t) {
    std::lock_guard guard(g_driver->mutex);
    *blocks = g_driver->active_blocks;
    return g_driver->enter("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  }
  static CUresult CUDAAPI active_clusters(int* clusters, CUfunction, const CUlaunchConfig*) {
    std::lock_guard guard(g_driver->mutex);
    *clusters = g_driver->active_clusters;
    return g_driver->enter("cuOccupancyMaxActiveClusters");
  }
  static CUresult CUDAAPI function_attribute(int* value, CUfunction_attribute attribute,
                                             CUfunction) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                 ? g_driver->max_dynamic_shared
                 : 0;
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI param_info(CUfunction function, std::size_t index, std::size_t* offset,
                                     std::size_t* size) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuFuncGetParamInfo")) return result;
    auto found = g_driver->functions.find(function);
    if (found == g_driver->functions.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (index >= found->second.sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = found->second.offsets[index];
    *size = found->second.sizes[index];
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI get_module(CUmodule* module, CUfunction function) {
    std::lock_guard guard(g_driver->mutex);
    auto found = g_driver->functions.find(function);
    if (found == g_driver->functions.end()) return CUDA_ERROR_INVALID_HANDLE;
    *module = found->second.module;
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI load(CUfunction) {
    std::lock_guard guard(g_driver->mutex);
    return g_driver->enter("cuFuncLoad");
  }
  static CUresult CUDAAPI stream_context(CUstream stream, CUcontext* context) {
    std::lock_guard guard(g_driver->mutex);
    auto found = g_driver->streams.find(stream);
    if (found == g_driver->streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    *context = found->second.owner;
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI stream_flags(CUstream stream, unsigned* flags) {
    std::lock_guard guard(g_driver->mutex);
    auto found = g_driver->streams.find(stream);
    if (found == g_driver->streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    *flags = found->second.flags;
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI green_context(CUstream, CUgreenCtx* green) {
    *green = nullptr;
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI launch(CUfunction function, unsigned grid_x, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, unsigned, CUstream stream, void** params,
                                 void** extra) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuLaunchKernel")) return result;
    g_driver->run(stream, {function, grid_x, g_driver->pack(function, params, extra)}, false);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI launch_cooperative(CUfunction function, unsigned grid_x, unsigned,
                                             unsigned, unsigned, unsigned, unsigned, unsigned,
                                             CUstream stream, void** params) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuLaunchCooperativeKernel")) return result;
    g_driver->run(stream, {function, grid_x, g_driver->pack(function, params, nullptr), {true, {}}},
                  false);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI launch_ex(const CUlaunchConfig* config, CUfunction function,
                                    void** params, void** extra) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuLaunchKernelEx")) return result;
    Node node{function, config->gridDimX, g_driver->pack(function, params, extra)};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      give(node, config->attrs[i].id, config->attrs[i].value);
    }
    g_driver->run(config->hStream, node, false);
    return CUDA_SUCCESS;
  }
  static void give(Node& node, CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      node.attributes.is_cooperative = value.cooperative != 0;
    } else {
      const unsigned size[] = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      std::copy(std::begin(size), std::end(size), node.attributes.cluster);
    }
  }
  // Into the graph that was made last: nodes carry no graph.
  static CUresult CUDAAPI set_attribute(CUgraphNode node, CUlaunchAttributeID id,
                                        const CUlaunchAttributeValue* value) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuGraphKernelNodeSetAttribute")) return result;
    std::vector<Node>& nodes = g_driver->graphs.rbegin()->second;
    give(nodes.at(reinterpret_cast<std::uintptr_t>(node) - 1), id, *value);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI graph_create(CUgraph* graph, unsigned) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuGraphCreate")) return result;
    *graph = handle<CUgraph>(g_next_object);
    g_driver->graphs[*graph];
    return CUDA_SUCCESS;
  }
  // Nodes are (graph, index) so that SetParams finds them in any exec of the graph.
  static CUresult CUDAAPI add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                   std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuGraphAddKernelNode_v2")) return result;
    std::vector<Node>& nodes = g_driver->graphs.at(graph);
    std::uintptr_t expected = nodes.size();
    bool is_chain = nodes.empty()
                        ? count == 0
                        : count == 1 && *before == reinterpret_cast<CUgraphNode>(expected);
    if (!is_chain) return CUDA_ERROR_INVALID_VALUE;
    nodes.push_back({params->func, params->gridDimX,
                     g_driver->pack(params->func, params->kernelParams, params->extra)});
    *node = reinterpret_cast<CUgraphNode>(nodes.size());
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuGraphInstantiateWithFlags")) return result;
    if (g_driver->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) g_driver->enter("unsafe call");
    *exec = handle<CUgraphExec>(g_next_object);
    g_driver->execs[*exec] = g_driver->graphs.at(graph);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI set_params(CUgraphExec exec, CUgraphNode node,
                                     const CUDA_KERNEL_NODE_PARAMS_v2* params) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuGraphExecKernelNodeSetParams_v2")) return result;
    Node& kept = g_driver->execs.at(exec).at(reinterpret_cast<std::uintptr_t>(node) - 1);
    kept = {params->func, params->gridDimX,
            g_driver->pack(params->func, params->kernelParams, params->extra), kept.attributes};
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI graph_launch(CUgraphExec exec, CUstream stream) {
    std::lock_guard guard(g_driver->mutex);
    if (CUresult result = g_driver->enter("cuGraphLaunch")) return result;
    for (const Node& node : g_driver->execs.at(exec)) g_driver->run(stream, node, true);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI exec_destroy(CUgraphExec exec) {
    std::lock_guard guard(g_driver->mutex);
    g_driver->execs.erase(exec);
    return g_driver->enter("cuGraphExecDestroy");
  }
  static CUresult CUDAAPI graph_destroy(CUgraph graph) {
    std::lock_guard guard(g_driver->mutex);
    g_driver->graphs.erase(graph);
    return g_driver->enter("cuGraphDestroy");
  }
};

void fill_slots() {
  using runtime::real;
  real.cuCtxGetCurrent.set(&Slots::get_current);
  real.cuCtxPushCurrent_v2.set(&Slots::push);
  real.cuCtxPopCurrent_v2.set(&Slots::pop);
  real.cuThreadExchangeStreamCaptureMode.set(&Slots::exchange_mode);
  real.cuCtxGetDevice.set(&Slots::get_device);
  real.cuDeviceGetAttribute.set(&Slots::device_attribute);
  real.cuFuncGetAttribute.set(&Slots::function_attribute);
  real.cuFuncGetParamInfo.set(&Slots::param_info);
  real.cuFuncGetModule.set(&Slots::get_module);
  real.cuFuncLoad.set(&Slots::load);
  real.cuStreamGetCtx.set(&Slots::stream_context);
  real.cuStreamGetFlags.set(&Slots::stream_flags);
  real.cuStreamGetGreenCtx.set(&Slots::green_context);
  real.cuCtxGetExecAffinity.set(&Slots::exec_affinity);
  real.cuOccupancyMaxActiveBlocksPerMultiprocessor.set(&Slots::active_blocks);
  real.cuOccupancyMaxActiveClusters.set(&Slots::active_clusters);
  real.cuLaunchKernel.set(&Slots::launch);
  real.cuLaunchCooperativeKernel.set(&Slots::launch_cooperative);
  real.cuLaunchKernelEx.set(&Slots::launch_ex);
  real.cuGraphKernelNodeSetAttribute.set(&Slots::set_attribute);
  real.cuGraphCreate.set(&Slots::graph_create);
  real.cuGraphAddKernelNode_v2.set(&Slots::add_node);
  real.cuGraphInstantiateWithFlags.set(&Slots::instantiate);
  real.cuGraphExecKernelNodeSetParams_v2.set(&Slots::set_params);
  real.cuGraphLaunch.set(&Slots::graph_launch);
  real.cuGraphExecDestroy.set(&Slots::exec_destroy);
  real.cuGraphDestroy.set(&Slots::graph_destroy);
}

std::uintptr_t g_next_function = 0x100000;
std::uintptr_t g_next_stream = 0x200000;

}  // namespace

Driver::Driver() {
  if (g_driver != nullptr) throw std::logic_error("one fake driver at a time");
  g_driver = this;
  fill_slots();
}

Driver::~Driver() {
  g_driver = nullptr;
}

CUfunction Driver::add_function(std::vector<std::size_t> sizes, CUmodule module) {
  std::lock_guard guard(mutex);
  Function function{{}, std::move(sizes), module};
  std::size_t end = 0;
  for (std::size_t size : function.sizes) {
    std::size_t align = size >= 8 ? 8 : size;
    end = (end + align - 1) / align * align;
    function.offsets.push_back(end);
    end += size;
  }
  auto key = handle<CUfunction>(g_next_function);
  functions[key] = std::move(function);
  return key;
}

CUstream Driver::add_stream(unsigned flags, CUcontext owner) {
  std::lock_guard guard(mutex);
  auto key = handle<CUstream>(g_next_stream);
  streams[key] = {flags, owner};
  return key;
}

std::vector<Ran> Driver::log() const {
  std::lock_guard guard(mutex);
  return log_;
}

int Driver::calls(const std::string& entry) const {
  std::lock_guard guard(mutex);
  auto found = calls_.find(entry);
  return found == calls_.end() ? 0 : found->second;
}

void Driver::fail(const std::string& entry, CUresult result, int nth) {
  std::lock_guard guard(mutex);
  faults_[entry] = {result, nth};
}

CUresult Driver::enter(const char* entry) {
  ++calls_[entry];
  for (const std::string& name : missing_) {
    if (name == entry) return CUDA_ERROR_NOT_FOUND;
  }
  auto fault = faults_.find(entry);
  if (fault == faults_.end()) return CUDA_SUCCESS;
  if (fault->second.nth < 0) return fault->second.result;
  if (fault->second.nth-- > 0) return CUDA_SUCCESS;
  CUresult result = fault->second.result;
  faults_.erase(fault);
  return result;
}

std::vector<unsigned char> Driver::pack(CUfunction function, void** params, void** extra) const {
  const Function& known = functions.at(function);
  std::vector<unsigned char> packed;
  for (std::size_t i = 0; i < known.sizes.size(); ++i) {
    const auto* from = extra != nullptr ? static_cast<unsigned char*>(extra[1]) + known.offsets[i]
                                        : static_cast<unsigned char*>(params[i]);
    packed.insert(packed.end(), from, from + known.sizes[i]);
  }
  return packed;
}

void Driver::run(CUstream stream, const Node& node, bool in_graph) {
  log_.push_back({stream, node.function, node.grid_x, node.arguments, in_graph, node.attributes});
}

}  // namespace fake
