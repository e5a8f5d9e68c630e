// SPDX-License-Identifier: Apache-2.0
// The timers run on CPU clocks: a thread that waits uses no CPU time, so no system call that waits
// is interrupted by them.
#include "profiler/trace/sampler.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "profiler/trace/own_memory.h"
#include "profiler/trace/sample_handler.h"
#include "profiler/trace/signal_stacks.h"
#include "profiler/trace/thread_list.h"
#include "profiler/trace/thread_stack.h"
#include "profiler/trace/unwind_rules.h"
#include "runtime/log.h"
#include "runtime/own_thread.h"

namespace profiler {
namespace {

// Threads at one time. More than programs have: the table is 64 bytes a thread, untouched until
// used.
constexpr std::size_t kMostThreads = 16384;
// Looks at the thread list between two questions about the signal mask of a thread, at most: a
// second at 20 looks a second. A question costs some 20 us.
constexpr std::uint32_t kMostWait = 20;
// The smallest stack that is sampled, besides what the kernel puts on it for a signal. How much of
// it is used cannot be asked of a thread that runs; who has as much leaves some kilobytes.
constexpr std::size_t kLeastStackBytes = 128 * 1024;
// A look that takes longer is followed by a pause: where threads are many, looks take 2 % of a
// processor at most.
constexpr std::uint64_t kLongLookNs = 1'000'000;
constexpr std::uint64_t kPauseFactor = 50;

// kLeftOut: for its stack.
enum class ThreadState : std::uint8_t { kUnused, kUnarmed, kArmed, kLeftOut, kEnded };

// Drain only, but `samples`, which handlers read.
struct Thread {
  SampleSource samples{nullptr};  // the signal carries its address
  pid_t tid = 0;
  ThreadState state = ThreadState::kUnused;
  int timer = 0;
  std::uint32_t seen = 0;   // number of the look that saw it last
  std::uint32_t check = 0;  // of the look that asks for its signal mask
  std::uint32_t wait = 0;   // looks until the one after
  timespec left{};          // of the timer when it was last seen
};

// Where each thread id is in the table of threads; not to be removed from, but made anew.
class ThreadIndex {
 public:
  void clear() noexcept { std::memset(slots_, 0, sizeof slots_); }
  // kMostThreads: not there.
  std::size_t find(pid_t tid, const Thread* threads) const noexcept {
    for (std::size_t at = first_slot(tid); slots_[at] != 0; at = (at + 1) % kSlots) {
      const Thread& thread = threads[slots_[at] - 1];
      const bool is_there =
          thread.state != ThreadState::kUnused && thread.state != ThreadState::kEnded;
      if (is_there && thread.tid == tid) return slots_[at] - 1u;
    }
    return kMostThreads;
  }
  // False: too many were added since the last clear().
  bool add(pid_t tid, std::size_t number) noexcept {
    std::size_t at = first_slot(tid);
    for (std::size_t tries = 0; slots_[at] != 0; at = (at + 1) % kSlots) {
      if (++tries == kMostTries) return false;
    }
    slots_[at] = static_cast<std::uint16_t>(number + 1);
    return true;
  }

