// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/sanitizers.h"

#include <algorithm>
#include <cstdlib>

namespace cli {
namespace {

struct Need {
  Sanitizer sanitizer;
  const char* name;
  const char* variable;
  const char* option;
  const char* value;
  const char* reason;
};

constexpr Need kNeeds[] = {
    // The shared runtime refuses to start where another library stands before it, for fear of a
    // foreign malloc there. Ours has none. Preloading the runtime before ours would do for this
    // program, and have the leaks of every program that it starts end that program with an error.
    {Sanitizer::kAddress, "AddressSanitizer", "ASAN_OPTIONS", "verify_asan_link_order", "0",
     "refuses to start behind a preloaded library"},
    // The runtime sees memcpy in a library that it does not know, and not the locks around it: what
    // one thread queues and another submits is no race.
    {Sanitizer::kThread, "ThreadSanitizer", "TSAN_OPTIONS", "ignore_noninstrumented_modules", "1",
     "takes work that another thread submits for a race"},
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Set by the user, who is right either way.
bool is_given(const Need& need) {
  return variable(need.variable).find(need.option) != std::string::npos;
}

std::string setting(const Need& need) {
  return std::string(need.option) + "=" + need.value;
}

}  // namespace

Environment sanitizer_environment() {
  Environment changes;
  for (const Need& need : kNeeds) {
    if (is_given(need)) continue;
    const std::string before = variable(need.variable);
    changes.emplace_back(need.variable, before + (before.empty() ? "" : ":") + setting(need));
  }
  return changes;
}

std::string sanitizer_advice(const ProgramFile& program) {
  for (const Need& need : kNeeds) {
    if (need.sanitizer != program.sanitizer) continue;
    // The runtime that is part of the program comes first by itself.
    const bool is_first = need.sanitizer == Sanitizer::kAddress && !program.has_shared_sanitizer;
    if (is_first || variable(need.variable).find(setting(need)) != std::string::npos) return "";
    const std::string what =
        is_given(need) ? "set " : "`cajeta-xpu run` sets, and by hand you set ";
    return std::string(need.name) + " " + need.reason + ": " + what + need.variable + "=" +
           setting(need);
  }
  return "";
}

}  // namespace cli
