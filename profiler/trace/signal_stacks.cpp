// SPDX-License-Identifier: Apache-2.0
// A thread notes its stack before it looks whether it is sampled, and the sampler looks at the
// notes after it has begun to sample a thread: one of them sees the other.
#include "profiler/trace/signal_stacks.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "profiler/trace/sampler.h"

#if !defined(AT_MINSIGSTKSZ)
#define AT_MINSIGSTKSZ 51
#endif

namespace profiler {
namespace {

// Of threads with small stacks at one time.
constexpr std::size_t kMostNotes = 1024;
// What the program's own handler may use, and ours.
constexpr std::size_t kHandlersBytes = 3072;

// Thread id and bytes; 0: free.
constinit std::atomic<std::uint64_t> g_notes[kMostNotes];
constinit std::atomic<bool> g_is_overfull{false};

std::uint64_t note_of(pid_t tid, std::size_t bytes) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(tid)} << 32 | static_cast<std::uint32_t>(bytes);
}
pid_t thread_of(std::uint64_t note) noexcept {
  return static_cast<pid_t>(note >> 32);
}

pid_t own_tid() noexcept {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

bool has_ended(pid_t tid) noexcept {
  return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

void forget(pid_t tid) noexcept {
  for (std::atomic<std::uint64_t>& note : g_notes) {
    if (thread_of(note.load(std::memory_order_relaxed)) == tid) {
      note.store(0, std::memory_order_relaxed);
    }
  }
}

bool add_note(std::uint64_t note, bool replaces_ended) noexcept {
  for (std::atomic<std::uint64_t>& slot : g_notes) {
    std::uint64_t old = slot.load(std::memory_order_relaxed);
    if (old != 0 && !(replaces_ended && has_ended(thread_of(old)))) continue;
    if (slot.compare_exchange_strong(old, note, std::memory_order_seq_cst)) return true;
  }
  return false;
}

void remember(pid_t tid, std::size_t bytes) noexcept {
  const std::uint64_t note = note_of(tid, bytes);
  if (!add_note(note, false) && !add_note(note, true)) g_is_overfull.store(true);
}

// What samples may ever need.
bool may_be_small(const stack_t& stack) noexcept {
  return (stack.ss_flags & SS_DISABLE) == 0 &&
         stack.ss_size < least_signal_stack(most_frame_bytes());
}

}  // namespace

std::size_t most_frame_bytes() noexcept {
  constexpr std::size_t kUntold = 4096;  // by older kernels
  const std::size_t told = getauxval(AT_MINSIGSTKSZ);
  return told != 0 ? told : kUntold;
}

std::size_t least_signal_stack(std::size_t frame_bytes) noexcept {
  return 2 * frame_bytes + kHandlersBytes;
}

int set_signal_stack(const stack_t* next, stack_t* before) noexcept {
  if (next == nullptr) return static_cast<int>(syscall(SYS_sigaltstack, next, before));
  const pid_t tid = own_tid();
  const std::size_t old_bytes = small_signal_stack_of(tid);
  if (old_bytes != 0) forget(tid);
  remember(tid, kChangingStack);
  ThreadSamples* samples = pause_own_samples();
  const long result = syscall(SYS_sigaltstack, next, before);
  const int failure = errno;
  std::size_t bytes = old_bytes;
  // That it succeeded says that the pointer is good.
  if (result == 0) bytes = may_be_small(*next) ? next->ss_size : 0;
  forget(tid);
  if (bytes != 0) remember(tid, bytes);
  if (samples != nullptr) resume_own_samples(*samples, bytes);
  errno = failure;
  return static_cast<int>(result);
}

std::size_t small_signal_stack_of(pid_t tid) noexcept {
  if (g_is_overfull.load(std::memory_order_seq_cst)) return SIZE_MAX;
  for (const std::atomic<std::uint64_t>& slot : g_notes) {
    const std::uint64_t note = slot.load(std::memory_order_seq_cst);
    if (thread_of(note) == tid) return static_cast<std::uint32_t>(note);
  }
  return 0;
}

}  // namespace profiler