 private:
  static constexpr std::size_t kSlots = 4 * kMostThreads;
  static constexpr std::size_t kMostTries = 64;
  static std::size_t first_slot(pid_t tid) noexcept {
    return static_cast<std::uint32_t>(tid) * 0x9E3779B1u % kSlots;
  }
  std::uint16_t slots_[kSlots] = {};
};

enum class SamplerState : std::uint8_t { kOff, kSampling, kDisarmed };

constinit Thread g_threads[kMostThreads];
constinit std::size_t g_thread_count = 0;  // records that were ever used
constinit std::size_t g_first_unused = 0;  // none before it
constinit std::size_t g_armed_count = 0, g_most_armed = 0;
constinit ThreadIndex g_index;
constinit bool g_index_is_stale = false;
constinit std::uint32_t g_look = 0;
constinit std::uint64_t g_pause_until_ns = 0;
constinit ThreadSamples* g_free = nullptr;
constinit std::uint32_t g_capacity = 0;
constinit long g_period_ns = 0;
constinit std::size_t g_frame_bytes = 0;       // that the kernel puts on a stack for a signal
constinit std::size_t g_most_frame_bytes = 0;  // with registers that are not in use yet
constinit SamplerState g_state = SamplerState::kOff;
constinit bool g_has_warned = false;

// All memory there is, for the counts. Release pairs with the acquire of sample_counts().
constinit std::atomic<ThreadSamples*> g_all{nullptr};
constinit std::atomic<std::uint64_t> g_left_out{0};

void warn_once(const char* what) noexcept {
  if (g_has_warned) return;
  g_has_warned = true;
  runtime::warn("host sampling: %s", what);
}

constexpr std::size_t kHeadBytes = (sizeof(ThreadSamples) + 63) / 64 * 64;
constexpr std::size_t kWalkBytes = (sizeof(WalkMemory) + 63) / 64 * 64;

ThreadSamples* map_samples() noexcept {
  const std::size_t bytes =
      kHeadBytes + kOwnStackBytes + kWalkBytes + std::size_t{g_capacity} * sizeof(StoredSample);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* samples = new (memory) ThreadSamples;
  samples->own_stack_top = static_cast<char*>(memory) + kHeadBytes + kOwnStackBytes;
  samples->capacity = g_capacity;
  samples->walk = reinterpret_cast<WalkMemory*>(samples->own_stack_top);
  samples->slots = reinterpret_cast<StoredSample*>(samples->own_stack_top + kWalkBytes);
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

bool create_timer(Thread& thread, ThreadSamples& samples) noexcept {
  sigevent event;
  std::memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSampleSignal;
  event.sigev_value.sival_ptr = &thread.samples;
  event._sigev_un._tid = thread.tid;
  if (syscall(SYS_timer_create, static_cast<long>(cpu_clock_of(thread.tid)), &event,
              &thread.timer) != 0) {
    // EINVAL: it has just ended.
    if (errno != EINVAL) warn_once("some threads are left out: the system gave no more timers");
    return false;
  }
  samples.timer = thread.timer;
  samples.period_ns = g_period_ns;
  return true;
}

void disarm(Thread& thread, ThreadState next) noexcept {
  if (thread.state == ThreadState::kArmed) {
    syscall(SYS_timer_delete, thread.timer);
    --g_armed_count;
  }
  thread.state = next;
}

void leave_out(Thread& thread, const char* why) noexcept {
  thread.state = ThreadState::kLeftOut;
  g_left_out.fetch_add(1, std::memory_order_relaxed);
  warn_once(why);
}

constexpr char kNoRoom[] = "some threads are left out: their stacks have no room for a signal";

// Null: the thread is not to be sampled, or not now.
ThreadSamples* prepare_samples(Thread& thread) noexcept {
  ThreadStack stack;
  if (!find_thread_stack(thread.tid, &stack)) {
    leave_out(thread, "some threads are left out: where their stacks lie is not known");
    return nullptr;
  }
  if (stack.high - stack.low < kLeastStackBytes + g_most_frame_bytes) {
    leave_out(thread, kNoRoom);
    return nullptr;
  }
  if (g_armed_count >= g_most_armed) {
    warn_once("some threads are left out: the limit of pending signals is too low");
    return nullptr;
  }
  ThreadSamples* samples = thread.samples.load(std::memory_order_relaxed);
  if (samples == nullptr) samples = get_samples();
  if (samples == nullptr) {
    warn_once("some threads are left out: no memory");
    return nullptr;
  }
  samples->stack = stack;
  samples->is_tight.store(false, std::memory_order_relaxed);
  return samples;
}

enum class Room : std::uint8_t { kThere, kTooSmall, kNotNow };
Room signal_stack_room(pid_t tid) noexcept {
  const std::size_t small = small_signal_stack_of(tid);
  if (small == kChangingStack) return Room::kNotNow;
  return small == 0 || small >= least_signal_stack(g_frame_bytes) ? Room::kThere : Room::kTooSmall;
}

void arm(Thread& thread) noexcept {
  ThreadSamples* samples = prepare_samples(thread);
  if (samples == nullptr) return;
  thread.samples.store(samples, std::memory_order_release);
  if (!create_timer(thread, *samples)) return;
  thread.state = ThreadState::kArmed;
  ++g_armed_count;
  // From here on its thread finds it; what that noted before is seen. See signal_stacks.cpp.
  samples->owner.store(samples->stack.descriptor, std::memory_order_seq_cst);
  Room room = signal_stack_room(thread.tid);
  if (room == Room::kThere) {
    start_timer(*samples);
    room = signal_stack_room(thread.tid);  // it may have stopped the timer before it was started
  }
  if (room == Room::kThere) return;
  disarm(thread, ThreadState::kUnarmed);
  if (room == Room::kTooSmall) leave_out(thread, kNoRoom);
}

void disarm_all() noexcept {
  g_keeps_samples.store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < g_thread_count; ++i) {
    if (g_threads[i].state == ThreadState::kArmed) disarm(g_threads[i], ThreadState::kUnarmed);
  }
  g_state = SamplerState::kDisarmed;
}

void index_again() noexcept {
  g_index.clear();
  g_index_is_stale = false;
  for (std::size_t i = 0; i < g_thread_count; ++i) {
    const ThreadState state = g_threads[i].state;
    if (state == ThreadState::kUnused || state == ThreadState::kEnded) continue;
    g_index.add(g_threads[i].tid, i);
  }
}

Thread* find_thread(pid_t tid) noexcept {
  const std::size_t at = g_index.find(tid, g_threads);
  return at < kMostThreads ? &g_threads[at] : nullptr;
}

Thread* add_thread(pid_t tid) noexcept {
  std::size_t at = g_first_unused;
  while (at < g_thread_count && g_threads[at].state != ThreadState::kUnused) ++at;
  g_first_unused = at;
  if (at == kMostThreads || !g_index.add(tid, at)) {
    warn_once("some threads are left out: there are too many");
    return nullptr;
  }
  if (at == g_thread_count) ++g_thread_count;
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

// Our own threads are none of the program's; and one that blocks the signal, for which it has to go
// past libc, may wait for signals, of which ours must not be one.
bool may_be_sampled(pid_t tid) noexcept {
  ThreadStatus status;
  if (!read_thread_status(tid, &status)) return false;
  if (status.is_filtered) g_may_copy.store(false, std::memory_order_relaxed);
  if (std::strncmp(status.name, "cajeta-", 7) == 0) return false;
  return (status.blocked_signals >> (kSampleSignal - 1) & 1) == 0;
}

// The handler has stopped its timer.
bool is_tight(const Thread& thread) noexcept {
  const ThreadSamples* samples = thread.samples.load(std::memory_order_relaxed);
  return thread.state == ThreadState::kArmed && samples->is_tight.load(std::memory_order_acquire);
}

void look_at(pid_t tid, pid_t caller) noexcept {
  Thread* thread = find_thread(tid);
  if (thread != nullptr && is_tight(*thread)) {
    disarm(*thread, ThreadState::kUnarmed);
    leave_out(*thread, kNoRoom);
  }
  if (thread != nullptr && thread->state == ThreadState::kLeftOut) {
    thread->seen = g_look;
    return;
  }
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

std::uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void look_for_threads() noexcept {
  if (g_index_is_stale) index_again();
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

void look_now_and_then() noexcept {
  if (now_ns(CLOCK_MONOTONIC) < g_pause_until_ns) return;
  const std::uint64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
  look_for_threads();
  const std::uint64_t cost_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
  g_pause_until_ns = cost_ns > kLongLookNs ? now_ns(CLOCK_MONOTONIC) + kPauseFactor * cost_ns : 0;
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
    samples->owner.store(0, std::memory_order_relaxed);
    samples->next_free = g_free;
    g_free = samples;
  }
  thread.state = ThreadState::kUnused;
  g_index_is_stale = true;
  const auto number = static_cast<std::size_t>(&thread - g_threads);
  if (number < g_first_unused) g_first_unused = number;
}

// On a thread of ours, which has no alternative stack and none of the program's limits.
void* learn(void*) noexcept {
  // With the process's second thread libc sets its own handler.
  const bool is_known = keep_sample_signal() && learn_thread_stacks();
  g_frame_bytes = is_known ? measure_signal_frame() : 0;
  return nullptr;
}

// Says why not.
bool prepare() noexcept {
  start_own_memory();
  start_unwind_rules();
  set_sample_sources(
      {reinterpret_cast<const char*>(&g_threads[0].samples), sizeof g_threads, sizeof(Thread)},
      most_frame_bytes());
  if (!take_sample_signal(&take_sample_signal_of_ours)) {
    runtime::warn("host sampling is off: the system does not let signal %d be handled: %s",
                  kSampleSignal, std::strerror(errno));
    return false;
  }
  pthread_t thread;
  const int failure = runtime::start_own_thread(&thread, &learn);
  if (failure != 0) {
    runtime::warn("host sampling is off: no thread could be made: %s", std::strerror(failure));
    return false;
  }
  pthread_join(thread, nullptr);
  g_most_frame_bytes = std::max(g_frame_bytes, most_frame_bytes());
  if (g_frame_bytes != 0) return true;
  runtime::warn("host sampling is off: signals or the stacks of threads are not as with glibc");
  return false;
}

// Each timer takes one of the signals that may be pending; some are left to the program.
std::size_t most_timers() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_SIGPENDING, &limit) != 0) return kMostThreads;
  return limit.rlim_cur / 2 < kMostThreads ? limit.rlim_cur / 2 : kMostThreads;
}

}  // namespace

