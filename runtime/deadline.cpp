// SPDX-License-Identifier: Apache-2.0
#include "runtime/deadline.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/flush_queues.h"
#include "runtime/log.h"
#include "runtime/own_thread.h"

namespace runtime {
namespace {

// 200 empty scans, 20 ms at the default deadline, before the thread sleeps. Fewer: programs that
// launch in bursts pay the wake-up system call for each; more: an idle process keeps waking.
constexpr int kIdleScans = 200;

constinit std::uint64_t g_period_ns = 100'000;
constinit pthread_t g_thread{};
constinit std::atomic<bool> g_has_thread{false};
constinit std::atomic<std::uint32_t> g_is_done{0};  // the thread has left its loop

// Launches that are to pass before a thread is tried for again, up to 4,096 of them: a try takes
// about as long as ten launches.
constexpr std::uint32_t kMostDoublings = 12;
constinit std::atomic<std::uint32_t> g_failed_tries{0};
constinit std::atomic<std::uint32_t> g_skipped_tries{0};

// Waits while the word holds `value`, at most `timeout` (null: for ever).
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                const timespec* timeout) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, timeout,
          nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr,
          nullptr, 0);
}

}  // namespace

constinit std::atomic<std::uint32_t> Deadline::state_{Deadline::kNoThread};
constinit std::atomic<std::uint32_t> Deadline::hold_{Deadline::kNoHold};
constinit std::atomic<bool> Deadline::asks_policy_{false};

void Deadline::configure(std::uint64_t deadline_us) noexcept {
  g_period_ns = deadline_us * 500;
  hold_.store(kNoHold);
  g_failed_tries.store(0);
  g_skipped_tries.store(0);
  state_.store(kNoThread);
}

bool Deadline::is_held() noexcept {
  const std::uint32_t hold = hold_.load();
  if (hold == kNoHold) [[likely]]
    return false;
  if (hold == kLocking) return true;
  CUprocessState state = CU_PROCESS_STATE_RUNNING;
  const bool is_told = real.cuCheckpointProcessGetState(getpid(), &state) == CUDA_SUCCESS;
  if (is_told && (state == CU_PROCESS_STATE_LOCKED || state == CU_PROCESS_STATE_CHECKPOINTED))
    return true;
  std::uint32_t locked = kLocked;
  hold_.compare_exchange_strong(locked, kNoHold);
  return false;
}

// Sends on the queues that were already waiting at the scan before. True when any queue waits.
bool Deadline::scan() noexcept {
  if (is_held()) return true;
  bool any = false;
  for_each_queue(nullptr, [&](StreamQueue& queue) {
    std::uint32_t ticket = queue.waiting_ticket();
    if (ticket == 0) return;
    any = true;
    if (ticket != queue.seen_ticket) {
      queue.seen_ticket = ticket;
      return;
    }
    // Whoever holds it for longer submits what waits, or was interrupted for good by a signal
    // handler that ends the process and waits for this thread.
    if (!queue.lock().lock_at_once()) return;
    const QueueGuard guard(queue.lock(), std::adopt_lock);
    if (queue.waiting_ticket() != ticket) return;
    CUresult result = queue.submit_pending(FlushReason::kDeadline, DirectReason::kDeadline);
    if (is_mutant(Mutant::kDeadlineErrorLost)) return;
    if (result != CUDA_SUCCESS) leave_deferred_error(*queue.context(), result);
  });
  return any;
}

void Deadline::sleep_until_woken() noexcept {
  std::uint32_t awake = kAwake;
  if (!state_.compare_exchange_strong(awake, kAsleep)) return;
  // One more look after saying so: see watch().
  bool waiting = false;
  for_each_queue(nullptr, [&](StreamQueue& queue) { waiting |= queue.waiting_ticket() != 0; });
  std::uint32_t asleep = kAsleep;
  if (waiting) {
    state_.compare_exchange_strong(asleep, kAwake);
    return;
  }
  while (state_.load() == kAsleep) futex_wait(state_, kAsleep, nullptr);
}

