// SPDX-License-Identifier: Apache-2.0
#include "runtime/submit_turn.h"

#include "runtime/futex.h"
#include "runtime/real_clock.h"
#include "runtime/stream_queue.h"

namespace runtime {
namespace {

// About as long as a replay takes (6 us): fewer, and a thread sleeps for what is about to end;
// more, and it burns its core while another one is in the driver.
constexpr int kSpins = 200;

const void* this_thread() noexcept {
  return &t_reentry_depth;
}

std::uint64_t now_us() noexcept {
  const timespec now = read_real_clock(CLOCK_MONOTONIC);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace

bool TurnWord::take() noexcept {
  std::uint32_t free = kFree;
  // Acquire pairs with the release in give_back(): what the last holder did is seen. holder_ is
  // relaxed: a thread looks for itself alone.
  if (!word_.compare_exchange_strong(free, kTaken, std::memory_order_acquire)) return false;
  holder_.store(this_thread(), std::memory_order_relaxed);
  return true;
}

void TurnWord::give_back() noexcept {
  holder_.store(nullptr, std::memory_order_relaxed);
  if (word_.exchange(kFree, std::memory_order_release) == kAwaited) futex_wake(word_);
}

bool TurnWord::wait_free(std::uint64_t microseconds) noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (!is_taken()) return true;
    pause_briefly();
  }
  const bool is_bounded = microseconds != kForever;
  const std::uint64_t end_us = is_bounded ? now_us() + microseconds : 0;
  for (;;) {
    std::uint32_t state = word_.load(std::memory_order_acquire);
    if (state == kFree) return true;
    if (holder_.load(std::memory_order_relaxed) == this_thread()) return false;
    if (state == kTaken && !word_.compare_exchange_strong(state, kAwaited)) continue;
    const std::uint64_t now = is_bounded ? now_us() : 0;
    if (is_bounded && now >= end_us) return false;
    const timespec left = timeout_of_us(end_us - now);
    futex_wait(word_, kAwaited, is_bounded ? &left : nullptr);
  }
}

SubmitTurn::SubmitTurn(StreamQueue& queue) noexcept {
  for (;;) {
    queue.lock().lock();
    if (queue.take_turn()) break;
    queue.turn().wait_free(TurnWord::kForever);
  }
  queue_ = &queue;
}

SubmitTurn::SubmitTurn(StreamQueue& queue, int milliseconds) noexcept {
  for (;;) {
    // A moment even for those who do not want to wait: an append is over soon.
    if (!queue.lock().lock_within(milliseconds != 0 ? milliseconds : 1)) return;
    if (queue.take_turn()) break;
    const auto microseconds = static_cast<std::uint64_t>(milliseconds) * 1000;
    if (milliseconds == 0 || !queue.turn().wait_free(microseconds)) return;
  }
  queue_ = &queue;
}

SubmitTurn::~SubmitTurn() {
  if (queue_ == nullptr) return;
  while (!queue_->give_turn_back()) queue_->purge_dead_functions(*this);
}

}  // namespace runtime
