// SPDX-License-Identifier: Apache-2.0
// Entries for the launch attributes of kernel nodes. Each takes the driver lock.
#include <algorithm>
#include <vector>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/graph.h"
#include "tools/softgpu/driver/launch.h"
#include "tools/softgpu/driver/module_objects.h"

namespace softgpu {
namespace {

KernelWork& kernel_of(CUgraphNode handle) {
  auto* kernel = std::get_if<KernelWork>(&node_of(handle).work);
  if (kernel == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return *kernel;
}

// Valid for graph nodes (cuda.h, CUlaunchAttributeID).
bool is_node_attribute(CUlaunchAttributeID id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return true;
    default:
      return false;
  }
}

void set_node_attribute(KernelWork& kernel, const CUlaunchAttribute& attribute) {
  if (attribute.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE &&
      attribute.value.deviceUpdatableKernelNode.deviceUpdatable != 0) {
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  KernelWork changed = kernel;  // the check may fail half way
  auto& attributes = changed.attributes;
  attributes.erase(
      std::remove_if(attributes.begin(), attributes.end(),
                     [&](const CUlaunchAttribute& old) { return old.id == attribute.id; }),
      attributes.end());
  check(set_launch_attributes(&attribute, 1, true, &changed));
  kernel = std::move(changed);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" {

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUlaunchAttributeID attr,
                                               CUlaunchAttributeValue* value_out) {
  return call(EntryId::cuGraphKernelNodeGetAttribute, [&]() -> CUresult {
    const KernelWork& kernel = kernel_of(hNode);
    if (value_out == nullptr || !is_node_attribute(attr)) return CUDA_ERROR_INVALID_VALUE;
    *value_out = {};
    for (const CUlaunchAttribute& attribute : kernel.attributes) {
      if (attribute.id == attr) *value_out = attribute.value;
    }
    if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      value_out->cooperative = kernel.cooperative ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUlaunchAttributeID attr,
                                               const CUlaunchAttributeValue* value) {
  return call(EntryId::cuGraphKernelNodeSetAttribute, [&]() -> CUresult {
    KernelWork& kernel = kernel_of(hNode);
    if (value == nullptr || !is_node_attribute(attr)) return CUDA_ERROR_INVALID_VALUE;
    CUlaunchAttribute attribute{};
    attribute.id = attr;
    attribute.value = *value;
    set_node_attribute(kernel, attribute);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  return call(EntryId::cuGraphKernelNodeCopyAttributes, [&]() -> CUresult {
    KernelWork& to = kernel_of(dst);
    const KernelWork& from = kernel_of(src);
    if (to.function->context != from.function->context) return CUDA_ERROR_INVALID_VALUE;
    to.attributes = from.attributes;
    to.cooperative = from.cooperative;
    to.cluster = from.cluster;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