void* Deadline::run(void*) noexcept {
  pthread_setname_np(pthread_self(), "cajeta-deadline");
  prctl(PR_SET_TIMERSLACK, 1000);  // 1 us: the default of 50 would be a quarter of the deadline
  int idle = 0;
  const timespec period{static_cast<time_t>(g_period_ns / 1'000'000'000),
                        static_cast<long>(g_period_ns % 1'000'000'000)};
  for (;;) {
    // On the state, so that stop() need not wait for a long deadline to pass.
    const std::uint32_t state = state_.load(std::memory_order_relaxed);
    if (state == kStopped) break;
    futex_wait(state_, state, &period);
    if (state_.load(std::memory_order_relaxed) == kStopped) break;
    idle = scan() ? 0 : idle + 1;
    if (idle >= kIdleScans) {
      sleep_until_woken();
      idle = 0;
    }
  }
  g_is_done.store(1);
  futex_wake(g_is_done);
  return nullptr;
}

void Deadline::wake() noexcept {
  std::uint32_t state = kAsleep;
  if (state_.compare_exchange_strong(state, kAwake)) futex_wake(state_);
}

DirectReason Deadline::refusal_by_asking() noexcept {
  if (is_mutant(Mutant::kDeadlineOff)) return DirectReason::kCount;
  // A real-time thread that polls may have the only core that ours could run on.
  if (is_real_time_thread()) return DirectReason::kRealTime;
  const std::uint32_t state = state_.load();
  if (state == kAwake || state == kAsleep) return DirectReason::kCount;
  if (state == kStopped) return DirectReason::kStopped;
  return state == kNoThread && start() ? DirectReason::kCount : DirectReason::kNoThread;
}

// False: not now. Another thread may be at it, and where none could be made it is tried again after
// twice as many launches each time.
bool Deadline::start() noexcept {
  const std::uint32_t skip = g_skipped_tries.load(std::memory_order_relaxed);
  if (skip != 0) {
    g_skipped_tries.store(skip - 1, std::memory_order_relaxed);
    return false;
  }
  std::uint32_t none = kNoThread;
  if (!state_.compare_exchange_strong(none, kStarting)) return false;
  asks_policy_.store(may_become_real_time(), std::memory_order_relaxed);
  g_is_done.store(0, std::memory_order_relaxed);
  const int failure = start_own_thread(&g_thread, &run);
  std::uint32_t starting = kStarting;
  if (failure == 0) {
    g_has_thread.store(true);
    // Not if the process is leaving meanwhile: then the thread ends.
    return state_.compare_exchange_strong(starting, kAwake);
  }
  state_.compare_exchange_strong(starting, kNoThread);
  const std::uint32_t tries = g_failed_tries.fetch_add(1, std::memory_order_relaxed);
  g_skipped_tries.store(1u << (tries < kMostDoublings ? tries : kMostDoublings),
                        std::memory_order_relaxed);
  if (tries == 0) {
    warn(
        "no thread could be made (error %d): launches are not queued until one can, as nothing "
        "would bound how long they wait",
        failure);
  }
  return false;
}

void Deadline::stop() noexcept {
  state_.store(kStopped);
  if (!g_has_thread.exchange(false)) return;
  futex_wake(state_);
  if (pthread_equal(g_thread, pthread_self())) return;
  // Bounded: at exit the thread may be waiting for a lock whose holder a signal handler has
  // interrupted for good. By waits of fixed length, 2 s together: clocks may stand still.
  constexpr timespec kStep{0, 10'000'000};
  for (int step = 0; step < 200 && g_is_done.load() == 0; ++step) {
    futex_wait(g_is_done, 0, &kStep);
  }
  if (g_is_done.load() != 0) pthread_join(g_thread, nullptr);
}

void Deadline::forget() noexcept {
  g_has_thread.store(false);
  state_.store(kStopped);
}

}  // namespace runtime
