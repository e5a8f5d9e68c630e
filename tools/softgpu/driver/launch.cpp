// SPDX-License-Identifier: Apache-2.0
// Launching kernels: the checks a driver makes, arguments copied at the call, and the launch
// entries. The checks are O(1) and allocate only when the work's buffers are too small.
#include "tools/softgpu/driver/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/occupancy.h"
#include "tools/softgpu/driver/raw_enum.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kMaxGridX = 0x7fffffff;
constexpr std::uint64_t kMaxGridYz = 65535;
constexpr unsigned kMaxBlockXy = 1024;
constexpr unsigned kMaxBlockZ = 64;

CUresult check_grid(const ptx::Dim3& grid, const ptx::Dim3& block) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return CUDA_ERROR_INVALID_VALUE;
  if (block.x == 0 || block.y == 0 || block.z == 0) return CUDA_ERROR_INVALID_VALUE;
  if (grid.x > kMaxGridX || grid.y > kMaxGridYz || grid.z > kMaxGridYz)
    return CUDA_ERROR_INVALID_VALUE;
  if (block.x > kMaxBlockXy || block.y > kMaxBlockXy || block.z > kMaxBlockZ) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// .reqntid is the only block size the kernel was compiled for.
bool has_required_block(const ptx::Kernel& kernel, const ptx::Dim3& block) {
  const unsigned* const required = kernel.required_threads;
  if (required[0] == 0) return true;
  return block.x == required[0] && block.y == std::max(required[1], 1u) &&
         block.z == std::max(required[2], 1u);
}

CUresult pack_params(const ptx::Kernel& kernel, void** params, std::vector<std::byte>* packed) {
  packed->assign(kernel.parameter_bytes, std::byte{0});
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ptx::Parameter& parameter = kernel.parameters[i];
    std::memcpy(packed->data() + parameter.offset, params[i], parameter.size);
  }
  return CUDA_SUCCESS;
}

