// SPDX-License-Identifier: Apache-2.0
// The error codes of the driver with their names and sentences. Constants only; any thread.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <string_view>

namespace softgpu {

struct ErrorRow {
  CUresult code;
  const char* name;
  const char* text;
};

// Null: no such code.
const ErrorRow* find_error(CUresult code);
// By its name, with or without CUDA_ERROR_ before it.
const ErrorRow* find_error(std::string_view name);

}  // namespace softgpu
