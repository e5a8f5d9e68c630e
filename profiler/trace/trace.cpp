// SPDX-License-Identifier: Apache-2.0
// The drain and the file, which are the thread's alone. The end of the process asks it for the rest
// and waits for it only so long: exit() may have been called in a signal handler, whose thread
// holds locks of the driver, of malloc or of the loader that the rest needs.
#include "profiler/trace/trace.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "profiler/loaded_object.h"
#include "profiler/process_facts.h"
#include "profiler/python_frame.h"
#include "profiler/report_path.h"
#include "profiler/trace/device_timer.h"
#include "profiler/trace/gate.h"
#include "profiler/trace/sampler.h"
#include "profiler/trace/span_rings.h"
#include "profiler/trace/trace_writer.h"
#include "runtime/log.h"
#include "runtime/own_thread.h"
#include "runtime/real_clock.h"
#include "runtime/reentry.h"

namespace profiler {
namespace {

// What a killed process loses, against wake-ups in one that does nothing.
constexpr long kPeriodNs = 50'000'000;
// How long the end of the process waits for what the rings hold, which takes milliseconds, and then
// for names and lines, which may have to be read from large files.
constexpr long kDrainPatienceNs = 500'000'000;
constexpr long kNamePatienceNs = 60'000'000'000;

// The thread's, once it runs.
constinit TraceWriter g_writer;
TraceHeader g_header;
constinit TraceOutput g_output;
constinit Gate g_end_wanted, g_is_drained, g_is_finished;
constinit std::atomic<bool> g_has_thread{false};

void take_span(void*, const HostSpan& span) noexcept {
  ++g_header.spans_kept;
  g_writer.add(span);
}
void take_sample(void*, const HostSample& sample) noexcept {
  g_writer.add(sample);
}
void take_launch(void*, const TimedLaunch& launch) noexcept {
  ++g_header.launches_kept;
  g_writer.add(launch);
}

void update_header() noexcept {
  const SampleCounts samples = sample_counts();
  const DeviceCounts device = device_counts();
  g_header.samples_kept = samples.kept;
  g_header.samples_dropped = samples.dropped;
  g_header.threads_left_out = samples.left_out;
  g_header.launches_dropped = device.dropped;
  g_header.launches_untimed = device.untimed;
  g_header.spans_dropped = dropped_spans();
  if (times_launches()) g_header.python = python_status();
  g_header.own_cost_ns = samples.handler_ns + device.own_ns;
}

void stop_sources() noexcept {
  g_keeps_spans.store(false, std::memory_order_relaxed);
  if (g_header.sample_hz != 0) stop_sampler();
}

void drain() noexcept {
  if (g_header.sample_hz != 0) drain_samples(take_sample, nullptr);
  drain_spans(take_span, nullptr);
  if (times_launches()) {
    drain_device_times(take_launch, nullptr);
    look_for_late_python();  // in what the stacks came by
  }
  update_header();
}

const char* reason_of(int failure) noexcept {
  if (failure == EBADF) return "the program has closed it";
  if (failure == ENXIO) return "nobody reads it";
  if (failure == ETIMEDOUT) return "its reader has stopped";
  return strerror(failure);
}

// False: there is nothing more to do.
bool flush() noexcept {
  if (g_writer.flush(g_header)) return true;
  runtime::warn("CAJETA_PROFILER_OUT: cannot write \"%s\": %s; the trace ends here",
                g_output.path(), reason_of(errno));
  stop_sources();
  return false;
}

void say_what_was_written() noexcept {
  runtime::warn(
      "trace written to %s: %llu samples, %llu launches, %llu calls; cajeta-xpu profile "
      "summary and ui.perfetto.dev read it",
      g_output.path(), static_cast<unsigned long long>(g_header.samples_kept),
      static_cast<unsigned long long>(g_header.launches_kept),
      static_cast<unsigned long long>(g_header.spans_kept));
}

void finish() noexcept {
  stop_sources();
  drain();
  g_header.launches_untimed += outstanding_launches();
  const bool is_written = flush();
  g_is_drained.open();
  if (!is_written) return;
  g_header.is_complete = true;
  g_writer.add_symbols();
  if (flush()) say_what_was_written();
}

void* run(void*) noexcept {
  pthread_setname_np(pthread_self(), "cajeta-trace");
  const runtime::ReentryGuard guard;
  bool is_writing = true;
  do {
    if (!is_writing) continue;
    drain();
    is_writing = flush();
  } while (!g_end_wanted.wait(kPeriodNs));
  if (is_writing) finish();
  g_is_drained.open();
  g_is_finished.open();
  return nullptr;
}

bool start_thread() noexcept {
  pthread_t thread;
  const int failure = runtime::start_own_thread(&thread, &run);
  if (failure != 0) return errno = failure, false;
  pthread_detach(thread);
  return true;
}

// The first record is there from the start: a process may be gone before the thread has its turn.
bool start_file(const runtime::Options& options) noexcept {
  ProcessFacts facts;
  read_process_facts(&facts);
  const PathValues values{getpid(), facts.host, rank_of_process().number, facts.executable};
  if (!g_output.open(options.trace_file, values)) return false;
  errno = ENOMEM;
  if (g_writer.start(&g_output, options.trace_bytes, facts.command, g_header) &&
      g_writer.flush(g_header)) {
    return true;
  }
  const int failure = errno;
  g_output.close();
  errno = failure;
  return false;
}

}  // namespace

void start_trace(const runtime::Options& options) noexcept {
  const int saved_errno = errno;
  start_loaded_objects();
  g_header = {};
  g_header.sample_hz = options.sample_hz;
  g_header.ring_samples = options.sample_ring;
  g_header.device_ring_launches = options.times_launches ? options.launch_ring : 0;
  if (options.sample_hz != 0 && !start_sampler(static_cast<std::uint32_t>(options.sample_hz),
                                               static_cast<std::uint32_t>(options.sample_ring))) {
    g_header.sample_hz = 0;
  }
  if (!start_file(options) || !start_thread()) {
    runtime::warn("CAJETA_PROFILER_OUT: cannot write \"%s\": %s; there will be no trace",
                  g_output.path(), reason_of(errno));
    stop_sources();
    start_device_times(0);
  } else {
    g_has_thread.store(true, std::memory_order_relaxed);
    start_device_times(static_cast<std::uint32_t>(g_header.device_ring_launches));
    g_keeps_spans.store(true, std::memory_order_relaxed);
  }
  errno = saved_errno;
}

void finish_trace() noexcept {
  if (!g_has_thread.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  g_end_wanted.open();
  if (g_is_drained.wait(kDrainPatienceNs)) g_is_finished.wait(kNamePatienceNs);
  errno = saved_errno;
}

void forget_trace() noexcept {
  g_keeps_spans.store(false, std::memory_order_relaxed);
  forget_sampler();
  g_output.close();
}

}  // namespace profiler