bool start_sampler(std::uint32_t hz, std::uint32_t ring_samples) noexcept {
  if (hz == 0 || ring_samples == 0 || g_state == SamplerState::kSampling) return false;
  const int saved_errno = errno;
  const bool is_ready = prepare();
  errno = saved_errno;
  if (!is_ready) return false;
  g_capacity = ring_samples;
  g_period_ns = 1'000'000'000L / static_cast<long>(hz);
  for (std::size_t i = 0; i < g_thread_count; ++i) release(g_threads[i]);
  g_thread_count = 0;
  g_first_unused = 0;
  index_again();
  g_most_armed = most_timers();
  g_pause_until_ns = 0;
  g_has_warned = false;
  g_state = SamplerState::kSampling;
  g_keeps_samples.store(true, std::memory_order_relaxed);
  return true;
}

void drain_samples(void (*take)(void* context, const HostSample& sample), void* context) noexcept {
  if (g_state == SamplerState::kOff) return;
  const int saved_errno = errno;
  if (g_state == SamplerState::kSampling && !keep_sample_signal()) {
    disarm_all();
    warn_once("stopped, as the program has set the handler of a signal that is libc's");
  }
  if (g_state == SamplerState::kSampling) look_now_and_then();
  for (std::size_t i = 0; i < g_thread_count; ++i) {
    drain(g_threads[i], take, context);
    if (g_threads[i].state == ThreadState::kEnded) release(g_threads[i]);
  }
  errno = saved_errno;
}