// CU_LAUNCH_PARAM_*: pairs of a key and a pointer. The size is given as a pointer to it.
CUresult pack_extra(const ptx::Kernel& kernel, void** extra, std::vector<std::byte>* packed) {
  const void* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const std::size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (kernel.parameter_bytes == 0) {
    packed->clear();
    return CUDA_SUCCESS;
  }
  // A caller's struct may end in padding that the kernel's layout does not have.
  if (buffer == nullptr || size == nullptr || *size < kernel.parameter_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  const auto* const bytes = static_cast<const std::byte*>(buffer);
  packed->assign(bytes, bytes + kernel.parameter_bytes);
  return CUDA_SUCCESS;
}

// The cluster of a launch attribute; zeroes, as in a new node, mean none. Clusters came with
// compute capability 9.0; before, one of one block is as good as none.
CUresult read_cluster(const CUlaunchAttributeValue& value, ptx::Dim3* cluster) {
  const ptx::Dim3 asked{value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
  const bool is_none = asked.x == 0 && asked.y == 0 && asked.z == 0;
  if (!is_none && (asked.x == 0 || asked.y == 0 || asked.z == 0)) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  if (has_clusters()) {
    *cluster = asked;
    return CUDA_SUCCESS;
  }
  const bool is_single = asked.x <= 1 && asked.y <= 1 && asked.z <= 1;
  return is_single ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult check_cluster(const FunctionObject& function, const LaunchShape& shape) {
  const ptx::Dim3& cluster = shape.cluster;
  if (cluster.x == 0) return CUDA_SUCCESS;
  // 8 is portable, 16 what today's devices have (CUDA programming guide, thread block clusters).
  const std::uint64_t limit = function.settings.non_portable_cluster != 0 ? 16 : 8;
  const std::uint64_t size = std::uint64_t{cluster.x} * cluster.y * cluster.z;
  if (cluster.x > limit || cluster.y > limit || cluster.z > limit || size > limit) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  const bool divides = shape.grid.x % cluster.x == 0 && shape.grid.y % cluster.y == 0 &&
                       shape.grid.z % cluster.z == 0;
  return divides ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

// What cuLaunchKernelEx adds to a launch beyond the kernel: events it completes.
// Events that a launch completes besides running its kernel, checked. Here they complete with the
// kernel.
std::vector<std::shared_ptr<Event>> launch_events(const Stream& stream, const KernelWork& work) {
  std::vector<std::shared_ptr<Event>> found;
  for (const CUlaunchAttribute& attribute : work.attributes) {
    CUevent handle = nullptr;
    if (raw(attribute.id) == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
      handle = attribute.value.programmaticEvent.event;
    } else if (raw(attribute.id) == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      handle = attribute.value.launchCompletionEvent.event;
    } else {
      continue;
    }
    found.push_back(event_of(handle));
    if (found.back()->context != &owner_of(*stream.context)) {
      note_misuse(Misuse::kContext);
      fail(CUDA_ERROR_INVALID_HANDLE);
    }
  }
  return found;
}

CUresult submit_with_events(const std::shared_ptr<Stream>& stream, KernelWork work) {
  const std::vector<std::shared_ptr<Event>> events = launch_events(*stream, work);
  check(submit(*stream, std::move(work)));
  for (const std::shared_ptr<Event>& event : events) {
    check(is_capturing(*stream) ? capture_event_record(*stream, event, false)
                                : submit(*stream, EventRecordWork{event}));
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult check_shape(const FunctionObject& function, const LaunchShape& shape) {
  if (const CUresult code = check_grid(shape.grid, shape.block); code != CUDA_SUCCESS) return code;
  const unsigned threads = shape.block.x * shape.block.y * shape.block.z;
  if (threads > sm_limits().threads_per_block) return CUDA_ERROR_INVALID_VALUE;
  const ptx::Kernel& kernel = *function.kernel;
  if (!has_required_block(kernel, shape.block)) return CUDA_ERROR_INVALID_VALUE;
  if (threads > function.max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (shape.shared_bytes > static_cast<unsigned>(function.settings.max_dynamic_shared_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult code = check_cluster(function, shape); code != CUDA_SUCCESS) return code;
  if (shape.cooperative) {
    const std::uint64_t blocks = std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
    const std::uint64_t resident =
        std::uint64_t{active_blocks(kernel, threads, shape.shared_bytes)} *
        sm_limits().multiprocessors;
    if (blocks > resident) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

CUresult make_kernel_work(CUfunction handle, const LaunchShape& shape, void** params, void** extra,
                          Context& context, KernelWork* work) {
  const std::shared_ptr<FunctionObject>* const found = find_function(handle, context);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const FunctionObject& function = **found;
  if (function.context != &context) {
    note_misuse(Misuse::kContext);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult code = check_shape(function, shape); code != CUDA_SUCCESS) return code;
  if (params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult code = CUDA_SUCCESS;
  if (extra != nullptr) {
    code = pack_extra(*function.kernel, extra, &work->parameters);
  } else if (params != nullptr) {
    code = pack_params(*function.kernel, params, &work->parameters);
  } else if (function.kernel->parameters.empty()) {
    work->parameters.clear();
  } else {
    code = CUDA_ERROR_INVALID_VALUE;
  }
  if (code != CUDA_SUCCESS) return code;
  if (work->function != *found) work->function = *found;
  work->grid = shape.grid;
  work->block = shape.block;
  work->shared_bytes = shape.shared_bytes;
  work->cooperative = shape.cooperative;
  work->cluster = shape.cluster;
  work->attributes.clear();
  return CUDA_SUCCESS;
}

CUresult set_launch_attributes(const CUlaunchAttribute* attributes, unsigned count, bool is_node,
                               KernelWork* work) {
  if (attributes == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUlaunchAttribute& attribute = attributes[i];
    switch (raw(attribute.id)) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
        continue;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        work->cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (const CUresult code = read_cluster(attribute.value, &work->cluster)) return code;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        if (is_node) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    work->attributes.push_back(attribute);
  }
  const LaunchShape shape{work->grid, work->block, work->shared_bytes, work->cooperative,
                          work->cluster};
  return check_shape(*work->function, shape);
}

CUresult launch(Stream& stream, CUfunction function, const LaunchShape& shape, void** params,
                void** extra, LaunchAttributes attributes) {
  // Reused, so that a launch that goes nowhere (null executor) allocates nothing. The driver lock
  // guards it.
  static KernelWork& work = *new KernelWork;
  CUresult code =
      make_kernel_work(function, shape, params, extra, owner_of(*stream.context), &work);
  if (code != CUDA_SUCCESS) return code;
  if (attributes.count != 0) {
    code = set_launch_attributes(attributes.values, attributes.count, false, &work);
    if (code != CUDA_SUCCESS) return code;
  }
  work.function->is_loaded = true;
  if (attributes.count == 0) {
    if (can_skip_kernels(stream)) {
      ++stream.sequence;
      return CUDA_SUCCESS;
    }
    return submit(stream, std::exchange(work, KernelWork()));
  }
  return submit_with_events(shared_stream(stream), std::exchange(work, KernelWork()));
}

}  // namespace softgpu

using softgpu::launch;
using softgpu::LaunchShape;
using softgpu::resolve_stream;

SOFTGPU_TWIN_ENTRY(
    cuLaunchKernel, cuLaunchKernel_ptsz,
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** params,
     void** extra),
    {
      const LaunchShape shape{
          {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, false, {0, 0, 0}};
      return launch(resolve_stream(stream, kPerThread), function, shape, params, extra, {});
    })

SOFTGPU_TWIN_ENTRY(cuLaunchKernelEx, cuLaunchKernelEx_ptsz,
                   (const CUlaunchConfig* config, CUfunction function, void** params, void** extra),
                   {
                     if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     const LaunchShape shape{
                         {config->gridDimX, config->gridDimY, config->gridDimZ},
                         {config->blockDimX, config->blockDimY, config->blockDimZ},
                         config->sharedMemBytes,
                         false,
                         {0, 0, 0}};
                     return launch(resolve_stream(config->hStream, kPerThread), function, shape,
                                   params, extra, {config->attrs, config->numAttrs});
                   })

SOFTGPU_TWIN_ENTRY(
    cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz,
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** params),
    {
      const LaunchShape shape{
          {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, true, {0, 0, 0}};
      return launch(resolve_stream(stream, kPerThread), function, shape, params, nullptr, {});
    })
