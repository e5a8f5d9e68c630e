// SPDX-License-Identifier: Apache-2.0
// Occupancy: the same arithmetic as NVIDIA's public occupancy calculator (threads, blocks,
// registers by warp, shared memory), and the entries that ask for it.
#include "tools/softgpu/driver/occupancy.h"

#include <algorithm>

#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/module_objects.h"

namespace softgpu {
namespace {

constexpr unsigned kWarpSize = 32;
constexpr unsigned kRegistersPerUnit = 256;  // a warp's registers are allocated in these units
constexpr unsigned kWarpGranularity = 4;     // and warps are spread over four schedulers
constexpr std::size_t kSharedPerUnit = 128;

template <class T>
T round_up(T value, T unit) {
  return (value + unit - 1) / unit * unit;
}

unsigned attribute(CUdevice_attribute which) {
  int value = 0;
  device_attribute(which, 0, &value);
  return static_cast<unsigned>(value);
}

// Warps whose registers fit into one multiprocessor.
unsigned warps_by_registers(const ptx::Kernel& kernel) {
  const unsigned registers = std::max(kernel.registers, 1u);
  const unsigned per_warp = round_up(registers * kWarpSize, kRegistersPerUnit);
  return sm_limits().registers_per_sm / per_warp / kWarpGranularity * kWarpGranularity;
}

// The dynamic shared memory that leaves room for `blocks` blocks on one multiprocessor.
std::size_t available_shared(const ptx::Kernel& kernel, unsigned blocks) {
  const SmLimits& limits = sm_limits();
  const std::size_t share = limits.shared_per_sm / blocks / kSharedPerUnit * kSharedPerUnit;
  const std::size_t taken = limits.shared_reserved + kernel.static_shared_bytes;
  const std::size_t in_block = limits.shared_per_block_optin -
                               std::min(limits.shared_per_block_optin, kernel.static_shared_bytes);
  return share <= taken ? 0 : std::min(share - taken, in_block);
}

// What the occupancy calls accept as flags.
bool are_valid_flags(unsigned flags) {
  return (flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)) == 0;
}

CUresult count_blocks(int* blocks, CUfunction handle, int threads, std::size_t shared,
                      unsigned flags) {
  if (blocks == nullptr || threads <= 0 || !are_valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  const FunctionObject& function = function_of(handle, current_context());
  *blocks =
      static_cast<int>(active_blocks(*function.kernel, static_cast<unsigned>(threads), shared));
  return CUDA_SUCCESS;
}

// The block size with most resident threads; the largest of equals, as fewer blocks cost less to
// start.
CUresult find_block_size(const ptx::Kernel& kernel,
                         const std::function<std::size_t(int)>& shared_for, int limit, int* grid,
                         int* block) {
  const unsigned most = max_threads_per_block(kernel);
  const unsigned start = limit > 0 ? std::min(most, static_cast<unsigned>(limit)) : most;
  unsigned best_threads = 0;
  *grid = *block = 0;
  for (unsigned threads = start; threads > 0;) {
    const unsigned blocks = active_blocks(kernel, threads, shared_for(static_cast<int>(threads)));
    if (blocks * threads > best_threads) {
      best_threads = blocks * threads;
      *block = static_cast<int>(threads);
      *grid = static_cast<int>(blocks * sm_limits().multiprocessors);
    }
    threads = threads % kWarpSize != 0 ? threads / kWarpSize * kWarpSize : threads - kWarpSize;
  }
  return CUDA_SUCCESS;
}

// The client's function is called without the driver lock: it may call the driver.
CUresult potential_block_size(EntryId id, int* grid, int* block, CUfunction handle,
                              CUoccupancyB2DSize size_of_block, std::size_t shared, int limit,
                              unsigned flags) {
  std::shared_ptr<const ptx::Module> code;
  const ptx::Kernel* kernel = nullptr;
  const CUresult found = call(id, [&]() -> CUresult {
    if (grid == nullptr || block == nullptr || limit < 0 || !are_valid_flags(flags)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const FunctionObject& function = function_of(handle, current_context());
    code = function.code;
    kernel = function.kernel;
    return CUDA_SUCCESS;
  });
  if (found != CUDA_SUCCESS) return found;
  return find_block_size(
      *kernel,
      [&](int threads) { return size_of_block != nullptr ? size_of_block(threads) : shared; },
      limit, grid, block);
}

// A configuration for the cluster calls: valid, and what it asks of one block.
FunctionObject& configured_function(CUfunction handle, const CUlaunchConfig* config) {
  if (config == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  FunctionObject& function = function_of(handle, current_context());
  if (!has_clusters()) fail(CUDA_ERROR_NOT_SUPPORTED);
  return function;
}

// Blocks of the cluster that the configuration asks for, at least one.
unsigned blocks_of_cluster(const CUlaunchConfig& config) {
  unsigned blocks = 1;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& cluster = config.attrs[i].value.clusterDim;
    blocks = std::max(cluster.x, 1u) * std::max(cluster.y, 1u) * std::max(cluster.z, 1u);
  }
  return blocks;
}

}  // namespace

const SmLimits& sm_limits() {
  static const SmLimits limits = [] {
    SmLimits from_device;
    from_device.threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    from_device.threads_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    from_device.blocks_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    from_device.registers_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    from_device.shared_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    from_device.shared_per_block_optin =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    from_device.shared_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    from_device.shared_reserved = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    from_device.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return from_device;
  }();
  return limits;
}

unsigned max_threads_per_block(const ptx::Kernel& kernel) {
  const auto product = [](const unsigned* dims) {
    return dims[0] == 0 ? ~0u : dims[0] * std::max(dims[1], 1u) * std::max(dims[2], 1u);
  };
  return std::min({sm_limits().threads_per_block, warps_by_registers(kernel) * kWarpSize,
                   product(kernel.max_threads), product(kernel.required_threads)});
}

unsigned active_blocks(const ptx::Kernel& kernel, unsigned threads,
                       std::size_t dynamic_shared_bytes) {
  const SmLimits& limits = sm_limits();
  if (threads == 0 || threads > max_threads_per_block(kernel)) return 0;
  const unsigned warps = round_up(threads, kWarpSize) / kWarpSize;
  const std::size_t in_block = kernel.static_shared_bytes + dynamic_shared_bytes;
  if (in_block > limits.shared_per_block_optin) return 0;
  const std::size_t shared = round_up(in_block + limits.shared_reserved, kSharedPerUnit);
  return static_cast<unsigned>(
      std::min<std::size_t>({limits.blocks_per_sm, limits.threads_per_sm / (warps * kWarpSize),
                             warps_by_registers(kernel) / warps, limits.shared_per_sm / shared}));
}

}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                             int threads, size_t shared) {
  return call(EntryId::cuOccupancyMaxActiveBlocksPerMultiprocessor,
              [&] { return softgpu::count_blocks(blocks, function, threads, shared, 0); });
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                      CUfunction function,
                                                                      int threads, size_t shared,
                                                                      unsigned int flags) {
  return call(EntryId::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
              [&] { return softgpu::count_blocks(blocks, function, threads, shared, flags); });
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                  CUoccupancyB2DSize size_of_block, size_t shared,
                                                  int limit) {
  return softgpu::potential_block_size(EntryId::cuOccupancyMaxPotentialBlockSize, grid, block,
                                       function, size_of_block, shared, limit, 0);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                           CUfunction function,
                                                           CUoccupancyB2DSize size_of_block,
                                                           size_t shared, int limit,
                                                           unsigned int flags) {
  return softgpu::potential_block_size(EntryId::cuOccupancyMaxPotentialBlockSizeWithFlags, grid,
                                       block, function, size_of_block, shared, limit, flags);
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t* shared, CUfunction handle,
                                                         int blocks, int threads) {
  return call(EntryId::cuOccupancyAvailableDynamicSMemPerBlock, [&]() -> CUresult {
    if (shared == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    const softgpu::FunctionObject& function =
        softgpu::function_of(handle, softgpu::current_context());
    const auto wanted = static_cast<unsigned>(blocks);
    if (softgpu::active_blocks(*function.kernel, static_cast<unsigned>(threads), 0) < wanted) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *shared = softgpu::available_shared(*function.kernel, wanted);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                                    const CUlaunchConfig* config) {
  return call(EntryId::cuOccupancyMaxPotentialClusterSize, [&]() -> CUresult {
    if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const softgpu::FunctionObject& found = softgpu::configured_function(function, config);
    *size = found.settings.non_portable_cluster != 0 ? 16 : 8;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                              const CUlaunchConfig* config) {
  return call(EntryId::cuOccupancyMaxActiveClusters, [&]() -> CUresult {
    if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const softgpu::FunctionObject& function = softgpu::configured_function(handle, config);
    const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (config->attrs == nullptr && config->numAttrs != 0) return CUDA_ERROR_INVALID_VALUE;
    const unsigned blocks =
        softgpu::active_blocks(*function.kernel, threads, config->sharedMemBytes) *
        softgpu::sm_limits().multiprocessors;
    *clusters = static_cast<int>(blocks / softgpu::blocks_of_cluster(*config));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
