// SPDX-License-Identifier: Apache-2.0
// Start, fork and exit. No lock is held and nothing waits: a thread that finds another one starting
// the shim forwards its call. No constructor, no destructor; what is allocated here is never freed.
#include "shim/lifecycle.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "graphs/replayer.h"
#include "profiler/call_site.h"
#include "profiler/call_stats.h"
#include "profiler/clock.h"
#include "profiler/exit_report.h"
#include "profiler/process_facts.h"
#include "profiler/python_frame.h"
#include "profiler/report_triggers.h"
#include "profiler/stack_walk.h"
#include "profiler/timed_sink.h"
#include "profiler/trace/trace.h"
#include "runtime/deferral.h"
#include "runtime/loaded_image.h"
#include "runtime/log.h"
#include "runtime/stream_queue.h"
#include "shim/door_hooks.h"
#include "shim/forward.h"

// What a second copy of the library finds first, and `cajeta-xpu doctor` reads.
extern "C" [[gnu::visibility("default")]] const char cajeta_xpu_marker[] =
    "cajeta-xpu " CAJETA_XPU_VERSION;

namespace shim {

constinit std::atomic<Mode> g_mode{Mode::kAsleep};

namespace {

using ExitFunction = void (*)(int);

constinit std::atomic<bool> g_exit_registered{false};
constinit std::atomic<bool> g_left{false};
// Written in start(), before kActive is published.
constinit std::atomic<pid_t> g_owner{0};
constinit std::atomic<ExitFunction> g_next_exit{nullptr};

// Two preloaded copies would both queue: the first in the search order works, one behind it stays
// passive. The copy behind may never see a call, so the first one tells.
bool is_first_copy() noexcept {
  const void* first = runtime::find_first_symbol("cajeta_xpu_marker");
  return first == nullptr || first == &cajeta_xpu_marker;
}

void tell_second_copy() noexcept {
  runtime::LoadedImage here, there;
  if (runtime::find_next_symbol("cajeta_xpu_marker", &there) == nullptr) return;
  if (!runtime::find_own_image(&here)) return;
  runtime::warn("loaded twice: %s works, %s stays passive", here.path, there.path);
}

void in_forked_child() noexcept {
  if (is_mutant(Mutant::kForkedChildSubmits)) return;
  g_mode.store(Mode::kPassive, std::memory_order_relaxed);
  profiler::g_profile_enabled.store(false, std::memory_order_relaxed);
  if (options().profiler) profiler::forget_trace();
  runtime::forked_child();
}

void register_exit_handler() noexcept {
  // quick_exit() runs its own handlers and ends the process inside libc, past our _exit.
  if (atexit([]() noexcept { leave_process(); }) != 0 ||
      at_quick_exit([]() noexcept { leave_process(); }) != 0) {
    runtime::warn("no exit handler could be registered: end the program with cuCtxSynchronize");
  }
}

bool start() noexcept {
  const runtime::Options& settings = options();
  if (settings.disabled || !is_first_copy()) return false;
  runtime::warn_of_refused(settings, runtime::process_environment());
  tell_second_copy();
  if (settings.driver_profile || settings.profiler) profiler::take_process_facts();
  g_owner.store(getpid(), std::memory_order_relaxed);
  g_next_exit.store(reinterpret_cast<ExitFunction>(runtime::find_next_symbol("_exit")),
                    std::memory_order_relaxed);
  if (pthread_atfork(nullptr, nullptr, [] { in_forked_child(); }) != 0) {
    runtime::warn("no fork handler could be registered: staying passive");
    return false;
  }
  runtime::BatchSink* sink = graphs::start_replayer(settings.graph_bytes);
  runtime::set_sink(settings.driver_profile ? profiler::time_sink(sink) : sink);
  runtime::Options deferral = settings;
  if (!is_in_front()) {
    if (settings.defer == runtime::DeferMode::kAll) {
      runtime::warn("loaded too late to queue launches: preload the library, or link it first");
    }
    deferral.defer = runtime::DeferMode::kNever;
  }
  runtime::start(deferral);  // false: launches are forwarded, the profile still works
  if (settings.keeps_sites || settings.profiler) {
    profiler::start_stack_walk(!settings.walks_frame_pointers);
  }
  if (settings.keeps_sites || (settings.profiler && settings.times_launches)) {
    profiler::start_python_frames();
  }
  if (settings.keeps_sites) profiler::enable_sites(settings.site_thresholds_ns);
  if (settings.driver_profile) {
    profiler::enable_profile(settings.report);
    profiler::start_report_triggers(settings.report_every_s, settings.report_signal);
  }
  if (settings.profiler) {
    if (!settings.driver_profile) profiler::start_clock();
    profiler::start_trace(settings);
  }
  return true;
}

// True in the process that started the shim. A vfork child shares our memory but not our pid.
bool is_owner() noexcept {
  if (is_mutant(Mutant::kForkedChildSubmits)) return true;
  return getpid() == g_owner.load(std::memory_order_relaxed);
}

bool is_awake(Mode mode) noexcept {
  return mode == Mode::kActive || mode == Mode::kProfiled;
}

[[noreturn]] void end_process(int status) noexcept {
  // Inside one of our own calls (a signal handler): the queues may be half changed, so leave them.
  if (is_awake(g_mode.load(std::memory_order_acquire)) && !runtime::in_own_call() &&
      !is_mutant(Mutant::kUnderscoreExitFlushDropped)) {
    leave_process();
  }
  // Sanitizer runtimes stand behind us with an _exit of theirs. It was looked up at start: the
  // caller can be a signal handler or the child of a multi-threaded fork.
  if (const ExitFunction next = g_next_exit.load(std::memory_order_relaxed)) next(status);
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

const runtime::Options& options() noexcept {
  return runtime::process_options();
}

bool is_in_front() noexcept {
  const auto is_ours = [](const char* name) noexcept {
    const void* first = runtime::find_first_symbol(name);
    return first != nullptr && runtime::is_own_address(first);
  };
  // Behind libc none of its names is ours; one of them may be another interposer's.
  return is_ours("cuInit") && (is_ours("dlsym") || is_ours("_exit") || is_ours("_Exit"));
}

bool doors_are_open() noexcept {
  if (g_mode.load(std::memory_order_relaxed) == Mode::kPassive) return false;
  return !options().disabled && is_first_copy();
}

bool wake(EntryId trigger) noexcept {
  if (runtime::in_own_call()) return false;
  Mode mode = Mode::kAsleep;
  if (!g_mode.compare_exchange_strong(mode, Mode::kStarting, std::memory_order_acq_rel)) {
    return is_awake(mode);
  }
  const ErrnoKeeper keeper;
  bool started;
  {
    const runtime::ReentryGuard guard;
    started = start();
  }
  // Release pairs with end_process(); wrappers read relaxed and touch only what has its own
  // ordering.
  const bool is_profiled = options().driver_profile || options().profiler;
  const Mode awake = is_profiled ? Mode::kProfiled : Mode::kActive;
  g_mode.store(started ? awake : Mode::kPassive, std::memory_order_release);
  // cuInit's hook registers after the call. Any other first call means that we did not see cuInit.
  if (started && trigger != EntryId::cuInit) register_exit_handler();
  return started;
}

void leave_process() noexcept {
  if (!is_awake(g_mode.load(std::memory_order_acquire)) || !is_owner()) return;
  if (g_left.exchange(true, std::memory_order_acq_rel)) return;
  const ErrnoKeeper keeper;
  const CUresult result = runtime::flush_at_exit();
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
    runtime::warn("work that was queued at process exit failed with CUDA error %d", result);
  }
  if (options().profiler) profiler::finish_trace();
  g_mode.store(Mode::kPassive, std::memory_order_relaxed);
  profiler::write_exit_report();
}

CUresult CUDAAPI DoorHooks::cuInit(unsigned int flags) noexcept {
  const CUresult result = runtime::real.cuInit(flags);
  if (result == CUDA_SUCCESS && !g_exit_registered.exchange(true, std::memory_order_relaxed)) {
    register_exit_handler();
  }
  return result;
}

}  // namespace shim

extern "C" {

[[gnu::visibility("default")]] void _exit(int status) {
  shim::end_process(status);
}
[[gnu::visibility("default")]] void _Exit(int status) noexcept {
  shim::end_process(status);
}

}  // extern "C"
