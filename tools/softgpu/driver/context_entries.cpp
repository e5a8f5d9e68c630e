// SPDX-License-Identifier: Apache-2.0
// The cuCtx* entries.

#include "tools/softgpu/driver/context_life.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/stream.h"

namespace softgpu {
namespace {

void require_flags(unsigned flags) {
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) fail(CUDA_ERROR_INVALID_VALUE);
  if ((scheduling & (scheduling - 1)) != 0) fail(CUDA_ERROR_INVALID_VALUE);
}

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  require_flags(flags);
  require_device(device);
  Context& context = create_context(device, flags);
  context_stack().push_back(&context);
  *out = context.handle;
  return CUDA_SUCCESS;
}

CUresult destroy(CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Context& context = exact_context_of(handle);
  if (context.is_primary || context.primary != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  destroy_context(context);
  return CUDA_SUCCESS;
}

CUresult push(CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack().push_back(&exact_context_of(handle));
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* out) {
  std::vector<Context*>& stack = context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = stack.back()->handle;
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult set_current(CUcontext handle) {
  std::vector<Context*>& stack = context_stack();
  Context* const context = handle == nullptr ? nullptr : &exact_context_of(handle);
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult synchronize(Context& context) {
  check(sticky_error(context));
  check(capture_forbids_context_sync(&context));
  wait_for_context(context);
  return sticky_error(context);
}

template <class T>
void set(T* out, T value) {
  if (out == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  *out = value;
}

bool is_settable(CUlimit limit) {
  return limit >= CU_LIMIT_STACK_SIZE && limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::Context;
using softgpu::current_context;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
  return call(EntryId::cuCtxCreate_v2, [&] { return softgpu::create(out, flags, device); });
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam* affinity, int count,
                                unsigned flags, CUdevice device) {
  return call(EntryId::cuCtxCreate_v3, [&]() -> CUresult {
    if (affinity != nullptr && count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return softgpu::create(out, flags, device);
  });
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned flags,
                                CUdevice device) {
  return call(EntryId::cuCtxCreate_v4, [&]() -> CUresult {
    if (params != nullptr && params->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (params != nullptr && params->numExecAffinityParams > 0) {
      return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    }
    return softgpu::create(out, flags, device);
  });
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  return call(EntryId::cuCtxDestroy_v2, [&] { return softgpu::destroy(context); });
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  return call(EntryId::cuCtxDestroy, [&] { return softgpu::destroy(context); });
}

CUresult CUDAAPI cuCtxAttach(CUcontext* out, unsigned flags) {
  return call(EntryId::cuCtxAttach, [&]() -> CUresult {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Context& context = softgpu::exact_current_context();
    ++context.attach_count;
    *out = context.handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxDetach(CUcontext handle) {
  return call(EntryId::cuCtxDetach, [&]() -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Context& context = softgpu::exact_context_of(handle);
    if (--context.attach_count > 0) return CUDA_SUCCESS;
    return softgpu::destroy(handle);
  });
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  return call(EntryId::cuCtxPushCurrent_v2, [&] { return softgpu::push(context); });
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  return call(EntryId::cuCtxPushCurrent, [&] { return softgpu::push(context); });
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* out) {
  return call(EntryId::cuCtxPopCurrent_v2, [&] { return softgpu::pop(out); });
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* out) {
  return call(EntryId::cuCtxPopCurrent, [&] { return softgpu::pop(out); });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  return call(EntryId::cuCtxSetCurrent, [&] { return softgpu::set_current(context); });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* out) {
  return call(EntryId::cuCtxGetCurrent, [&]() -> CUresult {
    Context* const context = softgpu::current_context_or_null();
    softgpu::set(out, context == nullptr ? nullptr : context->handle);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return call(EntryId::cuCtxGetDevice, [&]() -> CUresult {
    softgpu::set(device, current_context().device);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  return call(EntryId::cuCtxGetDevice_v2, [&]() -> CUresult {
    softgpu::set(device, softgpu::context_of(context).device);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned* flags) {
  return call(EntryId::cuCtxGetFlags, [&]() -> CUresult {
    softgpu::set(flags, current_context().flags);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetFlags(unsigned flags) {
  return call(EntryId::cuCtxSetFlags, [&]() -> CUresult {
    softgpu::require_flags(flags);
    current_context().flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  return call(EntryId::cuCtxGetId, [&]() -> CUresult {
    softgpu::set(id, static_cast<unsigned long long>(softgpu::exact_context_of(context).id));
    return CUDA_SUCCESS;
  });
}

// No MPS, so no context has less than the whole device.
CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType) {
  return call(EntryId::cuCtxGetExecAffinity, [&]() -> CUresult {
    if (affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
    softgpu::current_context();
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  });
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return call(EntryId::cuCtxGetApiVersion, [&]() -> CUresult {
    softgpu::context_of(context);
    softgpu::set(version, 3020u);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSynchronize() {
  return call(EntryId::cuCtxSynchronize,
              [&] { return softgpu::synchronize(softgpu::exact_current_context()); });
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context) {
  return call(EntryId::cuCtxSynchronize_v2,
              [&] { return softgpu::synchronize(softgpu::exact_context_of(context)); });
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  return call(EntryId::cuCtxSetLimit, [&]() -> CUresult {
    Context& context = softgpu::usable_context();
    if (!softgpu::is_settable(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context.limits[limit] = value;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  return call(EntryId::cuCtxGetLimit, [&]() -> CUresult {
    const Context& context = current_context();
    if (!softgpu::is_settable(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    softgpu::set(value, context.limits[limit]);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  return call(EntryId::cuCtxGetCacheConfig, [&]() -> CUresult {
    softgpu::set(config, current_context().cache_config);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config) {
  return call(EntryId::cuCtxSetCacheConfig, [&]() -> CUresult {
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    current_context().cache_config = config;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return call(EntryId::cuCtxGetSharedMemConfig, [&]() -> CUresult {
    softgpu::set(config, current_context().shared_config);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return call(EntryId::cuCtxSetSharedMemConfig, [&]() -> CUresult {
    if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
        config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    current_context();  // a real card of this kind ignores the setting
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call(EntryId::cuCtxGetStreamPriorityRange, [&]() -> CUresult {
    current_context();
    if (least != nullptr) *least = softgpu::kLeastPriority;
    if (greatest != nullptr) *greatest = softgpu::kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache() {
  return call(EntryId::cuCtxResetPersistingL2Cache, [&]() -> CUresult {
    softgpu::usable_context();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return call(EntryId::cuCtxEnablePeerAccess, [&]() -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Context& context = softgpu::usable_context();
    const Context& peer = softgpu::context_of(handle);
    if (peer.device == context.device) return CUDA_ERROR_INVALID_DEVICE;
    return context.peers.insert(&peer).second ? CUDA_SUCCESS
                                              : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext handle) {
  return call(EntryId::cuCtxDisablePeerAccess, [&]() -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Context& context = softgpu::usable_context();
    return context.peers.erase(&softgpu::context_of(handle)) == 1
               ? CUDA_SUCCESS
               : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

}  // extern "C"
