// SPDX-License-Identifier: Apache-2.0
// The timers run on CPU clocks: a thread that waits uses no CPU time, so no system call that waits
// is interrupted by them. Memory of a thread's samples is never given back, as a handler may be at
// work on it; it serves a later thread once its own has ended.
#include "profiler/trace/sampler.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "profiler/clock.h"
#include "profiler/trace/own_memory.h"
#include "profiler/trace/sample_ring.h"
#include "profiler/trace/signal_walk.h"
#include "profiler/trace/thread_list.h"
#include "profiler/trace/unwind_rules.h"
#include "runtime/log.h"
#include "runtime/real_clock.h"

namespace profiler {
namespace {

// Threads at one time. More than programs have: the table is 64 bytes a thread, untouched until
// used.
constexpr std::size_t kMostThreads = 4096;
// Looks at the thread list between two questions about the signal mask of a thread, at most: a
// second at 20 looks a second. A question costs some 20 us.
constexpr std::uint32_t kMostWait = 20;

// In a mapping of its own, before the working memory of the walk and the slots of the ring.
struct ThreadSamples {
  std::atomic<pid_t> tid;  // whose signals write here; 0: nobody's
  std::uint32_t capacity;
  SampleRing ring;
  std::atomic<std::uint64_t> kept, dropped, handler_ns;  // handler only
  WalkMemory* walk;
  StoredSample* slots;
  ThreadSamples* next;       // of all there are
  ThreadSamples* next_free;  // drain only
};

enum class ThreadState : std::uint8_t { kUnused, kUnarmed, kArmed, kEnded };

// Drain only, but `samples`, which handlers read. The signal carries the record's address.
struct Thread {
  pid_t tid = 0;
  ThreadState state = ThreadState::kUnused;
  int timer = 0;
  std::uint32_t seen = 0;   // number of the look that saw it last
  std::uint32_t check = 0;  // of the look that asks for its signal mask
  std::uint32_t wait = 0;   // looks until the one after
  timespec left{};          // of the timer when it was last seen
  std::atomic<ThreadSamples*> samples{nullptr};
};

enum class SamplerState : std::uint8_t { kOff, kSampling, kDisarmed };

constinit Thread g_threads[kMostThreads];
constinit std::size_t g_thread_count = 0;  // records that were ever used
constinit std::size_t g_last_found = 0;
constinit std::uint32_t g_look = 0;
constinit ThreadSamples* g_free = nullptr;
constinit std::uint32_t g_capacity = 0;
constinit long g_period_ns = 0;
constinit int g_signal = 0;
constinit SamplerState g_state = SamplerState::kOff;
constinit bool g_has_warned = false;

// All memory there is, for the counts. Release pairs with the acquire of sample_counts().
constinit std::atomic<ThreadSamples*> g_all{nullptr};
// Whether the handler does anything.
constinit std::atomic<bool> g_is_sampling{false};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) noexcept {
  // Release: what the handler wrote before is seen by the thread that this memory serves next.
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_release);
}

void take_sample(ThreadSamples& samples, int overrun, const void* context) noexcept {
  StoredSample* slot = samples.ring.claim(samples.slots, samples.capacity);
  if (slot == nullptr) {
    add(samples.dropped, 1);
    return;
  }
  slot->time_ns = monotonic_ns();
  slot->weight = overrun > 0 ? static_cast<std::uint32_t>(overrun) + 1 : 1;
  slot->depth = static_cast<std::uint32_t>(
      walk_interrupted(context, *samples.walk, slot->addresses, kTraceDepth));
  samples.ring.publish();
  add(samples.kept, 1);
}

// A timer of the program may use our signal too.
ThreadSamples* samples_of(const siginfo_t& info) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_value.sival_ptr);
  const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(g_threads);
  if (offset >= sizeof g_threads || offset % sizeof(Thread) != 0) return nullptr;
  ThreadSamples* samples =
      g_threads[offset / sizeof(Thread)].samples.load(std::memory_order_acquire);
  if (samples == nullptr) return nullptr;
  return samples->tid.load(std::memory_order_acquire) == static_cast<pid_t>(syscall(SYS_gettid))
             ? samples
             : nullptr;
}

