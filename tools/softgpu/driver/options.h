// SPDX-License-Identifier: Apache-2.0
// The CAJETA_SOFTGPU_* environment variables, read once at the first driver call. A wrong value
// costs one line on stderr that names the legal ones, and the default is used. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/softgpu/driver/faults.h"

namespace softgpu {

enum class Order { kEarly, kLate, kRandom, kFree };
enum class CostProfile { kNone, kLinux, kWsl2 };
enum class MisusePolicy { kIgnore, kReport, kAbort };

struct Options {
  Order order = Order::kEarly;
  std::uint64_t seed = 0;  // of Order::kRandom
  CostProfile costs = CostProfile::kNone;
  bool null_executor = false;   // kernels do nothing
  int compute_capability = 80;  // 80 = 8.0
  int devices = 1;
  int driver_version = 13000;
  std::vector<EntryId> missing;  // symbols this driver lacks
  std::vector<Fault> faults;
  std::uint64_t memory_bytes = std::uint64_t{40} << 30;  // of each device
  std::uint64_t graph_node_bytes = 0;  // device memory that a node of an executable graph takes
  std::size_t queue_depth = 0;         // launches a stream holds before the next blocks; 0: any
  MisusePolicy misuse = MisusePolicy::kIgnore;
  std::string counters_path;  // empty: not asked for
  std::string log_path;
  std::string trace_path;
};

const Options& options();

// Takes over one variable. False: the value is not legal, or there is no such variable; `options`
// is unchanged.
bool set_option(std::string_view name, std::string_view text, Options* options);

}  // namespace softgpu
