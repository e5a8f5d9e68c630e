// SPDX-License-Identifier: Apache-2.0
// The resource and cuGreenCtx* entries, and what streams say of their green context. Driver lock
// held.

#include "tools/softgpu/driver/green_context.h"

#include <algorithm>
#include <cstring>

#include "tools/softgpu/driver/context_life.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/occupancy.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/raw_enum.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {

GreenContextTable& green_contexts() {
  static auto* const table = new GreenContextTable();
  return *table;
}

DescriptorTable& resource_descriptors() {
  static auto* const table = new DescriptorTable();
  return *table;
}

Context& green_context_of(CUgreenCtx handle) {
  Context* const green = green_contexts().find(handle);
  if (green == nullptr) fail(CUDA_ERROR_INVALID_CONTEXT);
  if (!green->is_alive) fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return *green;
}

namespace {

// What a CUdevResource holds in its padding, which clients leave alone.
struct Origin {
  static constexpr std::uint64_t kMark = 0x736f667467707572;
  std::uint64_t mark = kMark;
  std::uint64_t split = 0;  // 0: of a device or a context, else the split that made it
  std::int32_t device = 0;
};
static_assert(sizeof(Origin) <= sizeof(CUdevResource::_internal_padding));

Origin origin_of(const CUdevResource& resource) {
  if (raw(resource.type) != CU_DEV_RESOURCE_TYPE_SM) fail(CUDA_ERROR_INVALID_RESOURCE_TYPE);
  Origin origin;
  std::memcpy(&origin, resource._internal_padding, sizeof origin);
  if (origin.mark != Origin::kMark) fail(CUDA_ERROR_INVALID_VALUE);
  return origin;
}

struct Granularity {
  unsigned least, alignment;
};

// cuda.h, green contexts: by compute capability.
Granularity granularity() {
  const int capability = options().compute_capability;
  if (capability >= 90) return {8, 8};
  return {capability >= 80 ? 4u : 2u, 2};
}

CUdevResource make_resource(unsigned multiprocessors, const Origin& origin) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource._internal_padding, &origin, sizeof origin);
  resource.sm = {multiprocessors, granularity().least, granularity().alignment};
  return resource;
}

CUresult get_resource(unsigned multiprocessors, CUdevice device, CUdevResource* out,
                      CUdevResourceType type) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (raw(type) != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  Origin origin;
  origin.device = device;
  *out = make_resource(multiprocessors, origin);
  return CUDA_SUCCESS;
}

unsigned multiprocessors_of(const Context& context) {
  return context.primary != nullptr ? context.multiprocessors : sm_limits().multiprocessors;
}

