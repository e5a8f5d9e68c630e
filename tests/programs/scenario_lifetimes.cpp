// SPDX-License-Identifier: Apache-2.0
// Scenarios about things that go away and come back under the same handle or address: modules,
// contexts, memory.
#include "tests/programs/scenario.h"

namespace scenario {
namespace {

// The same names with other bodies, loaded where the old module was. Launches are pending when it
// goes.
void module_reload() {
  Device device;
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 8; ++round) {
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, round % 2 == 0 ? kScenarioPtx : kVariantPtx));
    const CUfunction affine = function_of(module, "affine"), mix = function_of(module, "mix");
    for (unsigned repeat = 0; repeat < 4; ++repeat) {
      for (unsigned i = 0; i < 3; ++i) {
        CHECK(launch(affine, {}, stream, x.at(), 3U, i, 64));
        CHECK(launch(mix, {}, stream, x.at(), x.at(), i, 64));
      }
      if (repeat < 3) stream.wait();
    }
    CHECK(cuModuleUnload(module));
    print("x", x);
  }
}

void library_reload() {
  Device device;
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 6; ++round) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CHECK(cuLibraryLoadData(&library, round % 2 == 0 ? kScenarioPtx : kVariantPtx, nullptr, nullptr,
                            0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "affine"));
    for (unsigned repeat = 0; repeat < 4; ++repeat) {
      for (unsigned i = 0; i < 4; ++i) {
        CHECK(launch(reinterpret_cast<CUfunction>(kernel), {}, stream, x.at(), 3U, i, 64));
      }
      if (repeat < 3) stream.wait();
    }
    CHECK(cuLibraryUnload(library));
    print("x", x);
  }
}

// The handles of kernels that were looked up and never launched come back as functions of a module,
// which must be queued like any other.
void unused_library() {
  Device device;
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 3; ++round) {
    CUlibrary library = nullptr;
    CHECK(cuLibraryLoadData(&library, kScenarioPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    for (const char* name : {"affine", "mix", "wide", "narrow"}) {
      CUkernel kernel = nullptr;
      CHECK(cuLibraryGetKernel(&kernel, library, name));
    }
    CHECK(cuLibraryUnload(library));
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kVariantPtx));
    const CUfunction affine = function_of(module, "affine"), mix = function_of(module, "mix");
    for (unsigned repeat = 0; repeat < 4; ++repeat) {
      for (unsigned i = 0; i < 3; ++i) {
        CHECK(launch(affine, {}, stream, x.at(), 3U, i, 64));
        CHECK(launch(mix, {}, stream, x.at(), x.at(), i, 64));
      }
      stream.wait();
    }
    CHECK(cuModuleUnload(module));
    print("x", x);
  }
}

// Two contexts with their own stream 0, switched between launches.
void two_contexts() {
  Device first;
  const CUfunction first_affine = first.function("affine");
  Buffer x;
  Stream first_stream;
  {
    Device second;
    const CUfunction second_affine = second.function("affine");
    Buffer y;
    Stream second_stream;
    for (unsigned round = 0; round < 10; ++round) {
      CHECK(cuCtxSetCurrent(first.context()));
      CHECK(launch(first_affine, {}, nullptr, x.at(), 3U, round, 64));
      CHECK(launch(first_affine, {}, first_stream, x.at(), 5U, round, 64));
      CHECK(cuCtxPushCurrent(second.context()));
      CHECK(launch(second_affine, {}, nullptr, y.at(), 7U, round, 64));
      CHECK(launch(second_affine, {}, second_stream, y.at(), 9U, round, 64));
      CUcontext popped = nullptr;
      CHECK(cuCtxPopCurrent(&popped));
      REQUIRE(popped == second.context());
      CHECK(launch(first_affine, {}, nullptr, x.at(), 11U, round, 64));
      print("x", x);
      CHECK(cuCtxSetCurrent(second.context()));
      if (round % 2 == 0) print("y", y);
    }
    print("y", y);
  }
  CHECK(cuCtxSetCurrent(first.context()));
  CHECK(launch(first_affine, {}, nullptr, x.at(), 3U, 1U, 64));
  print("x", x);
}

