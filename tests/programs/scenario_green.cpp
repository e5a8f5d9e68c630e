// SPDX-License-Identifier: Apache-2.0
// Scenarios with green contexts, and with events of whole contexts: which streams they cover, while
// launches wait in queues that only some of them may submit.
#include "tests/programs/scenario.h"

namespace scenario {
namespace {

// The primary context with the kernels and two buffers, and green contexts made from it.
struct World {
  World() {
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK(cuCtxSetCurrent(primary));
    CHECK(cuModuleLoadData(&module, kScenarioPtx));
    affine = function_of(module, "affine");
    mix = function_of(module, "mix");
  }

  static CUgreenCtx new_green() {
    CUdevResource all{}, part{};
    CHECK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    unsigned groups = 1;
    CHECK(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 8));
    CUdevResourceDesc descriptor = nullptr;
    CHECK(cuDevResourceGenerateDesc(&descriptor, &part, 1));
    CUgreenCtx green = nullptr;
    CHECK(cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
  }
  static CUstream new_stream(CUgreenCtx green) {
    CUstream stream = nullptr;
    CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
  }
  void run(CUstream stream, CUdeviceptr data, unsigned value) const {
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, data, 3U, value + i, 64));
  }

  CUcontext primary = nullptr;
  CUmodule module = nullptr;
  CUfunction affine = nullptr, mix = nullptr;
};

CUcontext context_of(CUgreenCtx green) {
  CUcontext context = nullptr;
  CHECK(cuCtxFromGreenCtx(&context, green));
  return context;
}

// Streams of both kinds of context hand one buffer to each other by events.
void green_streams() {
  const World world;
  const CUgreenCtx green = World::new_green();
  const CUstream inner = World::new_stream(green);
  Stream outer(CU_STREAM_NON_BLOCKING);
  Event from_inner, from_outer;
  Buffer x, y;
  for (unsigned round = 0; round < 8; ++round) {
    world.run(outer, x.at(), round);
    world.run(inner, y.at(), round);
    CHECK(cuEventRecord(from_outer, outer));
    CHECK(cuStreamWaitEvent(inner, from_outer, 0));
    CHECK(launch(world.mix, {}, inner, y.at(), x.at(), round, 64));
    CHECK(cuEventRecord(from_inner, inner));
    CHECK(cuStreamWaitEvent(outer, from_inner, 0));
    CHECK(launch(world.mix, {}, outer, x.at(), y.at(), round, 64));
    CHECK(cuEventRecord(from_outer, outer));
    CHECK(cuStreamWaitEvent(inner, from_outer, 0));
    if (round % 3 != 2) continue;
    CHECK(cuStreamSynchronize(outer));
    print("x", x);
    print("y", y);
  }
  CHECK(cuCtxSynchronize());
  print("x", x);
  CHECK(cuStreamDestroy(inner));
  CHECK(cuGreenCtxDestroy(green));
}

// Stream 0 is another one while a green context is current; its blocking streams join that one. The
// second green context is known to the program only by what a stream says of it.
void green_contexts_in_turn() {
  const World world;
  const CUgreenCtx greens[] = {World::new_green(), World::new_green()};
  const CUstream hint = World::new_stream(greens[1]);
  CUcontext contexts[] = {context_of(greens[0]), nullptr};
  CHECK(cuStreamGetCtx(hint, &contexts[1]));
  Buffer x, y, z;
  CUstream joining[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cuCtxSetCurrent(contexts[i]));
    CHECK(cuStreamCreate(&joining[i], CU_STREAM_DEFAULT));
  }
  for (unsigned round = 0; round < 8; ++round) {
    CHECK(cuCtxSetCurrent(world.primary));
    world.run(nullptr, x.at(), round);
    for (int i = 0; i < 2; ++i) {
      const CUdeviceptr data = i == 0 ? y.at() : z.at();
      CHECK(cuCtxPushCurrent(contexts[i]));
      world.run(nullptr, data, 10 + round);
      world.run(joining[i], data, 20 + round);
      world.run(nullptr, data, 30 + round);
      CUcontext popped = nullptr;
      CHECK(cuCtxPopCurrent(&popped));
      REQUIRE(popped == contexts[i]);
      world.run(nullptr, x.at(), 40 + round);
    }
    if (round % 3 != 1) continue;
    CHECK(cuCtxSynchronize());  // and all green contexts
    print("x", x);
    print("y", y);
    print("z", z);
  }
  CHECK(cuCtxSynchronize());
  CHECK(cuStreamDestroy(hint));
  for (int i = 0; i < 2; ++i) {
    CHECK(cuStreamDestroy(joining[i]));
    CHECK(cuGreenCtxDestroy(greens[i]));
  }
  print("z", z);
}