// Of each group that a split makes.
unsigned group_size(unsigned flags, unsigned least) {
  Granularity unit = granularity();
  if ((flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0) unit = {2, 2};
  return std::max(unit.least, (least + unit.alignment - 1) / unit.alignment * unit.alignment);
}

CUresult split(CUdevResource* result, unsigned* count, const CUdevResource* input,
               CUdevResource* remaining, unsigned flags, unsigned least) {
  constexpr unsigned kFlags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                              CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  if (count == nullptr || input == nullptr || (flags & ~kFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((flags & CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE) != 0 && !has_clusters()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Origin origin = origin_of(*input);
  const unsigned all = input->sm.smCount;
  if (origin.split != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;  // split before
  if (least > all) return CUDA_ERROR_INVALID_VALUE;
  const unsigned size = group_size(flags, least);
  const unsigned possible = all / size;
  if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned made = result == nullptr ? possible : std::min(*count, possible);
  static std::uint64_t splits = 0;
  origin.split = ++splits;
  if (result != nullptr) std::fill_n(result, made, make_resource(size, origin));
  if (remaining != nullptr) {
    const unsigned left = all - made * size;
    *remaining = left != 0 ? make_resource(left, origin) : CUdevResource{};
  }
  *count = made;
  return CUDA_SUCCESS;
}

CUresult describe(CUdevResourceDesc* out, const CUdevResource* resources, unsigned count) {
  if (out == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const Origin first = origin_of(resources[0]);
  auto descriptor = std::make_shared<ResourceDescriptor>();
  descriptor->device = first.device;
  for (unsigned i = 0; i < count; ++i) {
    const Origin origin = origin_of(resources[i]);
    const bool fits = origin.device == first.device && origin.split == first.split;
    if (!fits || (count > 1 && origin.split == 0)) {
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    descriptor->multiprocessors += resources[i].sm.smCount;
  }
  *out = resource_descriptors().add(std::move(descriptor));
  return CUDA_SUCCESS;
}

CUresult create(CUgreenCtx* out, CUdevResourceDesc handle, CUdevice device, unsigned flags) {
  if (out == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  require_device(device);
  const ResourceDescriptor* const descriptor = resource_descriptors().find(handle);
  if (descriptor == nullptr || descriptor->device != device) return CUDA_ERROR_INVALID_VALUE;
  Context& primary = primary_context(device);
  retain_primary(primary);
  Context& green = create_green_context(primary, descriptor->multiprocessors);
  green.green_handle = green_contexts().add(contexts().find_shared(green.handle));
  *out = green.green_handle;
  return CUDA_SUCCESS;
}

CUresult destroy(CUgreenCtx handle) {
  const std::shared_ptr<Context> green = green_contexts().find_shared(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  // A reset of the primary context may have ended it; the reference is still held.
  const CUresult result = green->is_alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  green_contexts().remove(handle);
  if (green->is_alive) tear_down(*green);
  contexts().remove(green->handle);
  release_primary(*green->primary);
  return result;
}

CUresult create_green_stream(CUstream* out, CUgreenCtx handle, unsigned flags, int priority) {
  Context& green = green_context_of(handle);
  if (out == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  require_usable(green);
  *out = create_stream(green, flags, priority).handle;
  return CUDA_SUCCESS;
}

CUresult get_id(CUgreenCtx handle, unsigned long long* id) {
  const Context& context = handle != nullptr ? green_context_of(handle) : exact_current_context();
  if (context.primary == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context.id;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::Context;
using softgpu::EntryId;
using softgpu::green_context_of;

extern "C" {

CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource* resource,
                                        CUdevResourceType type) {
  return call(EntryId::cuDeviceGetDevResource, [&] {
    softgpu::require_device(device);
    return softgpu::get_resource(softgpu::sm_limits().multiprocessors, device, resource, type);
  });
}

CUresult CUDAAPI cuCtxGetDevResource(CUcontext handle, CUdevResource* resource,
                                     CUdevResourceType type) {
  return call(EntryId::cuCtxGetDevResource, [&] {
    const Context& context = softgpu::exact_context_of(handle);
    return softgpu::get_resource(softgpu::multiprocessors_of(context), context.device, resource,
                                 type);
  });
}

CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* resource,
                                          CUdevResourceType type) {
  return call(EntryId::cuGreenCtxGetDevResource, [&] {
    const Context& context = green_context_of(handle);
    return softgpu::get_resource(context.multiprocessors, context.device, resource, type);
  });
}

CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* count,
                                             const CUdevResource* input, CUdevResource* remaining,
                                             unsigned flags, unsigned least) {
  return call(EntryId::cuDevSmResourceSplitByCount,
              [&] { return softgpu::split(result, count, input, remaining, flags, least); });
}

CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc* descriptor, CUdevResource* resources,
                                           unsigned count) {
  return call(EntryId::cuDevResourceGenerateDesc,
              [&] { return softgpu::describe(descriptor, resources, count); });
}

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc descriptor, CUdevice device,
                                  unsigned flags) {
  return call(EntryId::cuGreenCtxCreate,
              [&] { return softgpu::create(green, descriptor, device, flags); });
}

CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx green) {
  return call(EntryId::cuGreenCtxDestroy, [&] { return softgpu::destroy(green); });
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  return call(EntryId::cuCtxFromGreenCtx, [&]() -> CUresult {
    const Context& found = green_context_of(green);
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = found.handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event) {
  return call(EntryId::cuGreenCtxRecordEvent,
              [&] { return softgpu::record_in_context(green_context_of(green), event); });
}

CUresult CUDAAPI cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event) {
  return call(EntryId::cuGreenCtxWaitEvent,
              [&] { return softgpu::wait_in_context(green_context_of(green), event); });
}

CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags,
                                        int priority) {
  return call(EntryId::cuGreenCtxStreamCreate,
              [&] { return softgpu::create_green_stream(stream, green, flags, priority); });
}

CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx green, unsigned long long* id) {
  return call(EntryId::cuGreenCtxGetId, [&] { return softgpu::get_id(green, id); });
}

CUresult CUDAAPI cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* green) {
  return call(EntryId::cuStreamGetGreenCtx, [&]() -> CUresult {
    if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *green = softgpu::resolve_stream_any(stream, false).context->green_handle;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
