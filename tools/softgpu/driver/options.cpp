// SPDX-License-Identifier: Apache-2.0
// How the values of the environment variables are taken over; settings.def is the table of them.

#include "tools/softgpu/driver/options.h"

#include <cstdlib>
#include <string_view>

#include "tools/softgpu/driver/absent.h"
#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/parse.h"

namespace softgpu {
namespace {

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

// 12040, as cuDriverGetVersion counts, or 12.4.
bool set_version(std::string_view text, Options* options) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) {
    return parse_number(text, 4000, 99990, &options->driver_version);
  }
  int major = 0, minor = 0;
  if (!parse_number(text.substr(0, dot), 4, 99, &major)) return false;
  if (!parse_number(text.substr(dot + 1), 0, 99, &minor)) return false;
  options->driver_version = 1000 * major + 10 * minor;
  return true;
}

bool set_missing(std::string_view text, Options* options) {
  return parse_missing(text, &options->missing);
}

bool set_faults(std::string_view text, Options* options) {
  return parse_faults(text, &options->faults);
}

bool set_queue_depth(std::string_view text, Options* options) {
  return parse_number<std::size_t>(text, 0, 1'000'000, &options->queue_depth);
}

bool set_memory(std::string_view text, Options* options) {
  std::uint64_t bytes = 0;
  if (!parse_bytes(text, std::uint64_t{1} << 40, &bytes) || bytes < std::uint64_t{1} << 20) {
    return false;
  }
  options->memory_bytes = bytes;
  return true;
}

bool set_graph_node_bytes(std::string_view text, Options* options) {
  return parse_bytes(text, std::uint64_t{1} << 30, &options->graph_node_bytes);
}

bool set_misuse(std::string_view text, Options* options) {
  if (text == "ignore") {
    options->misuse = MisusePolicy::kIgnore;
  } else if (text == "report") {
    options->misuse = MisusePolicy::kReport;
  } else if (text == "abort") {
    options->misuse = MisusePolicy::kAbort;
  } else {
    return false;
  }
  return true;
}

bool set_counters(std::string_view text, Options* options) {
  options->counters_path = text;
  return !text.empty();
}

bool set_log(std::string_view text, Options* options) {
  options->log_path = text;
  return !text.empty();
}

bool set_trace(std::string_view text, Options* options) {
  options->trace_path = text;
  return !text.empty();
}

struct Variable {
  const char* name;
  const char* legal;
  bool (*set)(std::string_view text, Options* options);
};

constexpr Variable kVariables[] = {
#define SOFTGPU_SETTING(name, values, purpose, set) {"CAJETA_SOFTGPU_" #name, values, set},
#include "tools/softgpu/driver/settings.def"
};

Options read_options() {
  Options options;
  for (const Variable& variable : kVariables) {
    const char* const text = std::getenv(variable.name);
    if (text == nullptr) continue;
    if (!variable.set(text, &options)) {
      say("%s=%s is not valid: use %s", variable.name, text, variable.legal);
    }
  }
  return options;
}

}  // namespace

bool set_option(std::string_view name, std::string_view text, Options* options) {
  for (const Variable& variable : kVariables) {
    if (name == variable.name) return variable.set(text, options);
  }
  return false;
}

const Options& options() {
  static const Options* const read = new Options(read_options());
  return *read;
}

}  // namespace softgpu
