// SPDX-License-Identifier: Apache-2.0
// Collecting and writing. The large buffers are static: the thread that ends the process may have a
// small stack.
#include "profiler/exit_report.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "profiler/call_site.h"
#include "profiler/call_stats.h"
#include "profiler/clock.h"
#include "profiler/json_report.h"
#include "profiler/process_facts.h"
#include "profiler/python_frame.h"
#include "profiler/report_file.h"
#include "profiler/report_path.h"
#include "profiler/report_writer.h"
#include "profiler/site_report.h"
#include "profiler/site_table.h"
#include "profiler/stack_walk.h"
#include "runtime/bounded_write.h"
#include "runtime/counters.h"
#include "runtime/float_scope.h"
#include "runtime/log.h"
#include "runtime/options.h"
#include "runtime/own_stack.h"
#include "runtime/standard_error.h"
#include "runtime/unknown_entries.h"

namespace profiler {
namespace {

constexpr const char* kVersion = CAJETA_XPU_VERSION;
constexpr std::size_t kLaunchKinds = static_cast<std::size_t>(LaunchKind::kCount);
constexpr std::size_t kMostSettings = 32;
// How long a signal that kills waits for a report that is being made, with names from large files:
// supervisors wait 10 s before they kill for good.
constexpr int kDyingPatienceMs = 5000;

// Written by enable_profile(), before other threads record; the environment and the arguments are
// the program's to change later.
const char* g_report_pattern = nullptr;
std::atomic<pid_t> g_owner_pid{0};
ProcessFacts g_process;
Rank g_rank;
char g_settings[256];
const char* g_setting_list[kMostSettings];
std::size_t g_setting_count = 0;

// The last report has been written, or is being written.
std::atomic_flag g_is_written = ATOMIC_FLAG_INIT;
// A signal is killing the process.
std::atomic<bool> g_is_dying{false};
// A report could not be written to its file, which has been said.
std::atomic_flag g_has_failed = ATOMIC_FLAG_INIT;
// The thread that makes a report; 0: none.
std::atomic<pid_t> g_reporter{0};

// Owned by that thread.
char g_text[64 * 1024];
ReportFile g_file;
JsonWriter g_json(-1);
EntryLine g_entries[runtime::kEntryCount];
CallTotals g_totals[runtime::kEntryCount];
CallTotals g_launches[kLaunchKinds];
CallTotals g_own_cost;
PythonStatus g_python;
runtime::UnknownEntry g_unknown[runtime::kMaxUnknownEntries];
runtime::CounterSnapshot g_counters;

void read_settings() noexcept {
  constexpr const char* kPrefix = "CAJETA_XPU_";
  g_setting_count = 0;
  TextBuffer out(g_settings, sizeof g_settings);
  const runtime::Environment& told = runtime::process_environment();
  for (std::size_t i = 0; i < told.count; ++i) {
    if (strncmp(told.entries[i], kPrefix, strlen(kPrefix)) != 0) continue;
    const char* setting = told.entries[i] + strlen(kPrefix);
    out.append("%s%s", out.size() == 0 ? "" : " ", setting);
    if (g_setting_count < kMostSettings) g_setting_list[g_setting_count++] = setting;
  }
  blank_controls(g_settings);
}

// Called entries that observe the device, and the others that flushed.
void collect_calls(ReportInput* input) noexcept {
  for (std::size_t i = 0; i < runtime::kEntryCount; ++i) {
    const auto entry = static_cast<runtime::EntryId>(i);
    CallTotals& totals = g_totals[input->entry_count];
    totals = CallStats::totals(stat_of(entry));
    if (totals.calls == 0) continue;
    if (!observes_device(runtime::row(entry)) && totals.flushed == 0) continue;
    g_entries[input->entry_count++] = {entry, &totals};
  }
  for (std::size_t i = 0; i < kLaunchKinds; ++i) {
    g_launches[i] = CallStats::totals(stat_of(static_cast<LaunchKind>(i)));
  }
  g_own_cost = CallStats::totals(kOwnCostStat);
  input->own_cost = &g_own_cost;
  input->clock_pair_ns = g_clock.pair_ns;
  input->entries = g_entries;
  input->launches = g_launches;
  input->lost_calls = CallStats::lost_calls();
}

void collect_unknown(ReportInput* input) noexcept {
  input->unknown = g_unknown;
  while (input->unknown_count < runtime::kMaxUnknownEntries &&
         runtime::unknown_entry_at(input->unknown_count, &g_unknown[input->unknown_count])) {
    ++input->unknown_count;
  }
}

void collect_call_sites(ReportInput* input) noexcept {
  if (!sites_are_enabled()) return;
  input->site_count = collect_sites(input->reads_symbols, &input->sites);
  input->walk = stack_walk() == StackWalk::kLibunwind ? "libunwind" : "frame pointers";
  input->dropped_sites = dropped_site_calls();
  g_python = python_status();
  if (g_python.why_unread != nullptr) {
    input->python_version = g_python.version;
    input->python_unread = g_python.why_unread;
  }
}

void collect_process(ReportInput* input) noexcept {
  input->version = kVersion;
  input->pid = static_cast<int>(g_owner_pid.load());
  input->host = g_process.host;
  input->executable = g_process.executable;
  input->command = g_process.command;
  input->rank = g_rank.number;
  input->rank_source = g_rank.source;
  input->setting_count = g_setting_count;
  input->setting_list = g_setting_list;
  input->settings = g_settings;
}

// False when the process has nothing to report.
bool collect(const char* moment, bool reads_symbols, ReportInput* input) noexcept {
  input->moment = moment;
  input->reads_symbols = reads_symbols;
  input->wall_ns = static_cast<double>(monotonic_ns() - g_clock.start_ns);
  collect_calls(input);
  g_counters = runtime::snapshot_counters();
  input->counters = &g_counters;
  if (input->entry_count + g_counters.replayed + g_counters.direct + g_counters.pending == 0) {
    return false;
  }
  collect_process(input);
  collect_unknown(input);
  return true;
}

// Where a text goes. False with errno.
using Write = JsonWriter::Write;

bool to_file(void* file, const char* bytes, std::size_t size) noexcept {
  return static_cast<OutputFile*>(file)->write(bytes, size);
}

bool to_standard_error(void*, const char* bytes, std::size_t size) noexcept {
  runtime::Patience patience;
  const int failure = runtime::has_standard_error()
                          ? runtime::write_bounded(STDERR_FILENO, bytes, size, &patience)
                          : EBADF;
  if (failure != 0) errno = failure;
  return failure == 0;
}

bool write_text(Write write, void* to, ReportInput input) noexcept {
  collect_call_sites(&input);
  TextBuffer out(g_text, sizeof g_text);
  write_report(input, &out);
  return write(to, out.text(), out.size());
}

bool write_json(Write write, void* to, const ReportInput& input) noexcept {
  g_json.start(write, to);
  write_json_report(input, &g_json);
  return g_json.finish();
}

bool write_file(const char* pattern, const ReportInput& input) noexcept {
  const PathValues values{input.pid, input.host, input.rank, input.executable};
  if (!g_file.open(pattern, values)) return false;
  OutputFile* file = &g_file.output();
  return file->close(wants_json(pattern) ? write_json(to_file, file, input)
                                         : write_text(to_file, file, input));
}

bool goes_to_standard_error(const char* pattern) noexcept {
  return pattern == nullptr || pattern[0] == '\0' || strcmp(pattern, "stderr") == 0 ||
         named_descriptor(pattern) == STDERR_FILENO;
}

const char* reason_of(int failure) noexcept {
  if (failure == ENXIO) return "nobody reads it";
  if (failure == ETIMEDOUT) return "its reader has stopped";
  return strerror(failure);
}

// Said once, however often it is tried.
void say_what_failed(const char* pattern, bool is_last) noexcept {
  const int failure = errno;
  if (g_has_failed.test_and_set()) return;
  runtime::warn("CAJETA_XPU_REPORT: cannot write \"%s\": %s%s",
                g_file.path()[0] != '\0' ? g_file.path() : pattern, reason_of(failure),
                is_last ? "; the report follows here" : "");
}

void deliver(const ReportInput& input, bool is_last) noexcept {
  const char* pattern = g_report_pattern;
  if (!goes_to_standard_error(pattern)) {
    if (strcmp(pattern, "none") == 0 || write_file(pattern, input)) return;
    say_what_failed(pattern, is_last);
    if (!is_last) return;
  }
  (void)write_text(to_standard_error, nullptr, input);  // nobody is left to be told
}

pid_t this_thread() noexcept {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

void wait_a_millisecond() noexcept {
  const timespec millisecond{0, 1'000'000};
  nanosleep(&millisecond, nullptr);
}

// False when another thread makes a report for longer, or this one does: a signal interrupted it.
bool take_turn(int patience_ms) noexcept {
  const pid_t self = this_thread();
  for (;;) {
    pid_t reporter = 0;
    if (g_reporter.compare_exchange_strong(reporter, self, std::memory_order_acquire)) return true;
    if (reporter == self || patience_ms-- <= 0) return false;
    wait_a_millisecond();
  }
}

void end_turn() noexcept {
  g_reporter.store(0, std::memory_order_release);
}

// Without our handler the process would be gone by now: another thread must not end it with another
// status. Bounded, should the handler hang.
void wait_to_be_killed() noexcept {
  for (int ms = 0; ms < 2 * kDyingPatienceMs; ++ms) wait_a_millisecond();
}

void write_now(const char* moment, bool reads_symbols, bool is_last) noexcept {
  const int saved_errno = errno;
  const runtime::DefaultFloats scope;
  ReportInput input{};
  if (collect(moment, reads_symbols, &input)) deliver(input, is_last);
  errno = saved_errno;
}

bool is_ours() noexcept {
  const pid_t owner = g_owner_pid.load(std::memory_order_relaxed);
  return owner != 0 && getpid() == owner;
}

}  // namespace

void enable_profile(const char* report) noexcept {
  g_report_pattern = report;
  if (report != nullptr) g_file.remember(report);
  read_process_facts(&g_process);
  g_rank = rank_of_process();
  read_settings();
  g_owner_pid.store(getpid());
  start_clock();
  g_profile_enabled.store(true, std::memory_order_release);
}

void write_exit_report() noexcept {
  if (!is_ours()) return;
  if (g_is_dying.load()) wait_to_be_killed();
  if (g_is_written.test_and_set()) return;
  // A signal that kills comes when the report is whole: to another thread, which waits for us, or
  // to this one when it takes signals again.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // 2 s: longer than a snapshot takes, unless its thread was stopped for good.
  if (take_turn(2000)) {
    runtime::run_on_own_stack([]() noexcept { write_now("exit", true, true); });
    end_turn();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (g_is_dying.load()) wait_to_be_killed();
}

void write_snapshot() noexcept {
  if (!is_ours() || !take_turn(0)) return;
  if (!g_is_written.test()) write_now("snapshot", true, false);
  end_turn();
}

void write_dying_report() noexcept {
  if (!is_ours()) return;
  g_is_dying.store(true);
  const bool is_written = g_is_written.test_and_set();
  if (!take_turn(kDyingPatienceMs)) return g_file.output().abandon();
  // From here on nobody writes any more.
  if (!is_written) runtime::run_on_own_stack([]() noexcept { write_now("signal", false, true); });
}

}  // namespace profiler
