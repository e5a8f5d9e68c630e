// SPDX-License-Identifier: Apache-2.0
// An entry that the table does not know: it runs behind everything that waits, with its arguments
// as they were.
#include <bit>

#include "runtime/context_state.h"
#include "runtime/unknown_code.h"
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
  runtime::g_unknown_code.store(0);
}

namespace {

CUresult CUDAAPI another_entry() {
  return CUDA_SUCCESS;
}
CUresult CUDAAPI newer_copy() {
  return CUDA_SUCCESS;
}

void call_unknown(CUresult(CUDAAPI* entry)(), const char* name) {
  void* thunk = shim::unknown_entry_thunk(reinterpret_cast<void*>(entry), name);
  reinterpret_cast<decltype(entry)>(thunk)();
}

bool queues(rows::World& world) {
  const std::size_t runs = world.runs();
  CHECK(world.launch(rows::kN1) == CUDA_SUCCESS);
  return world.runs() == runs;
}

}  // namespace

TEST_CASE("rows/unknown: what an entry without a row may have done is asked of the driver") {
  rows::World world(0);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  world.answers[runtime::EntryId::cuStreamIsCapturing] = [&](const rows::Arguments& asked) {
    *reinterpret_cast<CUstreamCaptureStatus*>(asked.words[1]) = status;
    return CUDA_SUCCESS;
  };
  world.keep_answering();
  SECTION("a newer form of an entry that begins nothing") {
    call_unknown(&newer_copy, "cuMemcpyAsync_v9_ptsz");
    CHECK(queues(world));
  }
  SECTION("a capture") {
    REQUIRE(queues(world));
    call_unknown(&another_entry, "cuStreamBeginAnything");
    CHECK_FALSE(queues(world));
    CHECK_FALSE(queues(world));
    status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK(queues(world));
  }
  SECTION("code that is not what it was") {
    status = CU_STREAM_CAPTURE_STATUS_NONE;
    REQUIRE(queues(world));
    int asked_again = 0;
    world.answers[runtime::EntryId::cuFuncLoad] = [&](const rows::Arguments&) {
      ++asked_again;
      return CUDA_SUCCESS;
    };
    CHECK(queues(world));
    CHECK(asked_again == 0);
    runtime::g_unknown_code.store(1000);  // not a number that an earlier test has used
    call_unknown(&another_entry, "cuUnloadAnything");
    CHECK(queues(world));
    CHECK(asked_again == 1);
  }
  SECTION("an answer that is still to come") {
    status = CU_STREAM_CAPTURE_STATUS_NONE;
    REQUIRE(queues(world));
    runtime::g_unknown_code.store(2000);  // nor this one
    call_unknown(&another_entry, "cuUnloadAnything");
    const runtime::ContextState* context = runtime::current_context();
    int asked = 0;
    bool is_relied_on = false;
    world.answers[runtime::EntryId::cuStreamGetCtx] = [&](const rows::Arguments&) {
      if (asked++ == 0)
        is_relied_on = context->verified_at.load() == runtime::g_unknown_code.load();
      return CUDA_ERROR_INVALID_HANDLE;
    };
    world.launch(rows::kN1);
    CHECK(asked != 0);
    CHECK_FALSE(is_relied_on);
  }
  runtime::g_unknown_code.store(0);
}
