// SPDX-License-Identifier: Apache-2.0
#include "runtime/deadline.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/flush_queues.h"
#include "runtime/futex.h"
#include "runtime/log.h"
#include "runtime/own_thread.h"

namespace runtime {
namespace {

// 200 empty scans, 20 ms at the default deadline, before the leader sleeps. Fewer: programs that
// launch in bursts pay the wake-up system call for each; more: an idle process keeps waking.
constexpr int kIdleScans = 200;
// One leads, one follows; others are stuck in the driver, a stream each. 64: more stuck streams
// than programs have; a thread costs its stack.
constexpr std::uint32_t kMostThreads = 64;
// Looks of the leader between two tries for a follower, where none could be made: a tenth of a
// second at the default deadline. Fewer: a process at its limit of threads is asked at each look;
// more: a stream that gets stuck meanwhile holds up the others for so much longer.
constexpr std::uint32_t kLooksWithoutFollower = 1000;
// Launches that are to pass before a leader is tried for again, up to 4,096 of them: a try takes
// about as long as ten launches.
constexpr std::uint32_t kMostDoublings = 12;

// Relaxed: threads that race cost a try, or put one off.
constinit std::atomic<std::uint32_t> g_failed_tries{0};
constinit std::atomic<std::uint32_t> g_skipped_tries{0};

// A submission that takes longer is stuck, whatever the deadline. Smaller: building a graph (a
// millisecond for a thousand nodes) would count as stuck; larger: a thread of the program waits so
// long for another one's stuck stream.
constexpr std::uint64_t kMostPatienceUs = 2000;

constinit std::uint64_t g_deadline_us = 200;
constinit thread_local bool t_is_ours [[gnu::tls_model("initial-exec")]] = false;

bool has_waited_long(StreamQueue& queue) noexcept {
  if (queue.is_due()) return true;
  const std::uint32_t ticket = queue.waiting_ticket();
  return queue.seen_ticket.exchange(ticket, std::memory_order_relaxed) == ticket;
}

// Whoever has the turn submits what waits, or was interrupted for good by a signal handler that
// ends the process and waits for this thread.
void send_on(StreamQueue& queue) noexcept {
  const SubmitTurn turn = SubmitTurn::at_once(queue);
  if (!turn || queue.waiting_ticket() == 0) return;
  FlushCause cause = FlushReason::kDeadline;
  if (queue.take_due(&cause)) {
    queue.close(turn, cause);
  } else {
    queue.submit_pending(turn, cause, DirectReason::kDeadline);
  }
}

}  // namespace

constinit std::atomic<std::uint32_t> Deadline::state_{Deadline::kNoThread};
constinit std::atomic<std::uint32_t> Deadline::hold_{Deadline::kNoHold};
constinit std::atomic<bool> Deadline::asks_policy_{false};
constinit std::atomic<std::uint32_t> Deadline::epoch_{0};
constinit std::atomic<std::uint32_t> Deadline::busy_{0};
constinit std::atomic<std::uint32_t> Deadline::hurries_{0};
constinit std::atomic<std::uint32_t> Deadline::threads_{0};
constinit std::atomic<std::uint32_t> Deadline::followers_{0};

void Deadline::configure(std::uint64_t deadline_us) noexcept {
  g_deadline_us = deadline_us;
  hold_.store(kNoHold);
  g_failed_tries.store(0);
  g_skipped_tries.store(0);
  state_.store(kNoThread);
}

std::uint64_t Deadline::patience_us() noexcept {
  return g_deadline_us < kMostPatienceUs ? g_deadline_us : kMostPatienceUs;
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

bool Deadline::leads(std::uint32_t epoch) noexcept {
  return epoch_.load() == epoch && state_.load(std::memory_order_relaxed) != kStopped;
}

// Sends on the queues that were already waiting at the scan before. True when any queue waits.
bool Deadline::scan(std::uint32_t epoch) noexcept {
  if (is_held()) return true;
  bool any = false;
  OldestFirst open(nullptr);
  for (StreamQueue* queue : open) {
    if (queue->waiting_ticket() == 0) continue;
    any = true;
    if (!has_waited_long(*queue) || queue->turn().is_taken()) continue;
    std::uint32_t busy = busy_.fetch_add(1) + 1;
    futex_wake(busy_, 1);
    send_on(*queue);
    // Another one leads if that took too long; the word is its own then.
    if (!busy_.compare_exchange_strong(busy, busy + 1) || !leads(epoch)) return true;
  }
  return any || open.is_cut();
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
  while (state_.load() == kAsleep) futex_wait(state_, kAsleep);
}

void Deadline::lead(std::uint32_t epoch) noexcept {
  // At least a nanosecond: none at all would not wait.
  const timespec period = timeout_of_us(g_deadline_us < 2 ? 1 : g_deadline_us / 2);
  int idle = 0;
  for (std::uint32_t look = 0; leads(epoch); ++look) {
    if (look % kLooksWithoutFollower == 0 && followers_.load() == 0 &&
        threads_.load() < kMostThreads) {
      static_cast<void>(start_thread(&run_follower));  // without one: see the next try
    }
    const std::uint32_t hurries = hurries_.load();
    idle = scan(epoch) ? 0 : idle + 1;
    if (!leads(epoch)) return;
    if (idle >= kIdleScans) {
      sleep_until_woken();
      idle = 0;
    } else {
      futex_wait(hurries_, hurries, &period);
    }
  }
}

// Until this thread is to lead: the epoch; or 0 when it is to end.
std::uint32_t Deadline::follow() noexcept {
  // One follower is enough.
  if (followers_.fetch_add(1) != 0) {
    followers_.fetch_sub(1);
    return 0;
  }
  const timespec patience = timeout_of_us(patience_us());
  std::uint32_t led = 0;
  while (led == 0 && state_.load() != kStopped) {
    std::uint32_t busy = busy_.load();
    std::uint32_t epoch = epoch_.load();
    if (busy % 2 == 0) {
      futex_wait(busy_, busy);
      continue;
    }
    futex_wait(busy_, busy, &patience);
    const bool is_stuck = busy_.load() == busy;
    if (is_stuck && epoch_.compare_exchange_strong(epoch, epoch + 1)) {
      busy_.compare_exchange_strong(busy, busy + 1);
      led = epoch + 1;
    }
  }
  followers_.fetch_sub(1);
  return led;
}

// `epoch` 0: not yet to lead.
void Deadline::serve(std::uint32_t epoch) noexcept {
  t_is_ours = true;
  pthread_setname_np(pthread_self(), "cajeta-deadline");
  prctl(PR_SET_TIMERSLACK, 1000);  // 1 us: the default of 50 would be a quarter of the deadline
  do {
    if (epoch != 0) lead(epoch);
    epoch = follow();
  } while (epoch != 0);
  threads_.fetch_sub(1);
  futex_wake(threads_);
}

void* Deadline::run_leader(void*) noexcept {
  serve(epoch_.fetch_add(1) + 1);
  return nullptr;
}

void* Deadline::run_follower(void*) noexcept {
  serve(0);
  return nullptr;
}

// 0, or why there is none.
int Deadline::start_thread(void* (*run)(void*)) noexcept {
  threads_.fetch_add(1);
  pthread_t thread;
  const int failure = start_own_thread(&thread, run);
  if (failure == 0) return pthread_detach(thread);
  threads_.fetch_sub(1);
  return failure;
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
  const int failure = start_thread(&run_leader);
  std::uint32_t starting = kStarting;
  // Not awake if the process is leaving meanwhile: then the thread ends.
  if (failure == 0) return state_.compare_exchange_strong(starting, kAwake);
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

void Deadline::wake() noexcept {
  std::uint32_t state = kAsleep;
  if (state_.compare_exchange_strong(state, kAwake)) futex_wake(state_);
}

void Deadline::hurry() noexcept {
  watch();
  hurries_.fetch_add(1);
  futex_wake(hurries_, 1);
}

void Deadline::stop() noexcept {
  state_.store(kStopped);
  hurries_.fetch_add(1);
  busy_.fetch_add(2);
  for (std::atomic<std::uint32_t>* word : {&state_, &hurries_, &busy_}) futex_wake(*word);
  // Bounded: at exit a thread may be stuck in the driver, or waiting for a lock whose holder a
  // signal handler has interrupted for good.
  constexpr int kPatienceMs = 2000;
  const timespec slice = timeout_of_us(20'000);
  for (int waited_ms = 0; waited_ms < kPatienceMs; waited_ms += 20) {
    const std::uint32_t threads = threads_.load();
    if (threads <= (t_is_ours ? 1 : 0)) break;
    futex_wait(threads_, threads, &slice);
  }
}

void Deadline::forget() noexcept {
  state_.store(kStopped);
  threads_.store(0);
  followers_.store(0);
}

}  // namespace runtime