// Destroyed with work pending; the next one may have its handles and those of its streams. Every
// third time the primary context goes with it, by the last reference or by a reset.
void green_contexts_again() {
  for (unsigned round = 0; round < 12; ++round) {
    const World world;
    const CUgreenCtx green = World::new_green();
    const CUcontext context = context_of(green);
    CUstream inner = nullptr, outer = nullptr;
    const unsigned kind = round % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    if (round % 4 < 2) CHECK(cuStreamCreate(&outer, kind));
    inner = World::new_stream(green);
    if (round % 4 >= 2) CHECK(cuStreamCreate(&outer, kind));
    CUdeviceptr x = 0, y = 0;
    CHECK(cuMemAlloc(&x, 256));
    CHECK(cuMemAlloc(&y, 256));
    CHECK(cuMemsetD32(x, 1, 64));
    CHECK(cuMemsetD32(y, 2, 64));
    CHECK(cuCtxSynchronize());
    for (unsigned repeat = 0; repeat < 4; ++repeat) {
      world.run(outer, x, round + repeat);
      world.run(inner, y, round + repeat);
      // A blocking stream joins: whoever took it for another kind is found out.
      if (round % 2 == 1) CHECK(cuStreamSynchronize(outer));
      CHECK(launch(world.affine, {}, nullptr, x, 5U, round, 64));
      CHECK(cuCtxSynchronize());
    }
    unsigned host[64];
    CHECK(cuMemcpyDtoH(host, x, sizeof host));
    std::printf("x %016llx\n", static_cast<unsigned long long>(hash(host, sizeof host)));
    CHECK(cuMemcpyDtoH(host, y, sizeof host));
    std::printf("y %016llx\n", static_cast<unsigned long long>(hash(host, sizeof host)));
    world.run(outer, x, round);
    if (round % 3 == 2) CHECK(cuDevicePrimaryCtxReset(0));
    if (round % 3 != 2) world.run(inner, y, round);
    CHECK(cuDevicePrimaryCtxRelease(0));  // the green context has another reference
    for (unsigned repeat = 0; repeat < 3 && round % 3 != 2; ++repeat) {
      world.run(outer, x, round + repeat);
      CHECK(cuStreamSynchronize(outer));
    }
    if (round % 3 != 2) world.run(outer, x, round);
    const CUresult ended = cuGreenCtxDestroy(green);
    std::printf("destroyed %s\n", error_name(ended));
    std::printf("again %s\n", error_name(cuCtxSetCurrent(context)));
    CHECK(cuCtxSetCurrent(nullptr));
  }
}

// One event for all that a context was given, and a wait for all that it will be given.
void context_events() {
  const World world;
  const CUgreenCtx green = World::new_green();
  const CUstream inner = World::new_stream(green);
  Stream a(CU_STREAM_NON_BLOCKING), b;
  Event all, mine;
  Buffer x, y, z;
  for (unsigned round = 0; round < 8; ++round) {
    world.run(a, x.at(), round);
    world.run(b, y.at(), round);
    world.run(inner, z.at(), round);
    CHECK(cuCtxRecordEvent(world.primary, all));
    // What comes now is not part of it, but is all that the next wait lets through.
    CHECK(cuCtxWaitEvent(world.primary, all));
    CHECK(launch(world.mix, {}, a, x.at(), y.at(), round, 64));
    CHECK(launch(world.mix, {}, a, x.at(), z.at(), round, 64));
    CHECK(cuEventRecord(mine, a));
    CHECK(cuGreenCtxWaitEvent(green, mine));
    CHECK(launch(world.mix, {}, inner, z.at(), x.at(), round, 64));
    CHECK(cuGreenCtxRecordEvent(green, mine));
    CHECK(cuStreamWaitEvent(a, mine, 0));
    world.run(a, x.at(), 50 + round);
    CHECK(cuStreamWaitEvent(b, mine, 0));
    CHECK(launch(world.mix, {}, b, y.at(), z.at(), round, 64));
    CHECK(cuCtxRecordEvent(world.primary, all));
    if (round % 2 == 0) CHECK(cuEventSynchronize(all));
    if (round % 2 == 1) CHECK(cuCtxWaitEvent(world.primary, all));
    if (round % 4 != 2) continue;
    print("x", x);
    print("y", y);
    print("z", z);
  }
  CHECK(cuCtxSynchronize());
  print("x", x);
  print("y", y);
  CHECK(cuStreamDestroy(inner));
  CHECK(cuGreenCtxDestroy(green));
}

}  // namespace

const std::vector<Scenario> kGreenScenarios = {
    {"green_streams", green_streams},
    {"green_contexts_in_turn", green_contexts_in_turn},
    {"green_contexts_again", green_contexts_again},
    {"context_events", context_events},
};

}  // namespace scenario
