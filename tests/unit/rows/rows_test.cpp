// SPDX-License-Identifier: Apache-2.0
// Every row of the tables in docs/, called with launches waiting: what its rule names has been
// submitted when the driver's entry runs, and nothing else; its arguments and its result are the
// program's and the driver's.
#include <algorithm>
#include <sstream>

#include "runtime/error_ledger.h"
#include "shim/lifecycle.h"
#include "tests/unit/catch.h"
#include "tests/unit/rows/world.h"

namespace rows {
namespace {

constexpr CUresult kDriverError = CUDA_ERROR_ASSERT;

std::string names_of(unsigned queues) {
  static const char* const kNames[kQueueCount] = {"N1", "N2", "K1", "K2", "L", "BN", "BK", "BL"};
  std::string names;
  for (unsigned i = 0; i < kQueueCount; ++i) {
    if ((queues >> i & 1) != 0) names += std::string(names.empty() ? "" : "+") + kNames[i];
  }
  return names.empty() ? "nothing" : names;
}

bool has_place_in_struct(const Row& row) {
  return row.place >= Place::kLaunchConfig;
}

// The rules that make recordings stale or end something may submit more after the driver's call.
bool may_submit_afterwards(const Row& row) {
  return row.demand == Demand::kTaint || row.demand == Demand::kAttribute ||
         row.demand == Demand::kContextIfChanged || row.demand == Demand::kBeginCapture;
}

void check_forwarded(const Row& row, const Seen& seen) {
  CHECK(seen.entered == 1);
  CHECK(seen.kept_errno);
  CHECK_FALSE(seen.is_split);
  if (row.demand == Demand::kUntouched) CHECK(seen.others.empty());
}

void check_submitted(const Row& row, const Seen& seen, const Bounds& bounds) {
  INFO("submitted " << names_of(seen.before) << ", must be " << names_of(bounds.must) << ", may be "
                    << names_of(bounds.may));
  CHECK((seen.before & bounds.must) == bounds.must);
  CHECK((seen.before & ~bounds.may) == 0u);
  if (!may_submit_afterwards(row)) CHECK((seen.after & ~bounds.may) == 0u);
}

void check_choice(const Row& row, unsigned scene, std::size_t stream, CUcontext context) {
  World world(scene);
  Choice choice = world.usual();
  if (row.place != Place::kNone) choice.stream = world.stream_choices()[stream];
  choice.context = context;
  INFO(row.symbol() << " on stream " << choice.stream.name << ", "
                    << (scene == kLegacyScene ? "legacy" : "blocking") << " scene");
  const Bounds bounds = world.bounds(row, choice);
  const Seen seen = world.call(row, choice);
  check_forwarded(row, seen);
  check_submitted(row, seen, bounds);
  CHECK(seen.result == CUDA_SUCCESS);
}

void check_choices(const Row& row, unsigned scene) {
  const CUcontext a = fake::Driver::context(101);
  const std::size_t streams = row.place == Place::kNone ? 1 : World(0).stream_choices().size();
  for (std::size_t i = 0; i < streams; ++i) check_choice(row, scene, i, a);
  const auto parameters = parameters_of(row.id);
  const bool names_context =
      std::any_of(parameters.begin(), parameters.end(),
                  [](const Parameter& each) { return each.kind == Kind::kContext; });
  if (!names_context) return;
  check_choice(row, scene, 0, fake::Driver::context(102));
  check_choice(row, scene, 0, nullptr);
}

void check_null_pointers(const Row& row) {
  INFO(row.symbol() << " with null pointers");
  World world(kBlockingScene);
  Choice choice = world.usual();
  choice.null_pointers = true;
  const Seen seen = world.call(row, choice);
  check_forwarded(row, seen);
  if (!has_place_in_struct(row)) check_submitted(row, seen, world.bounds(row, choice));
}

void check_driver_error(const Row& row) {
  INFO(row.symbol() << " refused by the driver");
  World world(kBlockingScene);
  const Seen seen = world.call(row, world.usual(), kDriverError);
  check_forwarded(row, seen);
  check_submitted(row, seen, world.bounds(row, world.usual()));
  CHECK(seen.result == kDriverError);
}

void check_function_of_b(const Row& row) {
  INFO(row.symbol() << " with a function of another context than the current one");
  World world(kBlockingScene);
  Choice choice = world.usual();
  choice.function = world.fb;
  const Seen seen = world.call(row, choice);
  check_forwarded(row, seen);
  check_submitted(row, seen, world.bounds(row, choice));
}

// A row that tells reports a failure of what it submitted, unless it fails itself. Any other leaves
// it for the next that tells.
void check_failing_work(const Row& row) {
  for (CUresult answer : {CUDA_SUCCESS, kDriverError}) {
    INFO(row.symbol() << " behind failing work, the driver answers " << answer);
    World world(kBlockingScene);
    const Bounds bounds = world.bounds(row, world.usual());
    world.fail_launches();
    const Seen seen = world.call(row, world.usual(), answer);
    check_forwarded(row, seen);
    const bool tells = row.failure == runtime::FailureRule::kTells;
    if (answer != CUDA_SUCCESS || !tells) {
      CHECK(seen.result == answer);
    } else if (bounds.must != 0) {
      CHECK(seen.result == CUDA_ERROR_LAUNCH_FAILED);
    }
    if (bounds.must != 0 && !tells) CHECK(runtime::anything_untold());
  }
}

// Refused for want of memory: with graphs of ours to give back it is made once more, without them
// or where it is no row for that it is not.
void check_want_of_memory(const Row& row) {
  if (row.demand == Demand::kLaunch) return;  // queued
  for (const bool holds_graphs : {false, true}) {
    INFO(row.symbol() << " refused for want of memory" << (holds_graphs ? " beside graphs" : ""));
    World world(0);
    if (holds_graphs) world.record();
    const Seen seen = world.call(row, world.usual(), CUDA_ERROR_OUT_OF_MEMORY);
    const bool retries = row.failure == runtime::FailureRule::kRetries && holds_graphs;
    CHECK(seen.entered == (retries ? 2 : 1));
    CHECK(seen.result == CUDA_ERROR_OUT_OF_MEMORY);
    if (retries) CHECK(world.driver.execs.empty());
  }
}

void check_profiled(const Row& row) {
  INFO(row.symbol() << " with the driver profile on");
  World world(kBlockingScene);
  shim::g_mode.store(shim::Mode::kProfiled);
  const Seen seen = world.call(row, world.usual());
  check_forwarded(row, seen);
  check_submitted(row, seen, world.bounds(row, world.usual()));
}

void check_nothing_queued(const Row& row) {
  INFO(row.symbol() << " with nothing queued");
  World world(0);
  check_forwarded(row, world.call(row, world.usual()));
}

void check_rows(const char* test, std::initializer_list<Demand> demands) {
  for (const Row& row : all_rows()) {
    if (std::find(demands.begin(), demands.end(), row.demand) == demands.end()) continue;
    check_choices(row, kBlockingScene);
    check_choices(row, kLegacyScene);
    check_null_pointers(row);
    check_driver_error(row);
    check_failing_work(row);
    check_want_of_memory(row);
    check_profiled(row);
    check_nothing_queued(row);
    if (names_function(row)) check_function_of_b(row);
    note_tested(row.id, test);
  }
}

}  // namespace

TEST_CASE("rows/pass: rows that observe nothing submit nothing") {
  check_rows("rows/pass", {Demand::kNothing, Demand::kUntouched, Demand::kTaint});
}

TEST_CASE("rows/stream: stream-ordered rows submit what their stream runs behind") {
  check_rows("rows/stream", {Demand::kStream});
}

TEST_CASE("rows/default-stream: rows of the default stream submit its order group") {
  check_rows("rows/default-stream", {Demand::kLegacyGroup, Demand::kOwnStream});
}

TEST_CASE("rows/context: rows about a context submit its queues") {
  check_rows("rows/context", {Demand::kContext, Demand::kContextIfChanged, Demand::kAttribute});
}

TEST_CASE("rows/all: rows that look at everything submit everything") {
  check_rows("rows/all", {Demand::kAll, Demand::kAllOrTimer, Demand::kAllMayLoad});
}

TEST_CASE("rows/lazy-load: rows that may load code submit everything unless it is loaded") {
  check_rows("rows/lazy-load", {Demand::kAllIfNeverLaunched});
}

TEST_CASE("rows/lookups: rows that look a name up for the first time submit everything") {
  check_rows("rows/lookups", {Demand::kAllIfNew});
}

TEST_CASE("rows/capture: the begin of a capture submits its context") {
  check_rows("rows/capture", {Demand::kBeginCapture});
}

}  // namespace rows
