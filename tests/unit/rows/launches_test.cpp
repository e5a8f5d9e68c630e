// SPDX-License-Identifier: Apache-2.0
// The launch rows: queued without a word to the driver, or sent on behind what their stream runs
// behind, with the driver's own answer.
#include <bit>
#include <cstring>

#include "runtime/error_ledger.h"
#include "tests/unit/catch.h"
#include "tests/unit/rows/world.h"

namespace rows {
namespace {

constexpr CUresult kDriverError = CUDA_ERROR_ASSERT;

struct LaunchCase {
  CUfunction function;
  CUstream stream;
  unsigned block = 32;
  CUlaunchAttribute* attribute = nullptr;  // cuLaunchKernelEx only
};

bool has_config(const Row& row) {
  return row.place == Place::kLaunchConfig;
}

// Arguments of one block, with the parameter that every function here has.
Arguments arguments_for(World& world, const Row& row, const LaunchCase& launch) {
  static int parameter = 7;
  static void* parameters[] = {&parameter, nullptr};
  Arguments arguments;
  const auto put = [&arguments](std::size_t word, auto value) {
    arguments.words[word] = 0;
    std::memcpy(&arguments.words[word], &value, sizeof value);
  };
  if (has_config(row)) {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = launch.block;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = launch.stream;
    config.attrs = launch.attribute;
    config.numAttrs = launch.attribute != nullptr ? 1 : 0;
    std::memcpy(world.scratch(0), &config, sizeof config);
    put(0, world.scratch(0));
    put(1, launch.function);
    put(2, &parameters[0]);
    return arguments;
  }
  put(0, launch.function);
  for (std::size_t axis = 1; axis <= 6; ++axis) put(axis, axis == 4 ? launch.block : 1u);
  put(8, launch.stream);
  put(9, &parameters[0]);
  return arguments;
}

bool is_own_stream(const Row& row, CUstream stream) {
  return stream == reinterpret_cast<CUstream>(2) || (row.is_own && stream == nullptr);
}

// What opening the stream's queue sends ahead: the other side of its order group.
unsigned other_side(const World& world, unsigned scene, CUstream stream) {
  if (stream == nullptr || stream == reinterpret_cast<CUstream>(1)) return (kK1 | kK2) & scene;
  if (stream == world.stream(kK1) || stream == world.k3) return kL & scene;
  return 0;
}

void check_queued(const Row& row, unsigned scene, const StreamChoice& choice) {
  World world(scene);
  const CUstream stream = world.stream_named(choice.name);
  const Seen seen = world.call(row, arguments_for(world, row, {world.f, stream}), kDriverError);
  CHECK(seen.entered == 0);
  CHECK(seen.result == CUDA_SUCCESS);
  CHECK(seen.after == other_side(world, scene, stream));
}

void check_direct(const Row& row, unsigned scene, const StreamChoice& choice,
                  CUlaunchAttribute* attribute, unsigned block) {
  for (CUresult answer : {CUDA_SUCCESS, kDriverError}) {
    World world(scene);
    const CUstream stream = world.stream_named(choice.name);
    const Seen seen =
        world.call(row, arguments_for(world, row, {world.f, stream, block, attribute}), answer);
    const unsigned behind = (row.is_own ? choice.own : choice.plain) & scene;
    CHECK(seen.entered == 1);
    CHECK(seen.result == answer);
    CHECK((seen.before & behind) == behind);
    if (choice.is_known) CHECK(seen.before == behind);
    CHECK(seen.kept_errno);
  }
}

}  // namespace

TEST_CASE("rows/launch: launches are queued, or go behind what their stream runs behind") {
  for (const Row& row : rows_naming("rows/launch")) {
    for (unsigned scene : {kBlockingScene, kLegacyScene}) {
      for (const StreamChoice& choice : World(0).stream_choices()) {
        INFO(row.symbol() << " on stream " << choice.name << ", "
                          << (scene == kLegacyScene ? "legacy" : "blocking") << " scene");
        const bool may_queue =
            choice.is_known && !choice.in_b && !is_own_stream(row, choice.stream);
        if (may_queue) {
          check_queued(row, scene, choice);
        } else if (choice.is_known) {
          check_direct(row, scene, choice, nullptr, 32);
        }
        // More threads than a block has: the driver's own error.
        check_direct(row, scene, choice, nullptr, 4096);
        if (has_config(row)) {
          CUlaunchAttribute overlap{};
          overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
          overlap.value.programmaticStreamSerializationAllowed = 1;
          check_direct(row, scene, choice, &overlap, 32);
        }
      }
    }
    note_tested(row.id, "rows/launch");
  }
}

TEST_CASE("rows/launch: a first launch loads its code behind everything that waits") {
  for (const Row& row : rows_naming("rows/launch")) {
    INFO(row.symbol());
    World world(kBlockingScene);
    std::size_t ahead = 0;
    const std::size_t before = world.runs();
    world.answers[EntryId::cuFuncLoad] = [&](const Arguments&) {
      ahead = world.runs() - before;
      return CUDA_SUCCESS;
    };
    const LaunchCase launch{world.never_launched, world.stream(kN1)};
    CHECK(world.call(row, arguments_for(world, row, launch)).result == CUDA_SUCCESS);
    CHECK(ahead == 2u * std::popcount(kBlockingScene));
  }
}

TEST_CASE("rows/launch: a direct launch is not told what its stream's work met") {
  for (const Row& row : rows_naming("rows/launch")) {
    for (CUresult answer : {CUDA_SUCCESS, kDriverError}) {
      INFO(row.symbol() << ", the driver answers " << answer);
      World world(kBlockingScene);
      world.fail_launches();
      const LaunchCase launch{world.f, world.stream(kN1), 4096};
      const Seen seen = world.call(row, arguments_for(world, row, launch), answer);
      CHECK(seen.entered == 1);
      CHECK(seen.result == answer);
      CHECK(runtime::anything_untold());
    }
  }
}

}  // namespace rows