// Not ticks: the kernel's clock tick, which raises the signal, is also when a thread has to make
// way for another, and that time is not the handler's.
std::uint64_t thread_cpu_ns() noexcept {
  const timespec now = runtime::read_real_clock(CLOCK_THREAD_CPUTIME_ID);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void on_signal(int, siginfo_t* info, void* context) noexcept {
  if (!g_is_sampling.load(std::memory_order_relaxed) || info->si_code != SI_TIMER) return;
  const int saved_errno = errno;
  const std::uint64_t start_ns = thread_cpu_ns();
  if (ThreadSamples* samples = samples_of(*info)) {
    take_sample(*samples, info->si_overrun, context);
    add(samples->handler_ns, thread_cpu_ns() - start_ns);
  }
  errno = saved_errno;
}

bool is_our_handler(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_signal;
}

// Takes the signal if nobody has it.
bool take_signal(int signal) noexcept {
  struct sigaction action;
  if (sigaction(signal, nullptr, &action) != 0) return false;
  if (is_our_handler(action)) return true;
  if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) return false;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // A handler of the program that interrupted ours might not come back.
  sigfillset(&action.sa_mask);
  return sigaction(signal, &action, nullptr) == 0;
}

int take_some_signal() noexcept {
  if (take_signal(SIGPROF)) return SIGPROF;
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    if (take_signal(signal)) return signal;
  }
  return 0;
}

void warn_once(const char* what) noexcept {
  if (g_has_warned) return;
  g_has_warned = true;
  runtime::warn("host sampling: %s", what);
}

constexpr std::size_t kHeadBytes = (sizeof(ThreadSamples) + 63) / 64 * 64;

ThreadSamples* map_samples() noexcept {
  const std::size_t bytes =
      kHeadBytes + sizeof(WalkMemory) + std::size_t{g_capacity} * sizeof(StoredSample);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* samples = new (memory) ThreadSamples;
  char* rest = static_cast<char*>(memory) + kHeadBytes;
  samples->capacity = g_capacity;
  samples->walk = reinterpret_cast<WalkMemory*>(rest);
  samples->slots = reinterpret_cast<StoredSample*>(rest + sizeof(WalkMemory));
  samples->next_free = nullptr;
  samples->next = g_all.load(std::memory_order_relaxed);
  g_all.store(samples, std::memory_order_release);
  return samples;
}

ThreadSamples* get_samples() noexcept {
  for (ThreadSamples** at = &g_free; *at != nullptr; at = &(*at)->next_free) {
    ThreadSamples* samples = *at;
    if (samples->capacity != g_capacity) continue;
    *at = samples->next_free;
    return samples;
  }
  return map_samples();
}

// CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED of the kernel's interface.
clockid_t cpu_clock_of(pid_t tid) noexcept {
  return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u);
}

bool start_timer(Thread& thread) noexcept {
  sigevent event;
  std::memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = g_signal;
  event.sigev_value.sival_ptr = &thread;
  event._sigev_un._tid = thread.tid;
  if (syscall(SYS_timer_create, static_cast<long>(cpu_clock_of(thread.tid)), &event,
              &thread.timer) != 0) {
    // EINVAL: it has just ended.
    if (errno != EINVAL) warn_once("some threads are left out: the system gave no more timers");
    return false;
  }
  itimerspec period{};
  period.it_interval.tv_sec = period.it_value.tv_sec = g_period_ns / 1'000'000'000;
  period.it_interval.tv_nsec = period.it_value.tv_nsec = g_period_ns % 1'000'000'000;
  if (syscall(SYS_timer_settime, thread.timer, 0, &period, nullptr) == 0) return true;
  syscall(SYS_timer_delete, thread.timer);
  return false;
}

void arm(Thread& thread) noexcept {
  ThreadSamples* samples = thread.samples.load(std::memory_order_relaxed);
  if (samples == nullptr) {
    samples = get_samples();
    if (samples == nullptr) {
      warn_once("some threads are left out: no memory");
      return;
    }
    samples->tid.store(thread.tid, std::memory_order_release);
    thread.samples.store(samples, std::memory_order_release);
  }
  if (start_timer(thread)) thread.state = ThreadState::kArmed;
}

