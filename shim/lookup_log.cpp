// SPDX-License-Identifier: Apache-2.0
// Writes whole lines by one write(2) each to a file opened for appending, so that threads and
// forked children do not mix theirs. No lock, no allocation.
#include "shim/lookup_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "runtime/log.h"
#include "shim/forward.h"
#include "shim/lifecycle.h"

namespace shim {

namespace {

constexpr int kNotOpened = -2;
constexpr int kOff = -1;
constinit std::atomic<int> g_log{kNotOpened};

int open_log() noexcept {
  const char* path = options().log_lookups;
  if (path == nullptr || path[0] == '\0') return kOff;
  if (strcmp(path, "stderr") == 0) return STDERR_FILENO;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) runtime::warn("cannot open CAJETA_XPU_LOG_LOOKUPS=%s: %s", path, strerror(errno));
  return file < 0 ? kOff : file;
}

int log_file() noexcept {
  int file = g_log.load(std::memory_order_relaxed);
  if (file != kNotOpened) return file;
  const int opened = open_log();
  if (g_log.compare_exchange_strong(file, opened, std::memory_order_relaxed)) return opened;
  if (opened > STDERR_FILENO) close(opened);  // another thread was first
  return file;
}

const char* answer_name(Answer answer) noexcept {
  switch (answer) {
    case Answer::kMissing:
      return "missing";
    case Answer::kDriver:
      return "driver";
    case Answer::kWrapper:
      return "wrapper";
    case Answer::kGeneric:
      return "generic";
  }
  return "?";
}

}  // namespace

void log_lookup(const char* door, const char* name, int version, cuuint64_t flags,
                Answer answer) noexcept {
  const ErrnoKeeper keeper;
  const int file = log_file();
  if (file == kOff) return;
  char line[320];
  const int length =
      version < 0 ? snprintf(line, sizeof line, "door=%s name=%.128s answer=%s\n", door, name,
                             answer_name(answer))
                  : snprintf(line, sizeof line,
                             "door=%s name=%.128s version=%d flags=%llu answer=%s\n", door, name,
                             version, static_cast<unsigned long long>(flags), answer_name(answer));
  // The log is a diagnostic: a full disk must not disturb the program.
  if (length > 0 && write(file, line, static_cast<size_t>(length)) < 0) return;
}

}  // namespace shim