// A context that goes with launches pending, and the next one that may get its handle.
void context_again() {
  unsigned* word = nullptr;
  for (unsigned round = 0; round < 6; ++round) {
    Device device;
    const CUfunction publish = device.function("publish");
    CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&word), sizeof *word, CU_MEMHOSTALLOC_DEVICEMAP));
    *word = 0;
    CUdeviceptr mapped = 0;
    CHECK(cuMemHostGetDevicePointer(&mapped, word, 0));
    for (unsigned i = 0; i < 4; ++i) {
      for (unsigned j = 0; j < 4; ++j)
        CHECK(launch(publish, {1, 1, 0}, nullptr, mapped, round * 100 + i * 10 + j));
      CHECK(cuCtxSynchronize());
    }
    std::printf("%u\n", *word);
    CHECK(launch(publish, {1, 1, 0}, nullptr, mapped, 7U));
    CHECK(cuMemFreeHost(word));
  }
}

// Device memory freed with launches on it pending, and used again at the same address for something
// else.
void reused_memory() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream stream;
  Buffer kept;
  for (unsigned round = 0; round < 16; ++round) {
    Buffer x, y;
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
      CHECK(launch(mix, {}, stream, y.at(), x.at(), i, 64));
      CHECK(launch(mix, {}, stream, kept.at(), y.at(), i, 64));
    }
    if (round % 4 == 0) print("y", y);
  }
  print("kept", kept);
}

void stream_ordered_memory() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream stream;
  Buffer kept;
  for (unsigned round = 0; round < 10; ++round) {
    CUdeviceptr memory = 0;
    CHECK(cuMemAllocAsync(&memory, kept.bytes(), stream));
    CHECK(cuMemsetD32Async(memory, round, 64, stream));
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(launch(affine, {}, stream, memory, 3U, i, 64));
      CHECK(launch(mix, {}, stream, kept.at(), memory, round, 64));
    }
    CHECK(cuMemFreeAsync(memory, stream));
    if (round % 3 == 0) print("kept", kept);
  }
  print("kept", kept);
}

// Fills the device while sequences are known, and again after it has been emptied: every allocation
// that succeeds without graphs must succeed with them.
void memory_runs_out() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  for (int pass = 0; pass < 2; ++pass) {
    for (unsigned round = 0; round < 5; ++round) {
      for (unsigned i = 0; i < 8; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
      stream.wait();
    }
    std::vector<CUdeviceptr> blocks;
    CUdeviceptr block = 0;
    CUresult result;
    while ((result = cuMemAlloc(&block, 1U << 20)) == CUDA_SUCCESS) blocks.push_back(block);
    std::printf("%zu blocks, then %s\n", blocks.size(), error_name(result));
    for (const CUdeviceptr full : blocks) CHECK(cuMemFree(full));
  }
  print("x", x);
}

void managed_memory() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  CUdeviceptr memory = 0;
  CHECK(cuMemAllocManaged(&memory, 64 * sizeof(unsigned), CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<unsigned*>(memory);
  for (unsigned i = 0; i < 64; ++i) words[i] = i;
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, memory, 3U, round, 64));
    stream.wait();
    std::printf("%016llx\n", static_cast<unsigned long long>(hash(words, 64 * sizeof(unsigned))));
    words[round] = round;
  }
  CHECK(cuMemFree(memory));
}

}  // namespace

const std::vector<Scenario> kLifetimeScenarios = {
    {"module_reload", module_reload},
    {"library_reload", library_reload},
    {"unused_library", unused_library},
    {"two_contexts", two_contexts},
    {"context_again", context_again},
    {"reused_memory", reused_memory},
    {"stream_ordered_memory", stream_ordered_memory},
    {"managed_memory", managed_memory},
    {"memory_runs_out", memory_runs_out},
};

}  // namespace scenario
