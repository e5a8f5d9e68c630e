// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/sample_handler.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>

#include "profiler/clock.h"
#include "profiler/trace/other_stack.h"
#include "runtime/real_clock.h"

namespace profiler {

constinit std::atomic<bool> g_keeps_samples{false};

namespace {

constinit SampleSources g_sources{nullptr, 0, 1};
constinit std::size_t g_frame_bytes = 0;
// Of the thread that measures; its address is what the measuring signal carries.
constinit std::atomic<std::size_t> g_measured{0};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) noexcept {
  // Release: what the handler wrote before is seen by the thread that this memory serves next.
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_release);
}

bool is_measuring(const siginfo_t& info) noexcept {
  return info.si_code == SI_QUEUE && info.si_value.sival_ptr == &g_measured &&
         info.si_pid == getpid();
}

// Null: not of our timers, or of one whose thread has ended since.
ThreadSamples* samples_of(const siginfo_t& info) noexcept {
  const auto* source = static_cast<const SampleSource*>(info.si_value.sival_ptr);
  ThreadSamples* samples = source->load(std::memory_order_acquire);
  if (samples == nullptr) return nullptr;
  const auto self = static_cast<std::uintptr_t>(pthread_self());
  return samples->owner.load(std::memory_order_acquire) == self ? samples : nullptr;
}

bool is_from_source(const siginfo_t& info) noexcept {
  if (info.si_code != SI_TIMER) return false;
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(info.si_value.sival_ptr) -
                                reinterpret_cast<std::uintptr_t>(g_sources.first);
  return offset < g_sources.bytes && offset % g_sources.step == 0;
}

// Not ticks: the kernel's clock tick, which raises the signal, is also when a thread has to make
// way for another, and that time is not the handler's.
std::uint64_t thread_cpu_ns() noexcept {
  const timespec now = runtime::read_real_clock(CLOCK_THREAD_CPUTIME_ID);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Whether the next signal would find room. `here`: in the handler's frame.
bool has_room(const ThreadSamples& samples, std::uintptr_t here, const void* context) noexcept {
  if (here >= samples.stack.low && here < samples.stack.high) {
    return here - samples.stack.low >= kLeastRoomBytes + g_frame_bytes;
  }
  const stack_t& other = static_cast<const ucontext_t*>(context)->uc_stack;
  const std::uintptr_t from_low = here - reinterpret_cast<std::uintptr_t>(other.ss_sp);
  return other.ss_size == 0 || from_low >= other.ss_size || from_low >= kHandlerBytes;
}

struct Sample {
  ThreadSamples& samples;
  int overrun;
  const void* context;
};

// On a stack of ours.
void keep(void* argument) noexcept {
  const Sample& sample = *static_cast<const Sample*>(argument);
  ThreadSamples& samples = sample.samples;
  const std::uint64_t start_ns = thread_cpu_ns();
  if (StoredSample* slot = samples.ring.claim(samples.slots, samples.capacity)) {
    slot->time_ns = monotonic_ns();
    slot->weight = sample.overrun > 0 ? static_cast<std::uint32_t>(sample.overrun) + 1 : 1;
    slot->depth = static_cast<std::uint32_t>(walk_interrupted(
        sample.context, samples.stack, *samples.walk, slot->addresses, kTraceDepth));
    samples.ring.publish();
    add(samples.kept, 1);
  } else {
    add(samples.dropped, 1);
  }
  add(samples.handler_ns, thread_cpu_ns() - start_ns);
}

}  // namespace

bool take_sample_signal_of_ours(const siginfo_t& info, void* context) noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (!is_from_source(info)) {
    if (!is_measuring(info)) return false;
    // On the same stack; the kernel's part lies above `here`, and the interrupted code above that.
    g_measured.store(interrupted_stack(context) - here, std::memory_order_relaxed);
    return true;
  }
  if (!g_keeps_samples.load(std::memory_order_relaxed)) return true;
  const int saved_errno = errno;
  if (ThreadSamples* samples = samples_of(info)) {
    if (has_room(*samples, here, context)) {
      Sample sample{*samples, info.si_overrun, context};
      call_on_stack(samples->own_stack_top, &keep, &sample);
    } else {
      stop_timer(*samples);
      samples->is_tight.store(true, std::memory_order_release);
    }
  }
  errno = saved_errno;
  return true;
}

void start_timer(const ThreadSamples& samples) noexcept {
  itimerspec period{};
  period.it_interval.tv_sec = period.it_value.tv_sec = samples.period_ns / 1'000'000'000;
  period.it_interval.tv_nsec = period.it_value.tv_nsec = samples.period_ns % 1'000'000'000;
  syscall(SYS_timer_settime, samples.timer, 0, &period, nullptr);
}
void stop_timer(const ThreadSamples& samples) noexcept {
  const itimerspec never{};
  syscall(SYS_timer_settime, samples.timer, 0, &never, nullptr);
}

void set_sample_sources(const SampleSources& sources, std::size_t frame_bytes) noexcept {
  g_sources = sources;
  g_frame_bytes = frame_bytes;
}

std::size_t measure_signal_frame() noexcept {
  siginfo_t info{};
  info.si_signo = kSampleSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = &g_measured;
  g_measured.store(0, std::memory_order_relaxed);
  syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), kSampleSignal, &info);
  return g_measured.load(std::memory_order_relaxed);
}

}  // namespace profiler
