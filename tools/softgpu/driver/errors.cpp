// SPDX-License-Identifier: Apache-2.0
// The entries that name and describe error codes. No state.

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/error_names.h"

namespace softgpu {
namespace {

CUresult describe(CUresult code, const char* ErrorRow::*field, const char** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorRow* const row = find_error(code);
  *out = row == nullptr ? nullptr : row->*field;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::EntryId;

extern "C" CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  return softgpu::call_unlocked(EntryId::cuGetErrorName, [&] {
    return softgpu::describe(error, &softgpu::ErrorRow::name, name);
  });
}

extern "C" CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  return softgpu::call_unlocked(EntryId::cuGetErrorString, [&] {
    return softgpu::describe(error, &softgpu::ErrorRow::text, text);
  });
}
