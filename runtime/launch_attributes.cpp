// SPDX-License-Identifier: Apache-2.0
// What launch attributes mean, and whether the device can take a launch that has some.
#include "runtime/launch_attributes.h"

#include <algorithm>

#include "runtime/context_state.h"
#include "runtime/driver_scope.h"
#include "runtime/sequence.h"

namespace runtime {
namespace {

// Portable cluster size (CUDA programming guide, thread block clusters): larger ones are the
// function's to allow.
constexpr std::uint32_t kPortableCluster = 8;

bool read_cluster(const CUlaunchAttributeValue& value, LaunchAttributes* attributes) noexcept {
  const unsigned size[] = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
  for (int axis = 0; axis < 3; ++axis) {
    if (size[axis] == 0 || size[axis] > kMaxCluster) return false;
    attributes->cluster[axis] = static_cast<std::uint8_t>(size[axis]);
  }
  return true;
}

CUlaunchAttribute cooperative_attribute() noexcept {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  return attribute;
}

CUlaunchAttribute cluster_attribute(const LaunchAttributes& attributes) noexcept {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = attributes.cluster[0];
  attribute.value.clusterDim.y = attributes.cluster[1];
  attribute.value.clusterDim.z = attributes.cluster[2];
  return attribute;
}

// `values` has room for two. How many were written.
unsigned list_attributes(const LaunchAttributes& attributes, CUlaunchAttribute* values) noexcept {
  unsigned count = 0;
  if (attributes.is_cooperative) values[count++] = cooperative_attribute();
  if (attributes.has_cluster()) values[count++] = cluster_attribute(attributes);
  return count;
}

CUlaunchConfig make_config(const LaunchShape& shape, CUstream stream) noexcept {
  CUlaunchConfig config{};
  config.gridDimX = shape.grid[0];
  config.gridDimY = shape.grid[1];
  config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0];
  config.blockDimY = shape.block[1];
  config.blockDimZ = shape.block[2];
  config.sharedMemBytes = shape.shared_bytes;
  config.hStream = stream;
  return config;
}

std::uint32_t threads_of(const LaunchShape& shape) noexcept {
  return shape.block[0] * shape.block[1] * shape.block[2];
}

std::uint32_t cluster_size(const LaunchAttributes& attributes) noexcept {
  return std::uint32_t{attributes.cluster[0]} * attributes.cluster[1] * attributes.cluster[2];
}

// How many blocks of this launch the device holds at once; 0 when it cannot tell.
std::uint64_t ask_resident(const FunctionInfo& info, const LaunchShape& shape,
                           const LaunchAttributes& attributes,
                           const ContextState& context) noexcept {
  DriverScope scope(&context, true);
  int count = 0;
  if (real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, info.handle,
                                                       static_cast<int>(threads_of(shape)),
                                                       shape.shared_bytes) != CUDA_SUCCESS) {
    return 0;
  }
  std::uint64_t blocks = static_cast<std::uint64_t>(count) * context.multiprocessors;
  if (!attributes.has_cluster()) return blocks;
  CUlaunchConfig config = make_config(shape, nullptr);
  CUlaunchAttribute cluster = cluster_attribute(attributes);
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  if (real.cuOccupancyMaxActiveClusters(&clusters, info.handle, &config) != CUDA_SUCCESS) return 0;
  return std::min(blocks,
                  std::uint64_t{static_cast<unsigned>(clusters)} * cluster_size(attributes));
}

