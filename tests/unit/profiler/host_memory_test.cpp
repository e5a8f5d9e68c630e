// SPDX-License-Identifier: Apache-2.0
// Ranges of page-locked memory: found while others change the table, and admitted to be unknown
// once one found no room.
#include "profiler/host_memory.h"

#include <atomic>
#include <thread>

#include "tests/unit/catch.h"

using namespace profiler;

TEST_CASE("a range that stays is found, or unknown, while the table changes around it") {
  constexpr std::uintptr_t kStays = 0x510000;
  note_locked_memory(kStays, 64);
  std::atomic<bool> is_done{false};
  std::thread writer([&] {
    for (int round = 0; round < 2'000; ++round) {
      for (std::uintptr_t start = 0x100000; start < 0x900000; start += 0x80001) {
        note_locked_memory(start, 16);
      }
      for (std::uintptr_t start = 0x100000; start < 0x900000; start += 0x80001) {
        forget_locked_memory(start);
      }
    }
    is_done = true;
  });
  bool is_lost = false;
  while (!is_done) {
    const HostSide side = host_side_of(kStays + 63);
    is_lost |= side == HostSide::kPageable || side == HostSide::kNone;
  }
  writer.join();
  CHECK_FALSE(is_lost);
  CHECK(host_side_of(kStays) == HostSide::kLocked);
  CHECK(host_side_of(0x100000) == HostSide::kPageable);
  forget_locked_memory(kStays);
  CHECK(host_side_of(kStays) == HostSide::kPageable);
}

TEST_CASE("nothing is locked at address 0 or in no bytes") {
  note_locked_memory(0, 100);
  note_locked_memory(0x700000, 0);
  CHECK(host_side_of(0) == HostSide::kPageable);
  CHECK(host_side_of(0x700000) == HostSide::kPageable);
}

TEST_CASE("the last case of this process: a table that ran full knows no pageable memory") {
  for (std::uintptr_t i = 1; i <= kMaxLockedRanges + 1; ++i) note_locked_memory(i * 0x1000, 0x800);
  CHECK(host_side_of(0x1000) == HostSide::kLocked);
  CHECK(host_side_of(kMaxLockedRanges * 0x1000 + 0x7ff) == HostSide::kLocked);
  CHECK(host_side_of(0x1800) == HostSide::kUnknown);
  CHECK(host_side_of((kMaxLockedRanges + 1) * 0x1000) == HostSide::kUnknown);
}
