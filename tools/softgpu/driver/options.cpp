// SPDX-License-Identifier: Apache-2.0
// One table of environment variables: name, legal values, and how a value is taken over.

#include "tools/softgpu/driver/options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace softgpu {
namespace {

template <class Number>
bool parse_number(std::string_view text, Number low, Number high, Number* value) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (parsed < low || parsed > high) return false;
  *value = parsed;
  return true;
}

bool set_order(std::string_view text, Options* options) {
  constexpr std::string_view kRandomPrefix = "random:";
  if (text == "early") {
    options->order = Order::kEarly;
  } else if (text == "late") {
    options->order = Order::kLate;
  } else if (text == "free") {
    options->order = Order::kFree;
  } else if (text.substr(0, kRandomPrefix.size()) == kRandomPrefix) {
    if (!parse_number<std::uint64_t>(text.substr(kRandomPrefix.size()), 0, ~0ull, &options->seed)) {
      return false;
    }
    options->order = Order::kRandom;
  } else {
    return false;
  }
  return true;
}

bool set_costs(std::string_view text, Options* options) {
  if (text == "none") {
    options->costs = CostProfile::kNone;
  } else if (text == "linux") {
    options->costs = CostProfile::kLinux;
  } else if (text == "wsl2") {
    options->costs = CostProfile::kWsl2;
  } else {
    return false;
  }
  return true;
}

bool set_executor(std::string_view text, Options* options) {
  if (text != "null" && text != "ptx") return false;
  options->null_executor = text == "null";
  return true;
}

bool set_compute_capability(std::string_view text, Options* options) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return false;
  int major = 0, minor = 0;
  if (!parse_number(text.substr(0, dot), 3, 12, &major)) return false;
  if (!parse_number(text.substr(dot + 1), 0, 9, &minor)) return false;
  options->compute_capability = 10 * major + minor;
  return true;
}

bool set_devices(std::string_view text, Options* options) {
  return parse_number(text, 0, 16, &options->devices);
}

bool set_version(std::string_view text, Options* options) {
  return parse_number(text, 4000, 99990, &options->driver_version);
}

bool set_counters(std::string_view text, Options* options) {
  options->counters_path = text;
  return !text.empty();
}

bool set_log(std::string_view text, Options* options) {
  options->log_path = text;
  return !text.empty();
}

struct Variable {
  const char* name;
  const char* legal;
  bool (*set)(std::string_view text, Options* options);
};

constexpr Variable kVariables[] = {
    {"CAJETA_SOFTGPU_ORDER", "early (default), late, random:SEED or free", set_order},
    {"CAJETA_SOFTGPU_COSTS", "none (default), linux or wsl2", set_costs},
    {"CAJETA_SOFTGPU_EXECUTOR", "ptx (default) or null", set_executor},
    {"CAJETA_SOFTGPU_CC", "a compute capability from 3.0 to 12.9 (default 8.0)",
     set_compute_capability},
    {"CAJETA_SOFTGPU_DEVICES", "a number of devices from 0 to 16 (default 1)", set_devices},
    {"CAJETA_SOFTGPU_VERSION", "a CUDA version from 4000 to 99990 (default 13000)", set_version},
    {"CAJETA_SOFTGPU_COUNTERS", "a file to write, %p is the process id", set_counters},
    {"CAJETA_SOFTGPU_LOG", "a file to write, %p is the process id", set_log},
};

Options read_options() {
  Options options;
  for (const Variable& variable : kVariables) {
    const char* const text = std::getenv(variable.name);
    if (text == nullptr) continue;
    if (!variable.set(text, &options)) {
      std::fprintf(stderr, "softgpu: %s=%s is not valid: use %s\n", variable.name, text,
                   variable.legal);
    }
  }
  return options;
}

}  // namespace

const Options& options() {
  static const Options* const read = new Options(read_options());
  return *read;
}

}  // namespace softgpu