// As ask_resident(), which does not depend on the grid: the last answer is kept with its question
// in one word, so that readers need no lock.
std::uint64_t resident_blocks(const FunctionInfo& info, const LaunchShape& shape,
                              const LaunchAttributes& attributes,
                              const ContextState& context) noexcept {
  // Threads 11 bits, shared bytes 18, cluster 15; the answer has the 20 above: 32 blocks a
  // multiprocessor, some hundred of those.
  constexpr int kAnswerShift = 44;
  std::uint64_t question = threads_of(shape) | std::uint64_t{shape.shared_bytes} << 11 |
                           std::uint64_t{attributes.cluster[0]} << 29 |
                           std::uint64_t{attributes.cluster[1]} << 34 |
                           std::uint64_t{attributes.cluster[2]} << 39;
  bool is_keepable = shape.shared_bytes < (1u << 18);
  std::uint64_t kept = info.resident.load(std::memory_order_relaxed);
  if (is_keepable && kept != 0 && (kept & ((1ull << kAnswerShift) - 1)) == question) {
    return kept >> kAnswerShift;
  }
  std::uint64_t blocks = ask_resident(info, shape, attributes, context);
  if (is_keepable && blocks < (1u << 20)) {
    info.resident.store(blocks << kAnswerShift | question, std::memory_order_relaxed);
  }
  return blocks;
}

bool is_legal_cluster(const FunctionInfo& info, const LaunchShape& shape,
                      const LaunchAttributes& attributes) noexcept {
  for (int axis = 0; axis < 3; ++axis) {
    if (shape.grid[axis] % attributes.cluster[axis] != 0) return false;
  }
  return cluster_size(attributes) <= kPortableCluster || info.allows_large_clusters;
}

}  // namespace

DirectReason read_attributes(const CUlaunchConfig& config, LaunchAttributes* attributes) noexcept {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_IGNORE) continue;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      // Said twice: which one counts is the driver's business.
      if (attributes->is_cooperative) return DirectReason::kAttributes;
      attributes->is_cooperative = attribute.value.cooperative != 0;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      if (attributes->has_cluster()) return DirectReason::kAttributes;
      if (!read_cluster(attribute.value, attributes)) return DirectReason::kLimits;
    } else {
      return DirectReason::kAttributes;
    }
  }
  return DirectReason::kCount;
}

bool may_launch(const FunctionInfo& info, const LaunchShape& shape,
                const LaunchAttributes& attributes, const ContextState& context) noexcept {
  if (attributes.is_plain() || is_mutant(Mutant::kResidencyUnchecked)) return true;
  if (attributes.is_cooperative && !context.has_cooperative) return false;
  if (attributes.has_cluster() &&
      (!context.has_clusters || !is_legal_cluster(info, shape, attributes))) {
    return false;
  }
  std::uint64_t resident = resident_blocks(info, shape, attributes, context);
  if (!attributes.is_cooperative) return resident != 0;
  // 31 + 16 + 16 bits: within the limits of a grid the product does not overflow.
  return std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2] <= resident;
}

CUresult launch_now(CUfunction function, const LaunchShape& shape,
                    const LaunchAttributes& attributes, CUstream stream, void** kernel_params,
                    void** extra) noexcept {
  if (attributes.is_plain()) {
    return real.cuLaunchKernel(function, shape.grid[0], shape.grid[1], shape.grid[2],
                               shape.block[0], shape.block[1], shape.block[2], shape.shared_bytes,
                               stream, kernel_params, extra);
  }
  if (!attributes.has_cluster()) {
    return real.cuLaunchCooperativeKernel(function, shape.grid[0], shape.grid[1], shape.grid[2],
                                          shape.block[0], shape.block[1], shape.block[2],
                                          shape.shared_bytes, stream, kernel_params);
  }
  CUlaunchAttribute values[2];
  CUlaunchConfig config = make_config(shape, stream);
  config.attrs = values;
  config.numAttrs = list_attributes(attributes, values);
  return real.cuLaunchKernelEx(&config, function, kernel_params, extra);
}

CUresult set_node_attributes(CUgraphNode node, const LaunchAttributes& attributes) noexcept {
  CUlaunchAttribute values[2];
  unsigned count = list_attributes(attributes, values);
  if (attributes.is_cooperative && is_mutant(Mutant::kCooperativeLost)) return CUDA_SUCCESS;
  if (attributes.has_cluster() && is_mutant(Mutant::kClusterLost)) return CUDA_SUCCESS;
  for (unsigned i = 0; i < count; ++i) {
    CUresult result = real.cuGraphKernelNodeSetAttribute(node, values[i].id, &values[i].value);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace runtime
