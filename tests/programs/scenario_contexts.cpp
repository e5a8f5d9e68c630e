// SPDX-License-Identifier: Apache-2.0
// Scenarios with several contexts and devices: which one is current, which one a handle belongs to,
// and what comes back under the same handle after a context or a stream has gone.
#include <map>
#include <thread>

#include "tests/programs/scenario.h"

extern "C" const char kFaultPtx[];  // only for the handles it takes

namespace scenario {
namespace {

constexpr std::size_t kBytes = 64 * sizeof(unsigned);

// Device memory that may go with its context; a Buffer must be freed.
CUdeviceptr words() {
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, kBytes));
  CHECK(cuMemsetD32(memory, 5, 64));
  CHECK(cuStreamSynchronize(nullptr));  // the memset may come back before it has run
  return memory;
}

void print_words(const char* label, CUdeviceptr memory) {
  unsigned host[64];
  CHECK(cuMemcpyDtoH(host, memory, kBytes));
  std::printf("%s %016llx\n", label, static_cast<unsigned long long>(hash(host, kBytes)));
}

void report(const char* what, CUresult result) {
  std::printf("%s %s\n", what, error_name(result));
}

CUcontext new_context(CUdevice device = 0) {
  CUcontext context = nullptr;
  CHECK(cuCtxCreate(&context, nullptr, 0, device));
  return context;
}

CUmodule load(const char* image) {
  CUmodule module = nullptr;
  CHECK(cuModuleLoadData(&module, image));
  return module;
}

// Launches four functions whose handles, in a later round, belong to other kernels with other
// arguments.
void work_in_current_context(unsigned round, CUstream stream) {
  for (unsigned i = 0; i < round % 3; ++i) load(kFaultPtx);  // so that handles move
  const CUmodule module = load(round % 3 == 0 ? kVariantPtx : kScenarioPtx);
  constexpr const char* kNames[] = {"affine", "mix", "count_up", "wide"};
  static std::map<CUfunction, unsigned> seen;
  static unsigned came_back = 0;  // as another kernel
  CUfunction functions[4];
  for (unsigned i = 0; i < 4; ++i) {
    functions[i] = function_of(module, kNames[i]);
    const auto [place, is_new] = seen.insert({functions[i], i});
    came_back += !is_new && place->second != i ? 1 : 0;
    place->second = i;
  }
  std::printf("came back as another kernel: %u\n", came_back);
  const CUdeviceptr x = words(), y = words();
  for (unsigned repeat = 0; repeat < 4; ++repeat) {
    CHECK(launch(functions[0], {}, stream, x, 3U, round, 64));
    CHECK(launch(functions[1], {}, stream, y, x, repeat, 64));
    CHECK(launch(functions[2], {2, 8, 0}, stream, x, round));
    CHECK(launch(functions[3], {}, stream, y, x, y, 1ULL << 33, -7LL, 2.5, round, 64));
    CHECK(cuStreamSynchronize(stream));
  }
  print_words("x", x);
  print_words("y", y);
  CHECK(launch(functions[0], {}, stream, x, 3U, round, 64));
  CHECK(launch(functions[1], {}, stream, y, x, round, 64));
}

// Contexts end with modules loaded and launches pending.
void functions_of_a_dead_context() {
  CHECK(cuInit(0));
  for (unsigned round = 0; round < 12; ++round) {
    const CUcontext context = new_context();
    CUstream stream = nullptr;
    if (round % 2 == 1) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    work_in_current_context(round, stream);
    CHECK(cuCtxDestroy(context));
  }
}

// A library outlives the contexts its kernels run in.
void library_over_contexts() {
  CHECK(cuInit(0));
  CUlibrary library = nullptr;
  CHECK(cuLibraryLoadData(&library, kScenarioPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  CHECK(cuLibraryGetKernel(&kernel, library, "affine"));
  const auto affine = reinterpret_cast<CUfunction>(kernel);
  for (unsigned round = 0; round < 5; ++round) {
    const CUcontext first = new_context();
    const CUdeviceptr x = words();
    const CUcontext second = new_context();
    const CUdeviceptr y = words();
    for (unsigned repeat = 0; repeat < 5; ++repeat) {
      CHECK(cuCtxSetCurrent(first));
      for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, nullptr, x, 3U, round + i, 64));
      CHECK(cuCtxSetCurrent(second));
      for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, nullptr, y, 5U, round + i, 64));
      CHECK(cuCtxSynchronize());
    }
    print_words("y", y);
    CHECK(cuCtxDestroy(second));
    CHECK(cuCtxSetCurrent(first));
    CHECK(launch(affine, {}, nullptr, x, 7U, round, 64));
    print_words("x", x);
    CHECK(cuCtxDestroy(first));
  }
  CHECK(cuLibraryUnload(library));
}

