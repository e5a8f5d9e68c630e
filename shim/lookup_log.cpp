// SPDX-License-Identifier: Apache-2.0
// Writes whole lines by one write(2) each to a file opened for appending, so that threads and
// forked children do not mix theirs. No lock, no allocation; no write ends or stops the program.
#include "shim/lookup_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/log.h"
#include "runtime/standard_error.h"
#include "runtime/write_shield.h"
#include "shim/forward.h"
#include "shim/lifecycle.h"

namespace shim {

namespace {

constinit std::atomic_flag g_has_failed = ATOMIC_FLAG_INIT;

// Opened for each line: a descriptor that is kept is closed one day by a program that does not know
// it, and its number is a file of the program's then.
void append(const char* path, const char* line, size_t length) noexcept {
  // A pipe without reader must not make the program wait.
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  const int failure = file < 0 ? errno : runtime::write_shielded(file, line, length);
  if (file >= 0) close(file);
  if (failure == 0 || g_has_failed.test_and_set()) return;
  runtime::warn("cannot write CAJETA_XPU_LOG_LOOKUPS=%s: %s", path, strerror(failure));
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
  const char* const path = options().log_lookups;
  if (path == nullptr || path[0] == '\0') return;
  char line[320];
  const int length =
      version < 0 ? snprintf(line, sizeof line, "door=%s name=%.128s answer=%s\n", door, name,
                             answer_name(answer))
                  : snprintf(line, sizeof line,
                             "door=%s name=%.128s version=%d flags=%llu answer=%s\n", door, name,
                             version, static_cast<unsigned long long>(flags), answer_name(answer));
  if (length <= 0) return;
  const auto size = static_cast<size_t>(length);
  if (strcmp(path, "stderr") == 0) {
    runtime::write_standard_error(line, size);
  } else {
    append(path, line, size);
  }
}

}  // namespace shim
