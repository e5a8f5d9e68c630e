// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: values of environment variables, of the library and of softgpu, and patterns of
// report paths. The first byte chooses the variable. A refused value must leave the defaults.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "profiler/report_path.h"
#include "runtime/options.h"
#include "tools/softgpu/driver/options.h"

namespace {

constexpr const char* kLibraryNames[] = {
    "CAJETA_XPU_DEFER",     "CAJETA_XPU_DEFER_DEADLINE_US",
    "CAJETA_XPU_DISABLE",   "CAJETA_XPU_GRAPH_BYTES",
    "CAJETA_XPU_REPORT",    "CAJETA_XPU_DRIVER_PROFILE",
    "CUDA_LAUNCH_BLOCKING", "CAJETA_XPU_LOG_LOOKUPS",
};
constexpr const char* kSoftgpuNames[] = {
    "CAJETA_SOFTGPU_ORDER",   "CAJETA_SOFTGPU_COSTS",    "CAJETA_SOFTGPU_EXECUTOR",
    "CAJETA_SOFTGPU_CC",      "CAJETA_SOFTGPU_DEVICES",  "CAJETA_SOFTGPU_VERSION",
    "CAJETA_SOFTGPU_MISSING", "CAJETA_SOFTGPU_FAIL",     "CAJETA_SOFTGPU_MEMORY",
    "CAJETA_SOFTGPU_MISUSE",  "CAJETA_SOFTGPU_COUNTERS", "CAJETA_SOFTGPU_GRAPH_NODE_BYTES",
    "CAJETA_SOFTGPU_LOG",
};
constexpr std::size_t kLibraryCount = std::size(kLibraryNames);
constexpr std::size_t kSoftgpuCount = std::size(kSoftgpuNames);

void require(bool claim) {
  if (!claim) __builtin_trap();
}

void read_library(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);
  static runtime::Environment environment;
  runtime::read_environment(&environment);
  const runtime::Options options = runtime::read_options(&environment);
  require(options.deadline_us >= 1 && options.deadline_us <= 3'600'000'000ull);
  require(options.graph_bytes <= 1ull << 40);
  unsetenv(name);
}

void read_softgpu(const char* name, const std::string& value) {
  softgpu::Options options;
  const softgpu::Options defaults;
  const bool is_legal = softgpu::set_option(name, value, &options);
  require(options.devices >= 0 && options.devices <= 16);
  require(options.driver_version >= 4000 && options.driver_version <= 99990);
  require(options.memory_bytes >= 1u << 20 && options.memory_bytes <= 1ull << 40);
  require(options.compute_capability >= 30 && options.compute_capability <= 129);
  for (const softgpu::Fault& fault : options.faults) {
    require(fault.first >= 1 && fault.first <= fault.last && fault.code != CUDA_SUCCESS);
  }
  if (is_legal) return;
  require(options.faults.empty() && options.missing.empty() && options.order == defaults.order &&
          options.driver_version == defaults.driver_version &&
          options.memory_bytes == defaults.memory_bytes);
}

void expand(const std::string& pattern) {
  char path[96];
  std::memset(path, '?', sizeof path);
  const profiler::PathValues values{12345, "host", "7", "program"};
  if (profiler::expand_path(pattern.c_str(), values, path, sizeof path)) {
    require(std::memchr(path, 0, sizeof path) != nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t which = data[0] % (kLibraryCount + kSoftgpuCount + 1);
  std::string value(reinterpret_cast<const char*>(data + 1), size - 1);
  if (which < kLibraryCount) {
    read_library(kLibraryNames[which], value);
  } else if (which < kLibraryCount + kSoftgpuCount) {
    read_softgpu(kSoftgpuNames[which - kLibraryCount], value);
  } else {
    expand(value);
  }
  return 0;
}
