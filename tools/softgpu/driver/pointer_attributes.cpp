// SPDX-License-Identifier: Apache-2.0
// What the driver knows of an address: cuPointerGetAttribute and its kin.

#include <cstring>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/memory.h"

namespace softgpu {
namespace {

template <class T>
void put(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

// Fills `out`. NOT_SUPPORTED: no such attribute here.
CUresult attribute_of(const Allocation& allocation, CUpointer_attribute attribute,
                      std::uint64_t address, void* out) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put(out, allocation.context->handle);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put<unsigned>(out, allocation.is_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put<CUdeviceptr>(out, address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!allocation.is_host() && allocation.kind != MemoryKind::kManaged) {
        put<void*>(out, nullptr);
        return CUDA_ERROR_INVALID_VALUE;
      }
      put<std::uint64_t>(out, address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      put<int>(out, allocation.sync_memops ? 1 : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      put<unsigned long long>(out, allocation.buffer_id);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put<bool>(out, allocation.kind == MemoryKind::kManaged);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put<int>(out, allocation.device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      put<bool>(out, false);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      put<CUdeviceptr>(out, allocation.base);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      put<std::size_t>(out, allocation.size);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put<bool>(out, true);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      put<unsigned long long>(out, 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      put<unsigned>(out, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put(out, allocation.pool);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      put<std::size_t>(out, allocation.size);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      put<void*>(out, reinterpret_cast<void*>(allocation.base));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      put<unsigned long long>(out, allocation.buffer_id);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// How many bytes an attribute takes, for cuPointerGetAttributes to clear; 0 for unknown ones.
std::size_t attribute_size(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return 8;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return 4;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return 1;
    default:
      return 0;
  }
}

// Memory that the driver did not hand out is an error here ...
CUresult get_attribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto allocation = find_allocation(address);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return attribute_of(*allocation, attribute, address, out);
}

// ... and here gives zeros (device ordinal -2), as documented.
CUresult get_attributes(unsigned count, CUpointer_attribute* attributes, void** out,
                        CUdeviceptr address) {
  if (count == 0 || attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto allocation = find_allocation(address);
  for (unsigned i = 0; i < count; ++i) {
    if (out[i] == nullptr || attribute_size(attributes[i]) == 0) return CUDA_ERROR_INVALID_VALUE;
    std::memset(out[i], 0, attribute_size(attributes[i]));
    if (allocation != nullptr) {
      attribute_of(*allocation, attributes[i], address, out[i]);
    } else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
      put<int>(out[i], -2);
    }
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto allocation = find_allocation_mutable(address);
  if (allocation == nullptr || allocation->is_host()) return CUDA_ERROR_INVALID_VALUE;
  allocation->sync_memops = *static_cast<const unsigned*>(value) != 0;
  return CUDA_SUCCESS;
}

CUresult range_attribute(void* out, std::size_t out_size, CUmem_range_attribute attribute,
                         CUdeviceptr address, std::size_t size) {
  const auto allocation = find_allocation(address, size);
  if (out == nullptr || size == 0 || allocation == nullptr ||
      allocation->kind != MemoryKind::kManaged) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      if (out_size != 4) return CUDA_ERROR_INVALID_VALUE;
      put<int>(out, 0);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      if (out_size != 4) return CUDA_ERROR_INVALID_VALUE;
      put<int>(out, CU_DEVICE_INVALID);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      if (out_size == 0 || out_size % 4 != 0) return CUDA_ERROR_INVALID_VALUE;
      for (std::size_t i = 0; i < out_size; i += 4) {
        put<int>(static_cast<std::byte*>(out) + i, CU_DEVICE_INVALID);
      }
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuPointerGetAttribute(void* out, CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  return call(EntryId::cuPointerGetAttribute,
              [&] { return softgpu::get_attribute(out, attribute, address); });
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** out,
                                        CUdeviceptr address) {
  return call(EntryId::cuPointerGetAttributes,
              [&] { return softgpu::get_attributes(count, attributes, out, address); });
}

CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  return call(EntryId::cuPointerSetAttribute,
              [&] { return softgpu::set_attribute(value, attribute, address); });
}

CUresult CUDAAPI cuMemRangeGetAttribute(void* out, size_t out_size, CUmem_range_attribute attribute,
                                        CUdeviceptr address, size_t size) {
  return call(EntryId::cuMemRangeGetAttribute,
              [&] { return softgpu::range_attribute(out, out_size, attribute, address, size); });
}

CUresult CUDAAPI cuMemRangeGetAttributes(void** out, size_t* out_sizes,
                                         CUmem_range_attribute* attributes, size_t count,
                                         CUdeviceptr address, size_t size) {
  return call(EntryId::cuMemRangeGetAttributes, [&]() -> CUresult {
    if (out == nullptr || out_sizes == nullptr || attributes == nullptr || count == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; ++i) {
      softgpu::check(softgpu::range_attribute(out[i], out_sizes[i], attributes[i], address, size));
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
