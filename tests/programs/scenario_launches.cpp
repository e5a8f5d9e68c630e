// SPDX-License-Identifier: Apache-2.0
// Scenarios about a single launch: refused ones and their codes, the ways to pass arguments,
// argument memory that is reused at once, the other launch entries, and function attributes that
// change between launches.
#include <cstring>
#include <memory>

#include "tests/programs/scenario.h"

namespace scenario {
namespace {

void report(const char* what, CUresult result) {
  std::printf("%s %s\n", what, error_name(result));
}

// Each refused launch stands behind launches that are fine, and returns what the driver itself
// would return.
void refused_launches() {
  Device device;
  const CUfunction affine = device.function("affine"), shape = device.function("shape");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 6; ++round) {
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    report("too many threads", launch(affine, {1, 1025, 0}, stream, x.at(), 3U, 1U, 64));
    for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 5U, round + i, 64));
    report("too much shared memory", launch(shape, {1, 32, 200 * 1024}, stream, x.at()));
    report("shared memory without opt-in", launch(shape, {1, 32, 50 * 1024}, stream, x.at()));
    CHECK(launch(affine, {}, stream, x.at(), 7U, round, 64));
    report("no function", launch(nullptr, {}, stream, x.at(), 3U, 1U, 64));
    report("zero grid", launch(affine, {0, 64, 0}, stream, x.at(), 3U, 1U, 64));
    report("zero block", launch(affine, {1, 0, 0}, stream, x.at(), 3U, 1U, 64));
    CHECK(launch(affine, {}, stream, x.at(), 11U, round, 64));
    report("grid too high",
           cuLaunchKernel(affine, 1, 70000, 1, 64, 1, 1, 0, stream, nullptr, nullptr));
    report("block too deep",
           cuLaunchKernel(affine, 1, 1, 1, 1, 1, 65, 0, stream, nullptr, nullptr));
    print("x", x);
  }
}

// Argument memory is the caller's again as soon as the launch returns.
void stale_arguments() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x, y;
  CUdeviceptr target = 0;
  unsigned multiply = 0, add = 0;
  int count = 64;
  void* parameters[] = {&target, &multiply, &add, &count};
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 8; ++i) {
      target = x.at();
      multiply = 3;
      add = round * 8 + i;
      count = 64;
      CHECK(cuLaunchKernel(affine, 1, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
      target = y.at();  // all of it overwritten before anything ran
      multiply = 0xdead;
      add = 0xbeef;
      count = 1;
    }
    for (unsigned i = 0; i < 4; ++i) {
      auto bytes = std::make_unique<unsigned[]>(2);
      auto list = std::make_unique<void*[]>(4);
      CUdeviceptr address = x.at();
      int all = 64;
      bytes[0] = 5;
      bytes[1] = round + i;
      list[0] = &address;
      list[1] = &bytes[0];
      list[2] = &bytes[1];
      list[3] = &all;
      CHECK(cuLaunchKernel(affine, 1, 1, 1, 64, 1, 1, 0, stream, list.get(), nullptr));
      std::memset(bytes.get(), 0xee, 2 * sizeof(unsigned));
      std::memset(list.get(), 0, 4 * sizeof(void*));
      address = 0;
      all = 0;
    }
    print("x", x);
    print("y", y);
  }
}

void every_argument_layout() {
  Device device;
  const CUfunction wide = device.function("wide"), narrow = device.function("narrow");
  const CUfunction by_value = device.function("by_value"), empty = device.function("empty");
  Stream stream;
  Buffer x, y, z;
  struct Block {
    unsigned words[24];
  } block;
  for (unsigned round = 0; round < 10; ++round) {
    for (unsigned i = 0; i < 24; ++i)
      block.words[i] = round / 2 * 1000 + i;  // every other round unchanged
    CHECK(launch(wide, {}, stream, x.at(), y.at(), z.at(), round * 0x123456789ULL, -3LL * round,
                 1.5 * round, round, 64));
    CHECK(launch(narrow, {1, 8, 0}, stream, y.at(), static_cast<unsigned char>(200 + round),
                 static_cast<unsigned short>(60000 + round), round % 3 == 0, 1ULL << (round * 3),
                 static_cast<signed char>(-1 - static_cast<int>(round))));
    CHECK(launch(by_value, {}, stream, z.at(), block, 64));
    std::memset(&block, 0xcc, sizeof block);
    CHECK(launch(empty, {3, 32, 0}, stream));
    print("x", x);
    print("y", y);
    print("z", z);
  }
}

