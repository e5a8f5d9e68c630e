// SPDX-License-Identifier: Apache-2.0
// Memory pools and stream-ordered allocation. An allocation is usable from the call on, its memory
// is given back when the stream reaches the free. Driver lock held.

#include <map>

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

struct Pool {
  CUmemoryPool handle = nullptr;
  CUdevice device = 0;
  bool is_default = false;
  int reuse_by_event = 1, reuse_opportunistic = 1, reuse_internal = 1;
  cuuint64_t release_threshold = 0;
  cuuint64_t used = 0, used_high = 0;  // bytes
  std::map<CUdevice, CUmemAccess_flags> access;
};

using PoolTable = ObjectTable<Pool, CUmemoryPool, HandleKind::kPool>;
PoolTable& pools() {
  static auto* const table = new PoolTable();
  return *table;
}

std::shared_ptr<Pool> new_pool(CUdevice device) {
  auto pool = std::make_shared<Pool>();
  pool->device = device;
  pool->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  pool->handle = pools().add(pool);
  return pool;
}

struct DevicePools {
  CUmemoryPool standard = nullptr, current = nullptr;
};

DevicePools& pools_of(CUdevice device) {
  require_device(device);
  static auto* const all = new std::map<CUdevice, DevicePools>();
  DevicePools& entry = (*all)[device];
  if (entry.standard == nullptr) {
    const auto pool = new_pool(device);
    pool->is_default = true;
    entry.standard = entry.current = pool->handle;
  }
  return entry;
}

