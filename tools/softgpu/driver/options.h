// SPDX-License-Identifier: Apache-2.0
// The CAJETA_SOFTGPU_* environment variables, read once at the first driver call. A wrong value
// costs one line on stderr that names the legal ones, and the default is used. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace softgpu {

enum class Order { kEarly, kLate, kRandom, kFree };
enum class CostProfile { kNone, kLinux, kWsl2 };

struct Options {
  Order order = Order::kEarly;
  std::uint64_t seed = 0;  // of Order::kRandom
  CostProfile costs = CostProfile::kNone;
  bool null_executor = false;   // kernels do nothing
  int compute_capability = 80;  // 80 = 8.0
  int devices = 1;
  int driver_version = 13000;
  std::string counters_path;  // empty: not asked for
  std::string log_path;
};

const Options& options();

}  // namespace softgpu
