// SPDX-License-Identifier: Apache-2.0
// The turn to submit of one queue. Whoever has it is alone with the queue's batch and recordings,
// and may stay in the driver as long as that takes: no lock is held meanwhile. Others that would
// append or submit there wait for the turn, which CUDA's own order of the stream asks of them; all
// others see that it is taken and go on. Functions of a queue that need the turn take one. Any
// thread; not recursive; a signal handler that ends the process may have interrupted its holder.
#pragma once

#include <atomic>
#include <cstdint>

namespace runtime {

class StreamQueue;

// The word that says whose turn it is.
class TurnWord {
 public:
  // Acquire pairs with the release in give_back().
  bool is_taken() const noexcept { return word_.load(std::memory_order_acquire) != kFree; }
  // With the queue's lock held, so that an append sees it or has happened before.
  bool take() noexcept;
  void give_back() noexcept;
  // Until it is free, at most about `microseconds`. False: it still is not, or this very thread has
  // it.
  bool wait_free(std::uint64_t microseconds) noexcept;
  static constexpr std::uint64_t kForever = UINT64_MAX;

 private:
  enum State : std::uint32_t { kFree, kTaken, kAwaited };
  std::atomic<std::uint32_t> word_{kFree};
  std::atomic<const void*> holder_{nullptr};  // a thread, while taken
};

class SubmitTurn {
 public:
  // Waits for it.
  explicit SubmitTurn(StreamQueue& queue) noexcept;
  // Only if nobody has it.
  static SubmitTurn at_once(StreamQueue& queue) noexcept { return SubmitTurn(queue, 0); }
  // Waits so long at most: where the holder may never come back.
  static SubmitTurn within(StreamQueue& queue, int milliseconds) noexcept {
    return SubmitTurn(queue, milliseconds);
  }
  ~SubmitTurn();
  SubmitTurn(const SubmitTurn&) = delete;
  SubmitTurn& operator=(const SubmitTurn&) = delete;

  explicit operator bool() const noexcept { return queue_ != nullptr; }

 private:
  SubmitTurn(StreamQueue& queue, int milliseconds) noexcept;
  StreamQueue* queue_ = nullptr;
};

}  // namespace runtime
