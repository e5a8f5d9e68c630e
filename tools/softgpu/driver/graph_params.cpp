// SPDX-License-Identifier: Apache-2.0
// See graph_params.h. Driver lock held throughout.
#include "tools/softgpu/driver/graph_params.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tools/softgpu/driver/array.h"
#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/copy.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/launch.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/module_objects.h"

namespace softgpu {

namespace {

// Where a memory operand lives; an exec's operands may move within one place only.
struct Place {
  bool is_device = false;
  const Context* context = nullptr;  // of the allocation, null for pageable host memory
  bool operator==(const Place& other) const {
    return is_device == other.is_device && context == other.context;
  }
};

Place place_of(std::uint64_t address) {
  const auto allocation = find_allocation(address);
  if (allocation == nullptr) return {};
  return {!allocation->is_host(), allocation->context};
}

Place source_place(const CopyWork& work) {
  const CUDA_MEMCPY3D& copy = work.parameters;
  if (work.source_array != nullptr) return {true, work.source_array->context};
  if (copy.srcMemoryType == CU_MEMORYTYPE_HOST) return {};
  return place_of(copy.srcDevice);
}

Place destination_place(const CopyWork& work) {
  const CUDA_MEMCPY3D& copy = work.parameters;
  if (work.destination_array != nullptr) return {true, work.destination_array->context};
  if (copy.dstMemoryType == CU_MEMORYTYPE_HOST) return {};
  return place_of(copy.dstDevice);
}

bool can_replace_copy(const CopyWork& old, const CopyWork& next) {
  return old.parameters.srcMemoryType == next.parameters.srcMemoryType &&
         old.parameters.dstMemoryType == next.parameters.dstMemoryType &&
         source_place(old) == source_place(next) &&
         destination_place(old) == destination_place(next);
}

bool can_replace_memset(const CUDA_MEMSET_NODE_PARAMS& old, const CUDA_MEMSET_NODE_PARAMS& next) {
  if (!(place_of(old.dst) == place_of(next.dst)) || old.height != next.height) return false;
  if (old.height == 1) return true;
  return old.width == next.width && old.pitch == next.pitch && old.elementSize == next.elementSize;
}

// The function handle and the context it runs in. `kern` counts only without `func`.
CUfunction resolve_function(const CUDA_KERNEL_NODE_PARAMS_v2& params, Context** context) {
  if (params.func == nullptr) {
    if (params.kern == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
    *context = &context_of(params.ctx);
    return reinterpret_cast<CUfunction>(params.kern);
  }
  *context = &current_context();
  const auto* function = find_function(params.func, **context);
  if (function == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  *context = (*function)->context;
  return params.func;
}

std::size_t used_bytes(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return sizeof(CUDA_KERNEL_NODE_PARAMS_v3);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return sizeof(CUDA_MEMCPY_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return sizeof(CUDA_MEMSET_NODE_PARAMS_v2);
    case CU_GRAPH_NODE_TYPE_HOST:
      return sizeof(CUDA_HOST_NODE_PARAMS_v2);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return sizeof(CUDA_EVENT_WAIT_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return sizeof(CUDA_EVENT_RECORD_NODE_PARAMS);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return 0;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return sizeof(CUDA_CONDITIONAL_NODE_PARAMS);
    default:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  return {params.func,         params.gridDimX,  params.gridDimY,  params.gridDimZ,
          params.blockDimX,    params.blockDimY, params.blockDimZ, params.sharedMemBytes,
          params.kernelParams, params.extra,     nullptr,          nullptr};
}

CUDA_KERNEL_NODE_PARAMS_v1 narrow(const CUDA_KERNEL_NODE_PARAMS_v2& params) {
  return {params.func,         params.gridDimX,  params.gridDimY,  params.gridDimZ,
          params.blockDimX,    params.blockDimY, params.blockDimZ, params.sharedMemBytes,
          params.kernelParams, params.extra};
}

void set_kernel_params(GraphNode& node, const CUDA_KERNEL_NODE_PARAMS_v2& params,
                       bool keep_context) {
  static KernelWork& scratch = *new KernelWork;  // keeps its buffer from call to call
  KernelWork& kernel = std::get<KernelWork>(node.work);
  Context* context = nullptr;
  const CUfunction function = resolve_function(params, &context);
  if (kernel.cooperative && params.extra != nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  if (keep_context && context != kernel.function->context) fail(CUDA_ERROR_INVALID_VALUE);
  const LaunchShape shape{{params.gridDimX, params.gridDimY, params.gridDimZ},
                          {params.blockDimX, params.blockDimY, params.blockDimZ},
                          params.sharedMemBytes,
                          kernel.cooperative,
                          kernel.cluster};
  check(make_kernel_work(function, shape, params.kernelParams, params.extra, *context, &scratch));
  kernel.function.swap(scratch.function);
  kernel.parameters.swap(scratch.parameters);
  kernel.grid = scratch.grid;
  kernel.block = scratch.block;
  kernel.shared_bytes = scratch.shared_bytes;
  node.packed_params = params.extra != nullptr;
  scratch.function.reset();
}

void get_kernel_params(GraphNode& node, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  KernelWork& kernel = std::get<KernelWork>(node.work);
  ReturnedKernelParams& returned = node.returned;
  returned.pointers.clear();
  for (const ptx::Parameter& parameter : kernel.function->kernel->parameters) {
    returned.pointers.push_back(kernel.parameters.data() + parameter.offset);
  }
  returned.size = kernel.parameters.size();
  void* const extra[5] = {CU_LAUNCH_PARAM_BUFFER_POINTER, kernel.parameters.data(),
                          CU_LAUNCH_PARAM_BUFFER_SIZE, &returned.size, CU_LAUNCH_PARAM_END};
  std::copy(std::begin(extra), std::end(extra), std::begin(returned.extra));
  *params = {kernel.function->handle,
             kernel.grid.x,
             kernel.grid.y,
             kernel.grid.z,
             kernel.block.x,
             kernel.block.y,
             kernel.block.z,
             kernel.shared_bytes,
             node.packed_params || returned.pointers.empty() ? nullptr : returned.pointers.data(),
             node.packed_params ? returned.extra : nullptr,
             nullptr,
             kernel.function->context->handle};
}

CopyWork make_copy(const CUDA_MEMCPY3D& params, CUcontext context) {
  Context& owner = context_of(context);
  if (params.Depth == 0 || params.Height == 0 || params.WidthInBytes == 0)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (params.reserved0 != nullptr || params.reserved1 != nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return checked_copy(params, owner);
}

MemsetWork make_memset(const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context) {
  MemsetWork work;
  work.context = &context_of(context);
  work.parameters = params;
  if (params.width == 0 || params.height == 0) fail(CUDA_ERROR_INVALID_VALUE);
  check(check_memset(params));
  return work;
}

HostWork make_host(CUhostFn function, void* user_data) {
  if (function == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return {function, user_data};
}

std::shared_ptr<Event> event_for_node(CUevent event) {
  auto found = events().find_shared(event);
  if (found == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return found;
}

ChildGraphWork make_child(CUgraph graph, const Graph& parent) {
  const Graph& child = graph_of(graph);
  if (&child == &parent || has_conditional_nodes(child)) fail(CUDA_ERROR_INVALID_VALUE);
  ChildGraphWork work{copy_graph(child, true)};
  work.graph->embedded = true;
  return work;
}

void check_padding(const CUgraphNodeParams& params) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&params);
  const auto is_zero = [&](std::size_t from, std::size_t to) {
    return std::all_of(bytes + from, bytes + to, [](unsigned char byte) { return byte == 0; });
  };
  const std::size_t head = offsetof(CUgraphNodeParams, kernel);
  if (!is_zero(offsetof(CUgraphNodeParams, reserved0), head) ||
      !is_zero(head + used_bytes(params.type), sizeof(params))) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const CUgraphNodeParams& params) {
  const CUDA_KERNEL_NODE_PARAMS_v3& kernel = params.kernel;
  return {kernel.func,         kernel.gridDimX,  kernel.gridDimY,  kernel.gridDimZ,
          kernel.blockDimX,    kernel.blockDimY, kernel.blockDimZ, kernel.sharedMemBytes,
          kernel.kernelParams, kernel.extra,     kernel.kern,      kernel.ctx};
}

Work make_work(const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      if (params.memcpy.flags != 0 || params.memcpy.reserved != 0) fail(CUDA_ERROR_INVALID_VALUE);
      return make_copy(params.memcpy.copyParams, params.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& set = params.memset;
      return make_memset({set.dst, set.pitch, set.value, set.elementSize, set.width, set.height},
                         set.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return make_host(params.host.fn, params.host.userData);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return EventWaitWork{event_for_node(params.eventWait.event)};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return EventRecordWork{event_for_node(params.eventRecord.event)};
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return EmptyWork{};
    default:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

bool can_replace(const Work& old, const Work& next) {
  if (old.index() != next.index()) return false;
  if (const auto* copy = std::get_if<CopyWork>(&old)) {
    return can_replace_copy(*copy, std::get<CopyWork>(next));
  }
  if (const auto* set = std::get_if<MemsetWork>(&old)) {
    return can_replace_memset(set->parameters, std::get<MemsetWork>(next).parameters);
  }
  if (const auto* value = std::get_if<ValueWork>(&old)) {
    const auto& other = std::get<ValueWork>(next);
    return value->is_wait == other.is_wait && value->is_64_bit == other.is_64_bit;
  }
  return true;
}

bool is_multidimensional(const Work& work) {
  const auto* copy = std::get_if<CopyWork>(&work);
  return copy != nullptr && (copy->parameters.Height > 1 || copy->parameters.Depth > 1);
}

}  // namespace softgpu
