// SPDX-License-Identifier: Apache-2.0
// Scenarios about kernels that fault: which code comes back, that it stays, that it stays in its
// context, and that nothing of it survives the context. Where a fault is first reported depends on
// when the device gets there, so a code is printed only where CUDA leaves no choice.
#include <array>
#include <chrono>
#include <initializer_list>
#include <thread>

#include "tests/programs/scenario.h"

extern "C" const char kFaultPtx[];

namespace scenario {
namespace {

constexpr CUdeviceptr kNowhere = 0x10;  // below any allocation; aligned

// A context that may be destroyed while nothing in it can be freed any more.
struct Fragile {
  Fragile() {
    CHECK(cuInit(0));
    CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    CHECK(cuModuleLoadData(&kernels, kScenarioPtx));
    CHECK(cuModuleLoadData(&faults, kFaultPtx));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&memory, 256));
    CHECK(cuMemsetD32(memory, 7, 64));
    CHECK(cuStreamSynchronize(nullptr));  // a non-blocking stream does not wait for it
    affine = function_of(kernels, "affine");
    poke = function_of(faults, "poke");
  }
  // Three launches; the middle one stores at `where`. Not every code is certain.
  std::array<CUresult, 3> sequence(CUdeviceptr where, unsigned value) const {
    return {launch(affine, {}, stream, memory, 3U, value, 64),
            launch(poke, {1, 1, 0}, stream, where, value),
            launch(affine, {}, stream, memory, 5U, value, 64)};
  }
  // Rounds that make the sequence a known one.
  void warm_up() const {
    for (unsigned round = 0; round < 4; ++round) {
      for (const CUresult result : sequence(memory, round)) CHECK(result);
      CHECK(cuStreamSynchronize(stream));
    }
  }

  CUcontext context = nullptr;
  CUmodule kernels = nullptr, faults = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUfunction affine = nullptr, poke = nullptr;
};

void report(const char* what, CUresult result) {
  std::printf("%s %s\n", what, error_name(result));
}

// A launch near the fault may know of it or not.
void may_know(CUresult result, CUresult fault) {
  REQUIRE(result == CUDA_SUCCESS || result == fault);
}

// Once reported, the code is what nearly every call returns.
void report_dead(const Fragile& dead) {
  unsigned word = 0;
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  report("launch", launch(dead.affine, {}, dead.stream, dead.memory, 3U, 1U, 64));
  report("launch on stream 0", launch(dead.affine, {}, nullptr, dead.memory, 3U, 1U, 64));
  report("launch again", launch(dead.affine, {}, dead.stream, dead.memory, 3U, 1U, 64));
  report("stream synchronize", cuStreamSynchronize(dead.stream));
  report("stream query", cuStreamQuery(dead.stream));
  report("context synchronize", cuCtxSynchronize());
  report("copy", cuMemcpyDtoH(&word, dead.memory, sizeof word));
  report("memset", cuMemsetD32Async(dead.memory, 1, 64, dead.stream));
  report("allocate", cuMemAlloc(&memory, 256));
  report("free", cuMemFree(dead.memory));
  report("event", cuEventCreate(&event, 0));
  report("stream", cuStreamCreate(&stream, 0));
  report("module", cuModuleLoadData(&module, kScenarioPtx));
  report("host function", cuLaunchHostFunc(
                              dead.stream, [](void*) {}, nullptr));
  report("last launch", launch(dead.affine, {}, dead.stream, dead.memory, 3U, 1U, 64));
}

// All is well in a new context, which may have the handle of the dead one.
void report_alive() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    stream.wait();
  }
  print("alive", x);
}

template <typename Fault>
void fault_is_sticky(CUresult expected, Fault fault) {
  for (int round = 0; round < 2; ++round) {
    Fragile fragile;
    fragile.warm_up();
    may_know(fault(fragile), expected);
    for (unsigned i = 0; i < 4; ++i) {
      may_know(launch(fragile.affine, {}, fragile.stream, fragile.memory, 3U, i, 64), expected);
    }
    report("first synchronize", cuStreamSynchronize(fragile.stream));
    report_dead(fragile);
    report("destroy stream", cuStreamDestroy(fragile.stream));
    cuCtxDestroy(fragile.context);  // may report the fault once more
    report_alive();
  }
}

void out_of_bounds_store() {
  fault_is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, [](const Fragile& fragile) {
    return launch(fragile.poke, {1, 1, 0}, fragile.stream, kNowhere, 1U);
  });
}

void misaligned_store() {
  fault_is_sticky(CUDA_ERROR_MISALIGNED_ADDRESS, [](const Fragile& fragile) {
    return launch(fragile.poke, {1, 1, 0}, fragile.stream, fragile.memory + 1, 1U);
  });
}

void trap() {
  fault_is_sticky(CUDA_ERROR_LAUNCH_FAILED, [](const Fragile& fragile) {
    const CUfunction trap_if = function_of(fragile.faults, "trap_if");
    return launch(trap_if, {1, 1, 0}, fragile.stream, 1U);
  });
}

void assertion() {
  fault_is_sticky(CUDA_ERROR_ASSERT, [](const Fragile& fragile) {
    const CUfunction assert_zero = function_of(fragile.faults, "assert_zero");
    return launch(assert_zero, {1, 1, 0}, fragile.stream, 1U);
  });
}