// By the names of CUDA 13. Only device pools exist here.
DevicePools& pools_at(const CUmemLocation* location, CUmemAllocationType type) {
  if (location == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  return pools_of(location->id);
}

Pool& pool_of(CUmemoryPool handle) {
  Pool* const pool = pools().find(handle);
  if (pool == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return *pool;
}

CUresult allocate_in_order(CUdeviceptr* out, std::size_t size, CUmemoryPool handle,
                           Stream& stream) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  check(capture_forbids_uncapturable(stream));
  if (stream.kind == StreamKind::kLegacy) check(capture_forbids_legacy(*stream.context));
  if (handle == nullptr) handle = pools_of(stream.context->device).current;
  Pool& pool = pool_of(handle);
  const auto allocation = allocate(owner_of(*stream.context), size, MemoryKind::kPool);
  allocation->pool = handle;
  pool.used += size;
  pool.used_high = std::max(pool.used_high, pool.used);
  *out = allocation->base;
  return CUDA_SUCCESS;
}

CUresult free_in_order(CUdeviceptr address, Stream& stream) {
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  check(capture_forbids_uncapturable(stream));
  const auto allocation = find_allocation_mutable(address);
  if (allocation == nullptr || allocation->base != address || allocation->is_freed_in_order ||
      (allocation->kind != MemoryKind::kPool && allocation->kind != MemoryKind::kDevice)) {
    note_misuse(Misuse::kFree);
    return CUDA_ERROR_INVALID_VALUE;
  }
  allocation->is_freed_in_order = true;
  leave_pool(*allocation);
  return submit(stream, FreeAsyncWork{address});
}

CUresult create_pool(CUmemoryPool* out, const CUmemPoolProps* properties) {
  if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  require_device(properties->location.id);
  *out = new_pool(properties->location.id)->handle;
  return CUDA_SUCCESS;
}

CUresult destroy_pool(CUmemoryPool handle) {
  Pool& pool = pool_of(handle);
  if (pool.is_default) return CUDA_ERROR_INVALID_VALUE;
  DevicePools& entry = pools_of(pool.device);
  if (entry.current == handle) entry.current = entry.standard;
  pools().remove(handle);
  return CUDA_SUCCESS;
}

CUresult set_attribute(Pool& pool, CUmemPool_attribute attribute, const void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto flag = [value] { return *static_cast<const int*>(value) != 0 ? 1 : 0; };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool.reuse_by_event = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool.reuse_opportunistic = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool.reuse_internal = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool.release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool.used_high = pool.used;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult get_attribute(const Pool& pool, CUmemPool_attribute attribute, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* const flag = static_cast<int*>(value);
  auto* const bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      *flag = pool.reuse_by_event;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *flag = pool.reuse_opportunistic;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *flag = pool.reuse_internal;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *bytes = pool.release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:  // nothing is kept: reserved is what is used
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = pool.used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *bytes = pool.used_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_access(Pool& pool, const CUmemAccessDesc* map, std::size_t count) {
  if (map == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    require_device(map[i].location.id);
    if (map[i].location.id == pool.device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (std::size_t i = 0; i < count; ++i) pool.access[map[i].location.id] = map[i].flags;
  return CUDA_SUCCESS;
}

CUresult get_access(const Pool& pool, CUmemAccess_flags* flags, const CUmemLocation* location) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  require_device(location->id);
  const auto found = pool.access.find(location->id);
  *flags = found == pool.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
  return CUDA_SUCCESS;
}

}  // namespace

void leave_pool(const Allocation& allocation) {
  if (Pool* const pool = pools().find(allocation.pool)) pool->used -= allocation.size;
}
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  return call(EntryId::cuMemPoolCreate, [&] { return softgpu::create_pool(out, properties); });
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
  return call(EntryId::cuMemPoolDestroy, [&] { return softgpu::destroy_pool(pool); });
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return call(EntryId::cuMemPoolTrimTo, [&]() -> CUresult {
    softgpu::pool_of(pool);  // nothing is kept, so there is nothing to trim
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void* value) {
  return call(EntryId::cuMemPoolSetAttribute,
              [&] { return softgpu::set_attribute(softgpu::pool_of(pool), attribute, value); });
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                       void* value) {
  return call(EntryId::cuMemPoolGetAttribute,
              [&] { return softgpu::get_attribute(softgpu::pool_of(pool), attribute, value); });
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return call(EntryId::cuMemPoolSetAccess,
              [&] { return softgpu::set_access(softgpu::pool_of(pool), map, count); });
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool,
                                    CUmemLocation* location) {
  return call(EntryId::cuMemPoolGetAccess,
              [&] { return softgpu::get_access(softgpu::pool_of(pool), flags, location); });
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return call(EntryId::cuDeviceGetDefaultMemPool, [&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = softgpu::pools_of(device).standard;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  return call(EntryId::cuDeviceGetMemPool, [&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = softgpu::pools_of(device).current;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return call(EntryId::cuDeviceSetMemPool, [&]() -> CUresult {
    softgpu::DevicePools& entry = softgpu::pools_of(device);
    if (softgpu::pool_of(pool).device != device) return CUDA_ERROR_INVALID_VALUE;
    entry.current = pool;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                        CUmemAllocationType type) {
  return call(EntryId::cuMemGetDefaultMemPool, [&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = softgpu::pools_at(location, type).standard;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location,
                                 CUmemAllocationType type) {
  return call(EntryId::cuMemGetMemPool, [&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = softgpu::pools_at(location, type).current;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                 CUmemoryPool pool) {
  return call(EntryId::cuMemSetMemPool, [&]() -> CUresult {
    softgpu::DevicePools& entry = softgpu::pools_at(location, type);
    if (softgpu::pool_of(pool).device != location->id) return CUDA_ERROR_INVALID_VALUE;
    entry.current = pool;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

SOFTGPU_TWIN_ENTRY(cuMemAllocAsync, cuMemAllocAsync_ptsz,
                   (CUdeviceptr * out, size_t size, CUstream stream), {
                     return softgpu::allocate_in_order(out, size, nullptr,
                                                       softgpu::resolve_stream(stream, kPerThread));
                   })

SOFTGPU_TWIN_ENTRY(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz,
                   (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream), {
                     if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     return softgpu::allocate_in_order(out, size, pool,
                                                       softgpu::resolve_stream(stream, kPerThread));
                   })

SOFTGPU_TWIN_ENTRY(cuMemFreeAsync, cuMemFreeAsync_ptsz, (CUdeviceptr address, CUstream stream), {
  return softgpu::free_in_order(address, softgpu::resolve_stream(stream, kPerThread));
})
