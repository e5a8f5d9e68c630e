// SPDX-License-Identifier: Apache-2.0
// A shim that is switched off or was forked away from forwards every row and does nothing else.
// Hidden cases: each needs a process of its own, in which the shim wakes by itself with the
// settings that meson gives it.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/deferral.h"
#include "runtime/flush.h"
#include "shim/lifecycle.h"
#include "tests/unit/catch.h"
#include "tests/unit/rows/world.h"

namespace rows {
namespace {

// Rows that were not simply forwarded, each said on stderr: for a forked child, where Catch does
// not work. Queries of the driver's state are allowed where the shim is awake and only does not
// queue.
int rows_not_forwarded(World& world, bool may_ask) {
  int faults = 0;
  for (const Row& row : all_rows()) {
    for (CUresult answer : {CUDA_SUCCESS, CUDA_ERROR_ASSERT}) {
      const Seen seen = world.call(row, world.usual(), answer);
      const bool is_forwarded = seen.entered == 1 && seen.result == answer && seen.kept_errno &&
                                seen.after == 0 && (may_ask || seen.others.empty());
      if (is_forwarded) continue;
      ++faults;
      std::fprintf(stderr, "%s: entered %d times, result %d, %zu other calls\n", row.symbol(),
                   seen.entered, static_cast<int>(seen.result), seen.others.size());
    }
  }
  return faults;
}

}  // namespace

// CAJETA_XPU_DISABLE=1
TEST_CASE("rows/disabled: every row is only forwarded", "[.disabled]") {
  World world(World::kAsleep);
  CHECK(rows_not_forwarded(world, false) == 0);
  CHECK(shim::g_mode.load() == shim::Mode::kPassive);
}

// CAJETA_XPU_DEFER=0
TEST_CASE("rows/not-deferred: every row is forwarded and launches with it", "[.not-deferred]") {
  World world(World::kAsleep);
  CHECK(rows_not_forwarded(world, true) == 0);
  CHECK(shim::g_mode.load() == shim::Mode::kActive);
  CHECK_FALSE(runtime::is_queueing());
}

// CAJETA_XPU_DEFER=all
TEST_CASE("rows/forked: a child forwards every row and launches nothing of its parent",
          "[.forked]") {
  World world(World::kAsleep);
  REQUIRE(world.launch(kN1) == CUDA_SUCCESS);
  REQUIRE(shim::g_mode.load() == shim::Mode::kActive);
  REQUIRE(world.runs() == 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_sound = rows_not_forwarded(world, false) == 0 && world.runs() == 0;
    _exit(is_sound ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(world.runs() == 0);
  runtime::flush_all(EntryId::cuCtxSynchronize);
  CHECK(world.runs() == 1);
}

}  // namespace rows