void disarm(Thread& thread, ThreadState next) noexcept {
  if (thread.state == ThreadState::kArmed) syscall(SYS_timer_delete, thread.timer);
  thread.state = next;
}

void disarm_all() noexcept {
  g_is_sampling.store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < g_thread_count; ++i) {
    if (g_threads[i].state == ThreadState::kArmed) disarm(g_threads[i], ThreadState::kUnarmed);
  }
  g_state = SamplerState::kDisarmed;
}

Thread* find_thread(pid_t tid) noexcept {
  // The kernel lists threads in the same order each time, so it is mostly the next one.
  for (std::size_t i = 1; i <= g_thread_count; ++i) {
    const std::size_t at = (g_last_found + i) % g_thread_count;
    Thread& thread = g_threads[at];
    if (thread.tid != tid || thread.state == ThreadState::kUnused ||
        thread.state == ThreadState::kEnded) {
      continue;
    }
    g_last_found = at;
    return &thread;
  }
  return nullptr;
}

Thread* add_thread(pid_t tid) noexcept {
  std::size_t at = 0;
  while (at < g_thread_count && g_threads[at].state != ThreadState::kUnused) ++at;
  if (at == kMostThreads) {
    warn_once("some threads are left out: there are more than 4096");
    return nullptr;
  }
  if (at == g_thread_count) ++g_thread_count;
  g_last_found = at;
  Thread& thread = g_threads[at];
  thread.tid = tid;
  thread.state = ThreadState::kUnarmed;
  thread.check = g_look;
  thread.wait = 1;
  return &thread;
}

// What an armed timer is on: its thread is gone (the id may belong to another one already), waits,
// or runs.
enum class Progress : std::uint8_t { kGone, kWaits, kRuns };
Progress progress_of(Thread& thread) noexcept {
  itimerspec now{};
  if (syscall(SYS_timer_gettime, thread.timer, &now) != 0) return Progress::kGone;
  // The kernel shows no period for a thread that is gone; before 5.5, no time left.
  const bool has_period = now.it_interval.tv_sec != 0 || now.it_interval.tv_nsec != 0;
  const bool has_time = now.it_value.tv_sec != 0 || now.it_value.tv_nsec != 0;
  if (!has_period || !has_time) return Progress::kGone;
  const bool is_same =
      now.it_value.tv_sec == thread.left.tv_sec && now.it_value.tv_nsec == thread.left.tv_nsec;
  thread.left = now.it_value;
  return is_same ? Progress::kWaits : Progress::kRuns;
}

// Our own threads are none of the program's; and one that blocks the signal may wait for signals,
// of which ours must not be one.
bool may_be_sampled(pid_t tid) noexcept {
  ThreadStatus status;
  if (!read_thread_status(tid, &status)) return false;
  if (std::strncmp(status.name, "cajeta-", 7) == 0) return false;
  return (status.blocked_signals >> (g_signal - 1) & 1) == 0;
}

void look_at(pid_t tid, pid_t caller) noexcept {
  Thread* thread = find_thread(tid);
  if (thread != nullptr && thread->state == ThreadState::kArmed) {
    const Progress progress = progress_of(*thread);
    if (progress == Progress::kGone) {
      disarm(*thread, ThreadState::kEnded);
      thread = nullptr;
    } else if (progress == Progress::kWaits) {
      thread->seen = g_look;
      return;
    }
  }
  if (thread == nullptr) {
    if (tid == caller) return;
    thread = add_thread(tid);
    if (thread == nullptr) return;
  }
  thread->seen = g_look;
  if (static_cast<std::int32_t>(g_look - thread->check) < 0) return;
  thread->check = g_look + thread->wait;
  thread->wait = thread->wait < kMostWait / 2 ? thread->wait * 2 : kMostWait;
  const bool is_armed = thread->state == ThreadState::kArmed;
  if (may_be_sampled(tid) == is_armed) return;
  if (is_armed) {
    disarm(*thread, ThreadState::kUnarmed);
  } else if (tid != caller) {
    arm(*thread);
  }
}

