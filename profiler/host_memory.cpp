// SPDX-License-Identifier: Apache-2.0
// A sorted table behind a version number: odd while it is changed. Readers that saw a change start
// over; after a few tries they give up rather than wait. Each element is stored with release and
// loaded with acquire, so that a reader of a new element also sees the odd version.
#include "profiler/host_memory.h"

#include <algorithm>
#include <atomic>

#include "runtime/mutex.h"

namespace profiler {
namespace {

constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr int kTries = 4;

struct Range {
  std::atomic<std::uintptr_t> start{0};
  std::atomic<std::uintptr_t> end{0};
};

constinit Range g_ranges[kMaxLockedRanges];
constinit std::atomic<std::size_t> g_count{0};
constinit std::atomic<std::uint32_t> g_version{0};
constinit std::atomic<bool> g_is_incomplete{false};
constinit runtime::Mutex g_mutex;  // writers

class Change {
 public:
  Change() noexcept : guard_(g_mutex) { g_version.fetch_add(1, std::memory_order_acq_rel); }
  ~Change() { g_version.fetch_add(1, kRelease); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  runtime::MutexGuard guard_;
};

// The first range that starts above `address`. Its place is right only if the version held still.
std::size_t place_above(std::uintptr_t address) noexcept {
  std::size_t low = 0;
  std::size_t high = std::min(g_count.load(kAcquire), kMaxLockedRanges);
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (g_ranges[middle].start.load(kAcquire) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void move(std::size_t from, std::size_t to) noexcept {
  g_ranges[to].start.store(g_ranges[from].start.load(kAcquire), kRelease);
  g_ranges[to].end.store(g_ranges[from].end.load(kAcquire), kRelease);
}

}  // namespace

void note_locked_memory(std::uintptr_t start, std::size_t bytes) noexcept {
  if (start == 0 || bytes == 0) return;
  const Change change;
  const std::size_t count = g_count.load(kAcquire);
  if (count == kMaxLockedRanges) return g_is_incomplete.store(true, kRelease);
  const std::size_t place = place_above(start);
  for (std::size_t i = count; i > place; --i) move(i - 1, i);
  g_ranges[place].start.store(start, kRelease);
  g_ranges[place].end.store(start + bytes, kRelease);
  g_count.store(count + 1, kRelease);
}

void forget_locked_memory(std::uintptr_t start) noexcept {
  if (g_count.load(kAcquire) == 0) return;
  const Change change;
  const std::size_t place = place_above(start);
  if (place == 0 || g_ranges[place - 1].start.load(kAcquire) != start) return;
  const std::size_t count = g_count.load(kAcquire);
  for (std::size_t i = place; i < count; ++i) move(i, i - 1);
  g_count.store(count - 1, kRelease);
}

HostSide host_side_of(std::uintptr_t address) noexcept {
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::uint32_t version = g_version.load(kAcquire);
    if ((version & 1u) != 0) continue;
    const std::size_t place = place_above(address);
    const bool is_inside = place > 0 && address < g_ranges[place - 1].end.load(kAcquire);
    if (g_version.load(kAcquire) != version) continue;
    if (is_inside) return HostSide::kLocked;
    return g_is_incomplete.load(kAcquire) ? HostSide::kUnknown : HostSide::kPageable;
  }
  return HostSide::kUnknown;
}

}  // namespace profiler