ThreadSamples* pause_own_samples() noexcept {
  if (!g_keeps_samples.load(std::memory_order_relaxed)) return nullptr;
  const auto self = static_cast<std::uintptr_t>(pthread_self());
  ThreadSamples* samples = g_all.load(std::memory_order_acquire);
  while (samples != nullptr && samples->owner.load(std::memory_order_seq_cst) != self) {
    samples = samples->next;
  }
  if (samples != nullptr) stop_timer(*samples);
  return samples;
}

void resume_own_samples(ThreadSamples& samples, std::size_t small_bytes) noexcept {
  if (small_bytes == 0 || small_bytes >= least_signal_stack(g_frame_bytes)) {
    start_timer(samples);
  } else {
    samples.is_tight.store(true, std::memory_order_release);
  }
}

void stop_sampler() noexcept {
  if (g_state != SamplerState::kSampling) return;
  const int saved_errno = errno;
  disarm_all();
  errno = saved_errno;
}

void forget_sampler() noexcept {
  g_keeps_samples.store(false, std::memory_order_relaxed);
  g_state = SamplerState::kOff;
}

SampleCounts sample_counts() noexcept {
  SampleCounts counts;
  counts.left_out = g_left_out.load(std::memory_order_relaxed);
  const ThreadSamples* samples = g_all.load(std::memory_order_acquire);
  for (; samples != nullptr; samples = samples->next) {
    counts.kept += samples->kept.load(std::memory_order_relaxed);
    counts.dropped += samples->dropped.load(std::memory_order_relaxed);
    counts.handler_ns += samples->handler_ns.load(std::memory_order_relaxed);
  }
  return counts;
}

}  // namespace profiler
