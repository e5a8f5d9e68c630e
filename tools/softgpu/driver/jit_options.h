// SPDX-License-Identifier: Apache-2.0
// The options of cuModuleLoadDataEx, cuLibraryLoadData and cuLink*: all known ones are accepted,
// those that ask for logs are answered. Any thread; an object belongs to one call or one link.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <string_view>

namespace softgpu {

class JitOptions {
 public:
  // INVALID_VALUE for an option that CUDA 13.0 does not have. `values` must stay valid until
  // report().
  CUresult read(unsigned count, const CUjit_option* options, void** values);
  bool has_error_log() const { return error_.text != nullptr; }
  // Fills the caller's log buffers, cut to their sizes, their filled sizes and the wall time.
  void report(std::string_view info, std::string_view error);

 private:
  struct Log {
    char* text = nullptr;
    std::size_t capacity = 0;
    void** size = nullptr;  // in: capacity, out: bytes filled
  };
  static void fill(const Log& log, std::string_view text);

  Log info_, error_;
  void** wall_time_ = nullptr;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace softgpu
