// SPDX-License-Identifier: Apache-2.0
// The capped message writer. Not spdlog, which the tools use: docs/ARCHITECTURE.md says why.
#include "runtime/log.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "runtime/standard_error.h"

namespace runtime {
namespace {

// 32: enough for one line per distinct problem we know of, few enough to leave the program's own
// output readable.
constexpr int kMaxMessages = 32;
constinit std::atomic<int> g_messages{0};

}  // namespace

void warn(const char* format, ...) noexcept {
  int saved_errno = errno;
  if (g_messages.fetch_add(1, std::memory_order_relaxed) < kMaxMessages) {
    char line[512];
    int used = std::snprintf(line, sizeof line, "cajeta-xpu: ");
    va_list arguments;
    va_start(arguments, format);
    int wanted = std::vsnprintf(line + used, sizeof line - 1 - used, format, arguments);
    va_end(arguments);
    if (wanted > 0) used += wanted;
    if (used > static_cast<int>(sizeof line) - 2) used = sizeof line - 2;
    line[used++] = '\n';
    write_standard_error(line, static_cast<std::size_t>(used));
  }
  errno = saved_errno;
}

}  // namespace runtime
