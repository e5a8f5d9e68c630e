// SPDX-License-Identifier: Apache-2.0
// The capped message writer. spdlog is not used here: it allocates, throws and registers
// destructors, none of which a preloaded library may do inside a foreign process.
#include "runtime/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

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
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(used));
  }
  errno = saved_errno;
}

}  // namespace runtime
