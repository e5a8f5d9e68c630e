// SPDX-License-Identifier: Apache-2.0
// How long a turn is waited for, whatever the program's clock says meanwhile.
#include "runtime/submit_turn.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/catch.h"

namespace {

std::atomic<bool> g_clock_stands{false};

}  // namespace

// In front of libc's, as of a library that stops a program's time.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!g_clock_stands.load()) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  *time = {1, 0};
  return 0;
}

TEST_CASE("a turn that never comes back is waited for so long, under any clock") {
  runtime::TurnWord turn;
  std::thread([&] { REQUIRE(turn.take()); }).join();
  g_clock_stands.store(true);
  const bool is_free = turn.wait_free(20'000);
  g_clock_stands.store(false);
  CHECK_FALSE(is_free);
  turn.give_back();
  CHECK(turn.wait_free(0));
}
