// SPDX-License-Identifier: Apache-2.0
// Allocation and release of device, pinned, registered and managed memory. Frees wait for the
// context: what is pending may use the memory.

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

constexpr std::size_t kPitchAlign = 512;

CUresult allocate_device(CUdeviceptr* out, std::size_t size) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context& context = usable_context();
  check(capture_forbids_unsafe());
  *out = allocate(context, size, MemoryKind::kDevice)->base;
  return CUDA_SUCCESS;
}

CUresult allocate_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
                        unsigned element_size) {
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element_size != 4 && element_size != 8 && element_size != 16) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t rounded = (width + kPitchAlign - 1) / kPitchAlign * kPitchAlign;
  if (rounded < width || height > ~std::size_t{0} / rounded) return CUDA_ERROR_OUT_OF_MEMORY;
  check(allocate_device(out, rounded * height));
  *pitch = rounded;
  return CUDA_SUCCESS;
}

CUresult bad_free(CUresult code) {
  note_misuse(Misuse::kFree);
  return code;
}

// A freed range must not be in use: wait for everything that was enqueued.
CUresult free_after_work(std::uint64_t base, const Allocation& allocation) {
  check(capture_forbids_unsafe());
  Context& context = *allocation.context;
  note_pending_work(context);
  wait_for_context(context);
  // Another thread may have freed it meanwhile.
  if (!release(base)) return CUDA_ERROR_INVALID_VALUE;
  leave_pool(allocation);
  return CUDA_SUCCESS;
}

CUresult free_device(CUdeviceptr address) {
  Context& context = usable_context();
  if (address == 0) return CUDA_SUCCESS;
  const auto allocation = find_allocation(address);
  if (allocation == nullptr || allocation->base != address || allocation->is_freed_in_order ||
      (allocation->kind != MemoryKind::kDevice && allocation->kind != MemoryKind::kPool &&
       allocation->kind != MemoryKind::kManaged)) {
    return bad_free(CUDA_ERROR_INVALID_VALUE);
  }
  check(free_after_work(address, *allocation));
  return context.sticky_error;
}

