// SPDX-License-Identifier: Apache-2.0
// The launch entries of CUDA 3: block shape, shared size and arguments are set on the function, one
// call at a time.
#include <cstring>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/launch.h"
#include "tools/softgpu/driver/stream.h"

namespace softgpu {
namespace {

// As many as the parameter space of sm_70 and newer holds.
constexpr std::size_t kMaxParameterBytes = 32764;

LegacyLaunch& legacy_of(CUfunction handle) {
  FunctionObject& function = function_of(handle, current_context());
  if (function.legacy == nullptr) function.legacy = std::make_unique<LegacyLaunch>();
  return *function.legacy;
}

CUresult set_parameter(CUfunction handle, int offset, const void* value, std::size_t size) {
  LegacyLaunch& legacy = legacy_of(handle);
  if (offset < 0 || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto start = static_cast<std::size_t>(offset);
  if (start > kMaxParameterBytes || size > kMaxParameterBytes - start)
    return CUDA_ERROR_INVALID_VALUE;
  if (legacy.parameters.size() < start + size) legacy.parameters.resize(start + size);
  std::memcpy(legacy.parameters.data() + start, value, size);
  return CUDA_SUCCESS;
}

CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream) {
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  LegacyLaunch& legacy = legacy_of(handle);
  const LaunchShape shape{{static_cast<unsigned>(width), static_cast<unsigned>(height), 1},
                          {legacy.block[0], legacy.block[1], legacy.block[2]},
                          legacy.shared_bytes,
                          false};
  std::size_t size = legacy.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, legacy.parameters.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  return launch(resolve_stream(stream, false), handle, shape, nullptr, extra, {});
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;
using softgpu::legacy_of;
using softgpu::set_parameter;

extern "C" {

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return call(EntryId::cuFuncSetBlockShape, [&]() -> CUresult {
    softgpu::LegacyLaunch& legacy = legacy_of(function);
    if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
    legacy.block[0] = static_cast<unsigned>(x);
    legacy.block[1] = static_cast<unsigned>(y);
    legacy.block[2] = static_cast<unsigned>(z);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncSetSharedSize(CUfunction function, unsigned int bytes) {
  return call(EntryId::cuFuncSetSharedSize, [&]() -> CUresult {
    legacy_of(function).shared_bytes = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuParamSetSize(CUfunction function, unsigned int bytes) {
  return call(EntryId::cuParamSetSize, [&]() -> CUresult {
    softgpu::LegacyLaunch& legacy = legacy_of(function);
    if (bytes > softgpu::kMaxParameterBytes) return CUDA_ERROR_INVALID_VALUE;
    legacy.parameters.resize(bytes);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return call(EntryId::cuParamSeti,
              [&] { return set_parameter(function, offset, &value, sizeof(value)); });
}

CUresult CUDAAPI cuParamSetf(CUfunction function, int offset, float value) {
  return call(EntryId::cuParamSetf,
              [&] { return set_parameter(function, offset, &value, sizeof(value)); });
}

CUresult CUDAAPI cuParamSetv(CUfunction function, int offset, void* value, unsigned int bytes) {
  return call(EntryId::cuParamSetv, [&] { return set_parameter(function, offset, value, bytes); });
}

CUresult CUDAAPI cuLaunch(CUfunction function) {
  return call(EntryId::cuLaunch, [&] { return softgpu::launch_grid(function, 1, 1, nullptr); });
}

CUresult CUDAAPI cuLaunchGrid(CUfunction function, int width, int height) {
  return call(EntryId::cuLaunchGrid,
              [&] { return softgpu::launch_grid(function, width, height, nullptr); });
}

CUresult CUDAAPI cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return call(EntryId::cuLaunchGridAsync,
              [&] { return softgpu::launch_grid(function, width, height, stream); });
}

}  // extern "C"
