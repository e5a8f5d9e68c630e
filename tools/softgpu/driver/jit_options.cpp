// SPDX-License-Identifier: Apache-2.0
// Option values come as void*: a pointer for buffers, the bits of a number for the rest.
#include "tools/softgpu/driver/jit_options.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tools/softgpu/driver/raw_enum.h"

namespace softgpu {

CUresult JitOptions::read(unsigned count, const CUjit_option* options, void** values) {
  start_ = std::chrono::steady_clock::now();
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    // The number of a size option is an unsigned int in the low bits.
    const auto number = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
    switch (const int option = raw(options[i]); option) {
      case CU_JIT_INFO_LOG_BUFFER:
        info_.text = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.capacity = number;
        info_.size = &values[i];
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        error_.text = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.capacity = number;
        error_.size = &values[i];
        break;
      case CU_JIT_WALL_TIME:
        wall_time_ = &values[i];
        break;
      default:
        if (option < 0 || option >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

void JitOptions::report(std::string_view info, std::string_view error) {
  fill(info_, info);
  fill(error_, error);
  if (wall_time_ == nullptr) return;
  const std::chrono::duration<float, std::milli> time = std::chrono::steady_clock::now() - start_;
  const float milliseconds = time.count();
  std::memcpy(wall_time_, &milliseconds, sizeof(milliseconds));
}

void JitOptions::fill(const Log& log, std::string_view text) {
  std::size_t length = 0;
  if (log.text != nullptr && log.capacity > 0) {
    length = std::min(text.size(), log.capacity - 1);
    std::memcpy(log.text, text.data(), length);
    log.text[length] = '\0';
  }
  if (log.size != nullptr) *log.size = reinterpret_cast<void*>(length);
}

}  // namespace softgpu