// The bad value is patched into a sequence that has run well before.
void fault_in_a_known_sequence() {
  fault_is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, [](const Fragile& fragile) {
    const auto results = fragile.sequence(kNowhere, 9);
    for (const CUresult result : results) may_know(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    return results[1];
  });
}

// The host makes no call while the fault happens: what waits then is sent on by something else, and
// what that meets belongs to the next call.
void fault_while_polling() {
  unsigned* flag = nullptr;
  for (unsigned round = 1; round <= 3; ++round) {
    Fragile fragile;
    fragile.warm_up();
    CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&flag), sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = 0;
    CUdeviceptr mapped = 0;
    CHECK(cuMemHostGetDevicePointer(&mapped, flag, 0));
    const CUfunction raise = function_of(fragile.kernels, "raise");
    CHECK(launch(raise, {1, 1, 0}, fragile.stream, mapped, round));
    may_know(launch(fragile.poke, {1, 1, 0}, fragile.stream, kNowhere, 1U),
             CUDA_ERROR_ILLEGAL_ADDRESS);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round) {
      REQUIRE(std::chrono::steady_clock::now() < limit);
      std::this_thread::yield();
    }
    for (unsigned i = 0; i < 3; ++i) {
      may_know(launch(fragile.affine, {}, fragile.stream, fragile.memory, 3U, i, 64),
               CUDA_ERROR_ILLEGAL_ADDRESS);
      std::this_thread::yield();
    }
    report("synchronize", cuStreamSynchronize(fragile.stream));
    report("synchronize again", cuStreamSynchronize(fragile.stream));
    report_dead(fragile);
    cuCtxDestroy(fragile.context);
    report_alive();
  }
}

// Calls that look at everything send on the work of a context that is not theirs; what becomes of
// it is not theirs either.
void fault_in_another_context() {
  for (unsigned round = 0; round < 4; ++round) {
    Fragile sick, well;
    CHECK(cuCtxSetCurrent(sick.context));
    sick.warm_up();
    CHECK(cuCtxSetCurrent(well.context));
    well.warm_up();
    CHECK(cuCtxSetCurrent(sick.context));
    may_know(launch(sick.poke, {1, 1, 0}, sick.stream, kNowhere, 1U), CUDA_ERROR_ILLEGAL_ADDRESS);
    for (unsigned i = 0; i < 3; ++i) {
      may_know(launch(sick.affine, {}, sick.stream, sick.memory, 3U, i, 64),
               CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    if (round % 2 == 1) report("sick", cuStreamSynchronize(sick.stream));
    CHECK(cuCtxSetCurrent(well.context));
    CUdeviceptr memory = 0;
    CUstream stream = nullptr;
    CUmodule module = nullptr;
    unsigned word = 0;
    report("allocate", cuMemAlloc(&memory, 256));
    report("stream", cuStreamCreate(&stream, 0));
    report("module", cuModuleLoadData(&module, kScenarioPtx));
    for (const CUresult result : well.sequence(well.memory, round)) report("launch", result);
    report("synchronize", cuStreamSynchronize(well.stream));
    report("context", cuCtxSynchronize());
    report("copy", cuMemcpyDtoH(&word, well.memory, sizeof word));
    std::printf("word %u\n", word);
    report("free", cuMemFree(memory));
    report("unload", cuModuleUnload(module));
    if (round >= 2) {
      CHECK(cuCtxSetCurrent(sick.context));
      report("sick", cuCtxSynchronize());
      report_dead(sick);
    }
    CHECK(cuCtxSetCurrent(well.context));
    cuCtxDestroy(sick.context);
    report("after the end of the other", cuCtxSynchronize());
    report_alive();
    CHECK(cuCtxSetCurrent(well.context));
    for (const CUresult result : well.sequence(well.memory, round)) report("launch", result);
    CHECK(cuStreamSynchronize(well.stream));
    CHECK(cuCtxDestroy(well.context));
  }
}

// One thread works in a healthy context while another one's context dies, again and again.
void fault_in_another_thread() {
  std::thread other([] {
    for (unsigned round = 0; round < 6; ++round) {
      Fragile fragile;
      fragile.warm_up();
      fragile.sequence(kNowhere, round);
      REQUIRE(cuStreamSynchronize(fragile.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
      REQUIRE(launch(fragile.affine, {}, fragile.stream, fragile.memory, 3U, 1U, 64) ==
              CUDA_ERROR_ILLEGAL_ADDRESS);
      cuCtxDestroy(fragile.context);
    }
  });
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 60; ++round) {
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    if (round % 3 == 0) {
      const Buffer shortly(16);
      CHECK(launch(affine, {}, stream, shortly.at(), 3U, round, 16));
      stream.wait();
    }
    stream.wait();
  }
  other.join();
  print("x", x);
}

}  // namespace

const std::vector<Scenario> kFaultScenarios = {
    {"out_of_bounds_store", out_of_bounds_store},
    {"misaligned_store", misaligned_store},
    {"trap", trap},
    {"assertion", assertion},
    {"fault_in_a_known_sequence", fault_in_a_known_sequence},
    {"fault_while_polling", fault_while_polling},
    {"fault_in_another_context", fault_in_another_context},
    {"fault_in_another_thread", fault_in_another_thread},
};

}  // namespace scenario