void look_for_threads() noexcept {
  ++g_look;
  pid_t caller = static_cast<pid_t>(syscall(SYS_gettid));
  const bool is_whole = list_threads(
      [](void* context, pid_t tid) { look_at(tid, *static_cast<const pid_t*>(context)); }, &caller);
  if (!is_whole) return;
  for (std::size_t i = 0; i < g_thread_count; ++i) {
    Thread& thread = g_threads[i];
    const bool is_present = thread.seen == g_look;
    if (is_present || thread.state == ThreadState::kUnused) continue;
    // The list may miss a thread while others end.
    if (thread.state == ThreadState::kArmed && progress_of(thread) != Progress::kGone) continue;
    disarm(thread, ThreadState::kEnded);
  }
}

void drain(const Thread& thread, void (*take)(void*, const HostSample&), void* context) noexcept {
  ThreadSamples* samples = thread.samples.load(std::memory_order_relaxed);
  if (samples == nullptr) return;
  // As many as there is room for: a thread that keeps writing must not hold up the others.
  for (std::uint32_t i = 0; i < samples->capacity; ++i) {
    const StoredSample* stored = samples->ring.next(samples->slots, samples->capacity);
    if (stored == nullptr) return;
    take(context, {static_cast<std::uint32_t>(thread.tid),
                   stored->weight,
                   stored->time_ns,
                   {stored->addresses, stored->depth}});
    samples->ring.advance();
  }
}

// After it was drained, which its thread writes to no more.
void release(Thread& thread) noexcept {
  if (ThreadSamples* samples = thread.samples.load(std::memory_order_relaxed)) {
    thread.samples.store(nullptr, std::memory_order_relaxed);
    samples->handler_ns.load(std::memory_order_acquire);  // pairs with add()
    samples->tid.store(0, std::memory_order_relaxed);
    samples->next_free = g_free;
    g_free = samples;
  }
  thread.state = ThreadState::kUnused;
}

bool handler_was_replaced() noexcept {
  struct sigaction action;
  return sigaction(g_signal, nullptr, &action) == 0 && !is_our_handler(action);
}

}  // namespace

bool start_sampler(std::uint32_t hz, std::uint32_t ring_samples) noexcept {
  if (hz == 0 || ring_samples == 0 || g_state == SamplerState::kSampling) return false;
  const int signal = take_some_signal();
  if (signal == 0) {
    runtime::warn("host sampling is off: SIGPROF and all real-time signals have handlers");
    return false;
  }
  start_own_memory();
  start_unwind_rules();
  g_signal = signal;
  g_capacity = ring_samples;
  g_period_ns = 1'000'000'000L / static_cast<long>(hz);
  for (std::size_t i = 0; i < g_thread_count; ++i) release(g_threads[i]);
  g_thread_count = 0;
  g_has_warned = false;
  g_state = SamplerState::kSampling;
  g_is_sampling.store(true, std::memory_order_relaxed);
  return true;
}

void drain_samples(void (*take)(void* context, const HostSample& sample), void* context) noexcept {
  if (g_state == SamplerState::kOff) return;
  const int saved_errno = errno;
  if (g_state == SamplerState::kSampling && handler_was_replaced()) {
    disarm_all();
    warn_once("stopped, as the program has taken over the signal");
  }
  if (g_state == SamplerState::kSampling) look_for_threads();
  for (std::size_t i = 0; i < g_thread_count; ++i) {
    drain(g_threads[i], take, context);
    if (g_threads[i].state == ThreadState::kEnded) release(g_threads[i]);
  }
  errno = saved_errno;
}

void stop_sampler() noexcept {
  if (g_state != SamplerState::kSampling) return;
  const int saved_errno = errno;
  disarm_all();
  errno = saved_errno;
}

void forget_sampler() noexcept {
  g_is_sampling.store(false, std::memory_order_relaxed);
  g_state = SamplerState::kOff;
}

SampleCounts sample_counts() noexcept {
  SampleCounts counts;
  const ThreadSamples* samples = g_all.load(std::memory_order_acquire);
  for (; samples != nullptr; samples = samples->next) {
    counts.kept += samples->kept.load(std::memory_order_relaxed);
    counts.dropped += samples->dropped.load(std::memory_order_relaxed);
    counts.handler_ns += samples->handler_ns.load(std::memory_order_relaxed);
  }
  return counts;
}

}  // namespace profiler