void extra_buffers() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 5; ++i) {
      struct {
        CUdeviceptr data;
        unsigned multiply, add;
        int count;
      } packed{x.at(), 3, round / 2 + i, 64};
      std::size_t size = 20;
      void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                       CU_LAUNCH_PARAM_END};
      CHECK(cuLaunchKernel(affine, 1, 1, 1, 64, 1, 1, 0, stream, nullptr, extra));
      std::memset(&packed, 0x55, sizeof packed);
      size = 0;
      CHECK(launch(affine, {}, stream, x.at(), 5U, i, 64));
    }
    print("x", x);
  }
}

void library_kernels() {
  Device device;
  CUlibrary library = nullptr;
  CHECK(cuLibraryLoadData(&library, kScenarioPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel affine_kernel = nullptr, mix_kernel = nullptr;
  CHECK(cuLibraryGetKernel(&affine_kernel, library, "affine"));
  CHECK(cuLibraryGetKernel(&mix_kernel, library, "mix"));
  CUfunction mix = nullptr;
  CHECK(cuKernelGetFunction(&mix, mix_kernel));
  // A kernel without a context is a legal function to launch.
  const auto affine = reinterpret_cast<CUfunction>(affine_kernel);
  Stream stream;
  Buffer x, y;
  for (unsigned round = 0; round < 8; ++round) {
    CHECK(launch(affine, {}, stream, x.at(), 3U, round, 64));
    CHECK(launch(mix, {}, stream, y.at(), x.at(), round, 64));
    CHECK(launch(reinterpret_cast<CUfunction>(mix_kernel), {}, stream, x.at(), y.at(), 1U, 64));
    CHECK(launch(affine, {}, nullptr, y.at(), 5U, 1U, 64));
    print("x", x);
    print("y", y);
  }
  CHECK(cuLibraryUnload(library));
}

CUresult launch_ex(CUfunction function, CUstream stream, CUlaunchAttribute* attributes,
                   unsigned attribute_count, CUdeviceptr data, unsigned add) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = attribute_count;
  unsigned multiply = 3;
  int count = 64;
  void* parameters[] = {&data, &multiply, &add, &count};
  return cuLaunchKernelEx(&config, function, parameters, nullptr);
}

void other_launch_entries() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  CUlaunchAttribute priority{};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.value.priority = 0;
  for (unsigned round = 0; round < 8; ++round) {
    CHECK(launch(affine, {}, stream, x.at(), 3U, round, 64));
    CHECK(launch_ex(affine, stream, nullptr, 0, x.at(), round));
    CHECK(launch_ex(affine, stream, &priority, 1, x.at(), round));
    CUdeviceptr data = x.at();
    unsigned multiply = 7, add = round;
    int count = 64;
    void* parameters[] = {&data, &multiply, &add, &count};
    CHECK(cuLaunchCooperativeKernel(affine, 1, 1, 1, 64, 1, 1, 0, stream, parameters));
    CHECK(launch(affine, {}, stream, x.at(), 5U, round, 64));
    print("x", x);
  }
}

// Libraries set the same value before every launch; a new value counts from the next launch on.
void function_attributes() {
  Device device;
  const CUfunction shape = device.function("shape");
  Stream stream;
  Buffer x;
  constexpr auto kOptIn = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(cuFuncSetAttribute(shape, kOptIn, 60 * 1024));
      CHECK(launch(shape, {2, 32, 52 * 1024 + round * 64}, stream, x.at()));
    }
    CHECK(cuFuncSetAttribute(shape, kOptIn, 16 * 1024));
    report("above the new limit", launch(shape, {2, 32, 52 * 1024}, stream, x.at()));
    CHECK(launch(shape, {2, 32, 1024}, stream, x.at()));
    print("x", x);
  }
}

}  // namespace

const std::vector<Scenario> kLaunchScenarios = {
    {"refused_launches", refused_launches},
    {"stale_arguments", stale_arguments},
    {"every_argument_layout", every_argument_layout},
    {"extra_buffers", extra_buffers},
    {"library_kernels", library_kernels},
    {"other_launch_entries", other_launch_entries},
    {"function_attributes", function_attributes},
};

}  // namespace scenario