// The primary context goes by its last release or by a reset and comes back under the same handle;
// streams, functions and memory in it are new.
void primary_context_again() {
  CHECK(cuInit(0));
  for (unsigned round = 0; round < 10; ++round) {
    CUcontext context = nullptr, again = nullptr;
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuDevicePrimaryCtxRetain(&again, 0));
    REQUIRE(context == again);
    CHECK(cuCtxSetCurrent(context));
    CUstream stream = nullptr;
    if (round % 2 == 0) CHECK(cuStreamCreate(&stream, round % 4 / 2));
    work_in_current_context(round, stream);
    CHECK(cuDevicePrimaryCtxRelease(0));  // not the last one
    work_in_current_context(round + 1, stream);
    if (round % 3 == 1) CHECK(cuDevicePrimaryCtxReset(0));
    CHECK(cuDevicePrimaryCtxRelease(0));
    unsigned flags = 0;
    int active = 1;
    CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    std::printf("active %d\n", active);
    CHECK(cuCtxSetCurrent(nullptr));
  }
}

// Stream 0 means another stream after every change of the current context.
void pushed_and_popped() {
  Device first;
  const CUfunction first_affine = first.function("affine"), first_mix = first.function("mix");
  const CUdeviceptr x = words();
  Device second;
  const CUfunction second_affine = second.function("affine");
  const CUdeviceptr y = words();
  for (unsigned round = 0; round < 12; ++round) {
    CHECK(cuCtxPushCurrent(first.context()));
    CHECK(launch(first_affine, {}, nullptr, x, 3U, round, 64));
    CHECK(cuCtxPushCurrent(second.context()));
    CHECK(launch(second_affine, {}, nullptr, y, 5U, round, 64));
    CHECK(cuCtxPushCurrent(second.context()));  // twice
    CHECK(launch(second_affine, {}, nullptr, y, 7U, round, 64));
    CUcontext popped = nullptr;
    CHECK(cuCtxPopCurrent(&popped));
    CHECK(launch(second_affine, {}, nullptr, y, 9U, round, 64));
    CHECK(cuCtxPopCurrent(&popped));
    CHECK(launch(first_mix, {}, nullptr, x, x, round, 64));
    if (round % 3 == 0) print_words("x", x);
    CHECK(cuCtxPopCurrent(&popped));
    REQUIRE(popped == first.context());
    if (round % 4 == 0) print_words("y", y);
  }
  print_words("y", y);
  CHECK(cuMemFree(y));
  CHECK(cuCtxSetCurrent(first.context()));
  print_words("x", x);
  CHECK(cuMemFree(x));
  CHECK(cuCtxSetCurrent(second.context()));
}

// A thread's current context is destroyed by another thread, and a new one may have its handle.
void destroyed_by_another_thread() {
  CHECK(cuInit(0));
  for (unsigned round = 0; round < 4; ++round) {
    const CUcontext doomed = new_context();
    const CUfunction affine = function_of(load(kScenarioPtx), "affine");
    const CUdeviceptr x = words();
    for (unsigned repeat = 0; repeat < 3; ++repeat) {
      for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, nullptr, x, 3U, i, 64));
      print_words("x", x);
    }
    CHECK(launch(affine, {}, nullptr, x, 3U, round, 64));
    std::thread([&] {
      CHECK(cuCtxDestroy(doomed));
      if (round % 2 == 0) return;
      new_context();
      work_in_current_context(round, nullptr);
      CHECK(cuCtxSynchronize());
    }).join();
    report("launch", launch(affine, {}, nullptr, x, 3U, 1U, 64));
    report("launch again", launch(affine, {}, CU_STREAM_LEGACY, x, 3U, 1U, 64));
    report("synchronize", cuCtxSynchronize());
    CHECK(cuCtxSetCurrent(nullptr));
    report("launch without a context", launch(affine, {}, nullptr, x, 3U, 1U, 64));
  }
}

