// SPDX-License-Identifier: Apache-2.0
// What the name of a library says. Apart from the list of those that are loaded, as the command
// line tool needs no such list.
#include <cstring>
#include <string_view>

#include "profiler/module_list.h"

namespace profiler {

const char* base_name(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool is_cuda_library(const char* path) noexcept {
  constexpr std::string_view kPrefixes[] = {
      "libcuda.so",      "libcudart", "libcudadebugger", "libcublas",   "libcudnn",
      "libcufft",        "libcufile", "libcurand",       "libcusolver", "libcusparse",
      "libcutensor",     "libcupti",  "libnccl.so",      "libnvrtc",    "libnvJitLink",
      "libnvjpeg",       "libnpp",    "libnvToolsExt",   "libnvidia-",  "libnvptxcompiler",
      "libcaffe2_nvrtc", "libcudla",
  };
  const std::string_view name = base_name(path);
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace profiler