CUresult allocate_host(void** out, std::size_t size, unsigned flags) {
  constexpr unsigned kAll =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (out == nullptr || (flags & ~kAll) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context& context = usable_context();
  check(capture_forbids_unsafe());
  if (size == 0) {
    *out = nullptr;
    return CUDA_SUCCESS;
  }
  *out = allocate(context, size, MemoryKind::kPinned, flags)->bytes;
  return CUDA_SUCCESS;
}

CUresult free_host(void* memory) {
  usable_context();
  if (memory == nullptr) return CUDA_SUCCESS;
  const auto base = reinterpret_cast<std::uint64_t>(memory);
  const auto allocation = find_allocation(base);
  if (allocation == nullptr || allocation->base != base ||
      allocation->kind != MemoryKind::kPinned) {
    return bad_free(CUDA_ERROR_INVALID_VALUE);
  }
  return free_after_work(base, *allocation);
}

CUresult register_memory(void* memory, std::size_t size, unsigned flags) {
  constexpr unsigned kAll = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                            CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (memory == nullptr || size == 0 || (flags & ~kAll) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Context& context = usable_context();
  check(capture_forbids_unsafe());
  if (is_device_address(reinterpret_cast<std::uint64_t>(memory))) return CUDA_ERROR_INVALID_VALUE;
  register_host(context, memory, size, flags);
  return CUDA_SUCCESS;
}

CUresult unregister_memory(void* memory) {
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  usable_context();
  const auto base = reinterpret_cast<std::uint64_t>(memory);
  const auto allocation = find_allocation(base);
  if (allocation == nullptr || allocation->base != base ||
      allocation->kind != MemoryKind::kRegistered) {
    return bad_free(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  }
  return free_after_work(base, *allocation);
}

std::shared_ptr<const Allocation> host_allocation(const void* memory) {
  auto allocation = find_allocation(reinterpret_cast<std::uint64_t>(memory));
  if (allocation == nullptr || !allocation->is_host()) fail(CUDA_ERROR_INVALID_VALUE);
  return allocation;
}

CUresult host_device_pointer(CUdeviceptr* out, void* memory, unsigned flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  usable_context();
  host_allocation(memory);
  *out = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

CUresult host_flags(unsigned* out, void* memory) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  usable_context();
  // Unified addressing maps all pinned memory, whatever was asked for.
  *out = host_allocation(memory)->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

CUresult allocate_managed(CUdeviceptr* out, std::size_t size, unsigned flags) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context& context = usable_context();
  check(capture_forbids_unsafe());
  *out = allocate(context, size, MemoryKind::kManaged, flags)->base;
  return CUDA_SUCCESS;
}

CUresult memory_info(std::size_t* free_bytes, std::size_t* total) {
  const Context& context = usable_context();
  if (free_bytes == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *total = total_memory(context.device);
  *free_bytes = *total - bytes_in_use(context.device);
  return CUDA_SUCCESS;
}

CUresult address_range(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  usable_context();
  const auto allocation = find_allocation(address);
  if (allocation == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation->base;
  if (size != nullptr) *size = allocation->size;
  return CUDA_SUCCESS;
}

// Managed memory is where the host is: prefetching and advice are only checked.
CUresult check_managed(CUdeviceptr address, std::size_t size) {
  const auto allocation = find_allocation(address, size);
  if (size == 0 || allocation == nullptr || allocation->kind != MemoryKind::kManaged) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult check_location(CUmemLocation location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      require_device(location.id);
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUmemLocation location_of(CUdevice device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == CU_DEVICE_CPU ? 0 : device;
  return location;
}

CUresult prefetch(Stream& stream, CUdeviceptr address, std::size_t size, CUmemLocation location) {
  check(check_managed(address, size));
  check(check_location(location));
  check(capture_forbids_uncapturable(stream));
  return submit(stream, EmptyWork{});
}

CUresult advise(CUdeviceptr address, std::size_t size, CUmem_advise advice,
                CUmemLocation location) {
  usable_context();
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  check(check_managed(address, size));
  const bool ignores_location = advice == CU_MEM_ADVISE_SET_READ_MOSTLY ||
                                advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
                                advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  return ignores_location ? CUDA_SUCCESS : check_location(location);
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  return call(EntryId::cuMemAlloc_v2, [&] { return softgpu::allocate_device(out, size); });
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                    unsigned element_size) {
  return call(EntryId::cuMemAllocPitch_v2,
              [&] { return softgpu::allocate_pitch(out, pitch, width, height, element_size); });
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  return call(EntryId::cuMemFree_v2, [&] { return softgpu::free_device(address); });
}

CUresult CUDAAPI cuMemAllocHost_v2(void** out, size_t size) {
  return call(EntryId::cuMemAllocHost_v2, [&] { return softgpu::allocate_host(out, size, 0); });
}

CUresult CUDAAPI cuMemHostAlloc(void** out, size_t size, unsigned flags) {
  return call(EntryId::cuMemHostAlloc, [&] { return softgpu::allocate_host(out, size, flags); });
}

CUresult CUDAAPI cuMemFreeHost(void* memory) {
  return call(EntryId::cuMemFreeHost, [&] { return softgpu::free_host(memory); });
}

CUresult CUDAAPI cuMemHostRegister_v2(void* memory, size_t size, unsigned flags) {
  return call(EntryId::cuMemHostRegister_v2,
              [&] { return softgpu::register_memory(memory, size, flags); });
}

CUresult CUDAAPI cuMemHostRegister(void* memory, size_t size, unsigned flags) {
  return call(EntryId::cuMemHostRegister,
              [&] { return softgpu::register_memory(memory, size, flags); });
}

CUresult CUDAAPI cuMemHostUnregister(void* memory) {
  return call(EntryId::cuMemHostUnregister, [&] { return softgpu::unregister_memory(memory); });
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* memory, unsigned flags) {
  return call(EntryId::cuMemHostGetDevicePointer_v2,
              [&] { return softgpu::host_device_pointer(out, memory, flags); });
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned* out, void* memory) {
  return call(EntryId::cuMemHostGetFlags, [&] { return softgpu::host_flags(out, memory); });
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned flags) {
  return call(EntryId::cuMemAllocManaged,
              [&] { return softgpu::allocate_managed(out, size, flags); });
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  return call(EntryId::cuMemGetInfo_v2, [&] { return softgpu::memory_info(free_bytes, total); });
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return call(EntryId::cuMemGetAddressRange_v2,
              [&] { return softgpu::address_range(base, size, address); });
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice,
                             CUdevice device) {
  return call(EntryId::cuMemAdvise,
              [&] { return softgpu::advise(address, size, advice, softgpu::location_of(device)); });
}

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice,
                                CUmemLocation location) {
  return call(EntryId::cuMemAdvise_v2,
              [&] { return softgpu::advise(address, size, advice, location); });
}

}  // extern "C"

SOFTGPU_TWIN_ENTRY(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz,
                   (CUdeviceptr address, size_t size, CUdevice device, CUstream stream), {
                     return softgpu::prefetch(softgpu::resolve_stream(stream, kPerThread), address,
                                              size, softgpu::location_of(device));
                   })

SOFTGPU_TWIN_ENTRY(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz,
                   (CUdeviceptr address, size_t size, CUmemLocation location, unsigned flags,
                    CUstream stream),
                   {
                     if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
                     return softgpu::prefetch(softgpu::resolve_stream(stream, kPerThread), address,
                                              size, location);
                   })
