// SPDX-License-Identifier: Apache-2.0
// The cuDevicePrimaryCtx* entries. The handle of a device's primary context never changes.

#include "tools/softgpu/driver/context_life.h"
#include "tools/softgpu/driver/entry.h"

namespace softgpu {

void retain_primary(Context& context) {
  if (!context.is_alive) revive(context);
  ++context.retain_count;
}

void release_primary(Context& context) {
  if (--context.retain_count == 0 && context.is_alive) tear_down(context);
}

namespace {

CUresult retain(CUcontext* out, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context& context = primary_context(device);
  retain_primary(context);
  *out = context.handle;
  return CUDA_SUCCESS;
}

CUresult release(CUdevice device) {
  Context& context = primary_context(device);
  if (context.retain_count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  release_primary(context);
  return CUDA_SUCCESS;
}

CUresult reset(CUdevice device) {
  Context& context = primary_context(device);
  if (context.is_alive) tear_down(context);
  return CUDA_SUCCESS;
}

CUresult set_flags(CUdevice device, unsigned flags) {
  Context& context = primary_context(device);
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0 ||
      (scheduling & (scheduling - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  context.flags = flags;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  return call(EntryId::cuDevicePrimaryCtxRetain, [&] { return softgpu::retain(out, device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return call(EntryId::cuDevicePrimaryCtxRelease, [&] { return softgpu::release(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call(EntryId::cuDevicePrimaryCtxRelease_v2, [&] { return softgpu::release(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return call(EntryId::cuDevicePrimaryCtxReset, [&] { return softgpu::reset(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return call(EntryId::cuDevicePrimaryCtxReset_v2, [&] { return softgpu::reset(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return call(EntryId::cuDevicePrimaryCtxSetFlags,
              [&] { return softgpu::set_flags(device, flags); });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return call(EntryId::cuDevicePrimaryCtxSetFlags_v2,
              [&] { return softgpu::set_flags(device, flags); });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return call(EntryId::cuDevicePrimaryCtxGetState, [&]() -> CUresult {
    const softgpu::Context& context = softgpu::primary_context(device);
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags;
    *active = context.is_alive ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
