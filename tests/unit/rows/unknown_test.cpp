// SPDX-License-Identifier: Apache-2.0
// An entry that the table does not know: it runs behind everything that waits, with its arguments
// as they were.
#include <bit>

#include "shim/unknown_entry.h"
#include "tests/unit/catch.h"
#include "tests/unit/rows/world.h"

namespace {

struct Call {
  int number;
  double fraction;
  const void* pointer;
  std::size_t ahead;  // launches submitted before it
};
Call g_call{};
const rows::World* g_world = nullptr;

CUresult CUDAAPI entry_of_the_future(int number, double fraction, const void* pointer) {
  g_call = {number, fraction, pointer, g_world->runs()};
  return CUDA_ERROR_NOT_READY;
}

}  // namespace

TEST_CASE("rows/unknown: an entry without a row runs behind everything that waits") {
  rows::World world(rows::kBlockingScene);
  g_world = &world;
  const std::size_t before = world.runs();
  auto* thunk = reinterpret_cast<decltype(&entry_of_the_future)>(shim::unknown_entry_thunk(
      reinterpret_cast<void*>(&entry_of_the_future), "cuEntryOfTheFuture"));
  REQUIRE(thunk != &entry_of_the_future);
  CHECK(thunk(7, 0.5, &world) == CUDA_ERROR_NOT_READY);
  CHECK(g_call.number == 7);
  CHECK(g_call.fraction == 0.5);
  CHECK(g_call.pointer == &world);
  CHECK(g_call.ahead - before == 2u * std::popcount(rows::kBlockingScene));
}