// Two devices: each with its contexts, streams and copies between them.
void two_devices() {
  CHECK(cuInit(0));
  int devices = 0;
  CHECK(cuDeviceGetCount(&devices));
  REQUIRE(devices == 2);
  const CUcontext contexts[] = {new_context(0), new_context(1)};
  CUfunction affine[2], mix[2];
  CUdeviceptr x[2];
  CUstream streams[2];
  CUevent events[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cuCtxSetCurrent(contexts[i]));
    const CUmodule module = load(kScenarioPtx);
    affine[i] = function_of(module, "affine");
    mix[i] = function_of(module, "mix");
    x[i] = words();
    CHECK(cuStreamCreate(&streams[i], i == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
  }
  for (unsigned round = 0; round < 10; ++round) {
    for (int i = 0; i < 2; ++i) {
      CHECK(cuCtxSetCurrent(contexts[i]));
      for (unsigned n = 0; n < 4; ++n) {
        CHECK(launch(affine[i], {}, streams[i], x[i], 3U, round + n, 64));
        CHECK(launch(mix[i], {}, streams[i], x[i], x[i], round, 64));
      }
      CHECK(cuEventRecord(events[i], streams[i]));
    }
    // The copy waits for both devices, and so do the launches behind it.
    CHECK(cuCtxSetCurrent(contexts[0]));
    CHECK(cuStreamWaitEvent(streams[0], events[1], 0));
    CHECK(cuMemcpyPeerAsync(x[0], contexts[0], x[1], contexts[1], kBytes / 2, streams[0]));
    CHECK(launch(affine[0], {}, streams[0], x[0], 7U, round, 64));
    CHECK(cuEventRecord(events[0], streams[0]));
    CHECK(cuCtxSetCurrent(contexts[1]));
    CHECK(cuStreamWaitEvent(streams[1], events[0], 0));
    if (round % 4 == 3) CHECK(cuStreamSynchronize(streams[0]));  // of the other context
    if (round % 4 == 3) CHECK(cuStreamSynchronize(streams[1]));
  }
  for (int i = 0; i < 2; ++i) {
    CHECK(cuCtxSetCurrent(contexts[i]));
    CHECK(cuCtxSynchronize());
    print_words("x", x[i]);
    CHECK(cuCtxDestroy(contexts[i]));
  }
}

// Handles of streams and events that come back: in another context, as another kind.
void stream_handles_again() {
  Device first, second;
  const CUfunction second_affine = second.function("affine");
  const CUdeviceptr y = words();
  CHECK(cuCtxSetCurrent(first.context()));
  const CUfunction first_affine = first.function("affine");
  const CUdeviceptr x = words();
  CUstream kept = nullptr;
  for (unsigned round = 0; round < 16; ++round) {
    const bool is_first = round % 3 != 0;
    CHECK(cuCtxSetCurrent(is_first ? first.context() : second.context()));
    const CUfunction affine = is_first ? first_affine : second_affine;
    const CUdeviceptr memory = is_first ? x : y;
    CUstream stream = nullptr;
    int least = 0, greatest = 0;
    CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(cuStreamCreateWithPriority(&stream, round % 2, round % 4 < 2 ? least : greatest));
    if (kept == nullptr) kept = stream;
    if (round == 9) std::printf("the same handle again: %d\n", stream == kept);
    CUevent event = nullptr;
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, memory, 3U, round + i, 64));
    CHECK(cuEventRecord(event, stream));
    CHECK(cuStreamWaitEvent(nullptr, event, 0));
    CHECK(launch(affine, {}, nullptr, memory, 5U, round, 64));
    if (round % 5 == 4) {  // launches no longer queue on this one; they must on the next
      CUstreamAttrValue value{};
      value.syncPolicy = CU_SYNC_POLICY_YIELD;
      CHECK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
      Stream copy;
      CHECK(cuStreamCopyAttributes(copy, stream));
      value = {};
      CHECK(cuStreamGetAttribute(copy, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
      std::printf("policy %d\n", static_cast<int>(value.syncPolicy));
      for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, copy, memory, 7U, i, 64));
      CHECK(cuStreamSynchronize(copy));
    }
    // A blocking stream, or the event's wait, puts these behind stream 0.
    CHECK(cuEventRecord(event, nullptr));
    CHECK(cuStreamWaitEvent(stream, event, 0));
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, memory, 3U, i, 64));
    CHECK(cuEventDestroy(event));
    if (round % 2 == 1) CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuCtxSynchronize());
    print_words(is_first ? "x" : "y", memory);
  }
  CHECK(cuCtxSetCurrent(second.context()));
  CHECK(cuMemFree(y));
}

}  // namespace

const std::vector<Scenario> kContextScenarios = {
    {"functions_of_a_dead_context", functions_of_a_dead_context},
    {"library_over_contexts", library_over_contexts},
    {"primary_context_again", primary_context_again},
    {"pushed_and_popped", pushed_and_popped},
    {"destroyed_by_another_thread", destroyed_by_another_thread},
    {"two_devices", two_devices},
    {"stream_handles_again", stream_handles_again},
};

}  // namespace scenario
