// SPDX-License-Identifier: Apache-2.0
// Collecting and writing. The large buffers are static: the thread that ends the process may have a
// small stack.
#include "profiler/exit_report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "profiler/call_stats.h"
#include "profiler/clock.h"
#include "profiler/report_path.h"
#include "profiler/report_writer.h"
#include "runtime/counters.h"
#include "runtime/log.h"
#include "runtime/unknown_entries.h"

extern "C" char** environ;

namespace profiler {
namespace {

constexpr const char* kVersion = CAJETA_XPU_VERSION;
constexpr std::size_t kPathBytes = 4096;

// Written by enable_profile(), before other threads record.
const char* g_report_pattern = nullptr;
pid_t g_owner_pid = 0;

std::atomic_flag g_is_written = ATOMIC_FLAG_INIT;

// Owned by the one thread that set g_is_written.
char g_text[32 * 1024];
char g_command[256];
char g_settings[256];
char g_executable[64];
char g_host[65];
char g_path[kPathBytes];
char g_temporary[kPathBytes + 24];
EntryLine g_entries[runtime::kEntryCount];
runtime::UnknownEntry g_unknown[runtime::kMaxUnknownEntries];
runtime::CounterSnapshot g_counters;

void blank_controls(char* text) noexcept {
  for (; *text != '\0'; ++text) {
    if (static_cast<unsigned char>(*text) < ' ' || *text == 0x7f) *text = ' ';
  }
}

void read_command() noexcept {
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, g_command, sizeof g_command - 1);
  if (file >= 0) close(file);
  if (length < 0) length = 0;
  const char* slash = strrchr(g_command, '/');  // within argument 0: it ends at the first zero byte
  snprintf(g_executable, sizeof g_executable, "%.60s", slash != nullptr ? slash + 1 : g_command);
  for (ssize_t i = 0; i + 1 < length; ++i) {
    if (g_command[i] == '\0') g_command[i] = ' ';
  }
  blank_controls(g_command);
}

void read_settings() noexcept {
  constexpr const char* kPrefix = "CAJETA_XPU_";
  TextBuffer out(g_settings, sizeof g_settings);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (strncmp(*variable, kPrefix, strlen(kPrefix)) != 0) continue;
    out.append("%s%s", out.size() == 0 ? "" : " ", *variable + strlen(kPrefix));
  }
  blank_controls(g_settings);
}

EntryLine line_of(runtime::EntryId entry, const EntryTotals& totals, double ns) noexcept {
  return {entry,
          totals.calls,
          totals.flushed,
          static_cast<double>(totals.total) * ns,
          static_cast<double>(totals.median()) * ns,
          static_cast<double>(totals.max) * ns};
}

void collect_calls(double ns, ReportInput* input) noexcept {
  for (std::size_t i = 0; i < runtime::kEntryCount; ++i) {
    const auto entry = static_cast<runtime::EntryId>(i);
    const runtime::EntryRow& row = runtime::row(entry);
    const EntryTotals totals = CallStats::totals(entry);
    if (totals.calls == 0) continue;
    if (launches_kernel(row)) {
      input->launch_calls += totals.calls;
      input->launch_ns += static_cast<double>(totals.total) * ns;
    } else if (observes_device(row) || totals.flushed > 0) {
      g_entries[input->entry_count++] = line_of(entry, totals, ns);
    }
  }
}

void collect_unknown(ReportInput* input) noexcept {
  input->unknown = g_unknown;
  while (input->unknown_count < runtime::kMaxUnknownEntries &&
         runtime::unknown_entry_at(input->unknown_count, &g_unknown[input->unknown_count])) {
    ++input->unknown_count;
  }
}

bool write_all(int file, const char* text, std::size_t size) noexcept {
  while (size > 0) {
    const ssize_t written = write(file, text, size);
    if (written > 0) {
      text += written;
      size -= static_cast<std::size_t>(written);
    } else if (written < 0 && errno == EAGAIN) {
      pollfd ready{file, POLLOUT, 0};
      if (poll(&ready, 1, 1000) <= 0) return false;  // nobody reads: do not hold up the exit
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Under a temporary name first, so that a reader never sees half a report.
bool write_file(const char* text, std::size_t size) noexcept {
  const PathValues values{static_cast<int>(getpid()), g_host, rank_of_process(), g_executable};
  if (!expand_path(g_report_pattern, values, g_path, sizeof g_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  snprintf(g_temporary, sizeof g_temporary, "%s.%d.tmp", g_path, static_cast<int>(getpid()));
  const int file = open(g_temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return false;
  bool is_written = write_all(file, text, size);
  is_written = close(file) == 0 && is_written;
  if (is_written && rename(g_temporary, g_path) == 0) return true;
  const int failure = errno;
  unlink(g_temporary);
  errno = failure;
  return false;
}

void deliver(const char* text, std::size_t size) noexcept {
  const char* pattern = g_report_pattern;
  const bool to_stderr = pattern == nullptr || pattern[0] == '\0' || strcmp(pattern, "stderr") == 0;
  if (!to_stderr) {
    if (strcmp(pattern, "none") == 0 || write_file(text, size)) return;
    runtime::warn("CAJETA_XPU_REPORT: cannot write \"%s\": %s; the report follows here",
                  g_path[0] != '\0' ? g_path : pattern, strerror(errno));
  }
  write_all(STDERR_FILENO, text, size);
}

}  // namespace

void enable_profile(const char* report) noexcept {
  g_report_pattern = report;
  g_owner_pid = getpid();
  start_clock();
  g_profile_enabled.store(true, std::memory_order_release);
}

void write_exit_report() noexcept {
  if (g_owner_pid == 0 || getpid() != g_owner_pid) return;
  if (g_is_written.test_and_set()) return;
  const int saved_errno = errno;
  ReportInput input{};
  const double wall_ns = static_cast<double>(monotonic_ns() - g_clock_start.ns);
  collect_calls(ns_per_tick(), &input);
  g_counters = runtime::snapshot_counters();
  const std::uint64_t launches = g_counters.replayed + g_counters.direct + g_counters.pending;
  if (input.entry_count + input.launch_calls + launches == 0) return;
  read_command();
  read_settings();
  if (gethostname(g_host, sizeof g_host - 1) != 0) strcpy(g_host, "?");
  input.version = kVersion;
  input.pid = static_cast<int>(g_owner_pid);
  input.host = g_host;
  input.command = g_command;
  input.settings = g_settings;
  input.wall_ns = wall_ns;
  input.lost_calls = CallStats::lost_calls();
  input.entries = g_entries;
  collect_unknown(&input);
  input.counters = &g_counters;
  TextBuffer out(g_text, sizeof g_text);
  write_report(input, &out);
  deliver(out.text(), out.size());
  errno = saved_errno;
}

}  // namespace profiler
