// SPDX-License-Identifier: Apache-2.0
// Samples of one thread on their way from its signal handler to the drain: one writer, one reader,
// no lock. A full ring drops. Whenever everything has been read, writing starts over at the first
// slot, so that a ring uses no more memory than the samples between two drains need.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/trace/records.h"

namespace profiler {

struct StoredSample {
  std::uint64_t time_ns;
  std::uint32_t weight;
  std::uint32_t depth;
  std::uintptr_t addresses[kTraceDepth];
};

// Zeroed memory is an empty ring; the slots are the caller's, always the same.
class SampleRing {
 public:
  // Writer only. Null: full. The slot is the reader's from publish() on.
  StoredSample* claim(StoredSample* slots, std::uint32_t capacity) noexcept {
    const std::uint64_t written = written_.load(std::memory_order_relaxed);
    // Acquire pairs with advance(): the reader has left the slots that are written again.
    const std::uint64_t read = read_.load(std::memory_order_acquire);
    if (written - read >= capacity) return nullptr;
    // The reader looks at first_ only after it has seen more written than read.
    if (written == read) first_ = written;
    return &slots[(written - first_) % capacity];
  }
  void publish() noexcept {
    written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Reader only. Null: empty.
  const StoredSample* next(const StoredSample* slots, std::uint32_t capacity) const noexcept {
    const std::uint64_t read = read_.load(std::memory_order_relaxed);
    // Acquire pairs with publish().
    if (written_.load(std::memory_order_acquire) == read) return nullptr;
    return &slots[(read - first_) % capacity];
  }
  void advance() noexcept {
    read_.store(read_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  std::atomic<std::uint64_t> written_, read_;
  std::uint64_t first_;  // number of the sample in the first slot; writer, while the ring is empty
};

}  // namespace profiler
