// SPDX-License-Identifier: Apache-2.0
// A long day in miniature: does one thing very often and prints the resident size, in KiB, after
// the first tenth and at the end. endurance WHAT COUNT; memory_test.py judges.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void check(CUresult result, int line) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "line %d: error %d\n", line, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) check(call, __LINE__)

constexpr char kEmptyPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry one(.param .u64 a) { ret; }\n"
    ".visible .entry two(.param .u64 a, .param .u32 b) { ret; }\n"
    ".visible .entry three(.param .u32 a) { ret; }\n"
    ".visible .entry four() { ret; }\n";

long resident_kib() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long size = -1;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "VmRSS:", 6) == 0) size = std::atol(line + 6);
  }
  if (file != nullptr) std::fclose(file);
  return size;
}

struct Kernels {
  Kernels() {
    CHECK(cuModuleLoadData(&module, kEmptyPtx));
    look_up();
  }
  void look_up() {
    constexpr const char* kNames[] = {"one", "two", "three", "four"};
    for (int i = 0; i < 4; ++i) CHECK(cuModuleGetFunction(&functions[i], module, kNames[i]));
  }
  void launch(unsigned which, CUstream stream, unsigned value) const {
    CUdeviceptr address = 0x1000 + value;
    void* parameters[] = {&address, &value};
    if (which == 2) parameters[0] = &value;
    CHECK(cuLaunchKernel(functions[which], 1 + value % 3, 1, 1, 32, 1, 1, 0, stream, parameters,
                         nullptr));
  }

  CUmodule module = nullptr;
  CUfunction functions[4] = {};
};

// The same sequence with other values, on a stream and on stream 0.
void launches(const Kernels& kernels, CUstream stream, unsigned turn) {
  for (unsigned i = 0; i < 16; ++i) kernels.launch(i % 4, stream, turn + i);
  if (turn % 16 == 0) {
    for (unsigned i = 0; i < 4; ++i) kernels.launch(i, nullptr, turn);
  }
  CHECK(cuStreamSynchronize(stream));
}

// A sequence that was hardly seen before.
void sequences(const Kernels& kernels, CUstream stream, unsigned turn) {
  unsigned state = turn * 2654435761U + 1;
  for (unsigned i = 0; i < 12; ++i) {
    state = state * 1664525U + 1013904223U;
    kernels.launch(state >> 30, stream, turn);
  }
  CHECK(cuStreamSynchronize(stream));
}

void objects(const Kernels& kernels, CUstream stream, unsigned turn) {
  CUstream shortly = nullptr;
  CUevent event = nullptr;
  CHECK(cuStreamCreate(&shortly, turn % 2));
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  for (unsigned repeat = 0; repeat < 3; ++repeat) {
    for (unsigned i = 0; i < 4; ++i) kernels.launch(i, shortly, turn + i);
    CHECK(cuEventRecord(event, shortly));
  }
  CHECK(cuStreamWaitEvent(stream, event, 0));
  CHECK(cuEventDestroy(event));
  CHECK(cuStreamDestroy(shortly));
  if (turn % 8 == 0) {
    const Kernels fresh;
    for (unsigned i = 0; i < 8; ++i) fresh.launch(i % 4, stream, turn);
    CHECK(cuModuleUnload(fresh.module));
  }
  if (turn % 64 == 0) {
    CUcontext context = nullptr;
    CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    const Kernels fresh;  // goes with the context
    for (unsigned i = 0; i < 8; ++i) fresh.launch(i % 4, nullptr, turn);
    CHECK(cuCtxDestroy(context));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const struct {
    const char* name;
    void (*turn)(const Kernels&, CUstream, unsigned);
    unsigned launches;
  } kinds[] = {{"launches", launches, 16}, {"sequences", sequences, 12}, {"objects", objects, 1}};
  for (const auto& kind : kinds) {
    if (std::strcmp(kind.name, arguments[1]) != 0) continue;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const Kernels kernels;
    const auto turns = static_cast<unsigned>(std::atol(arguments[2])) / kind.launches;
    for (unsigned turn = 1; turn <= turns; ++turn) {
      kind.turn(kernels, stream, turn);
      if (turn == std::max(1U, turns / 10)) std::printf("%ld\n", resident_kib());
    }
    CHECK(cuCtxSynchronize());
    std::printf("%ld\n", resident_kib());
    return 0;
  }
  return 2;
}
