// SPDX-License-Identifier: Apache-2.0
// Occupancy of kernels whose limits are known: by threads, by shared memory, by launch bounds.
#include <cuda.h>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"
#include "tests/unit/softgpu/test_data.h"

namespace {

struct Loaded : Session {
  CUmodule module = nullptr;
  CUfunction plain = nullptr, reverse = nullptr, bounded = nullptr;
  Loaded() {
    REQUIRE_OK(cuModuleLoad(&module, test_data_path("kernels.ptx").c_str()));
    REQUIRE_OK(cuModuleGetFunction(&plain, module, "nothing"));
    REQUIRE_OK(cuModuleGetFunction(&reverse, module, "reverse_block"));
    REQUIRE_OK(cuModuleGetFunction(&bounded, module, "bounded"));
  }
};

int active(CUfunction function, int threads, std::size_t shared) {
  int blocks = -1;
  REQUIRE_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared));
  return blocks;
}

std::size_t shared_for(int block) {
  return static_cast<std::size_t>(block) * 128;
}

}  // namespace

TEST_CASE("active blocks", "[occupancy]") {
  const Loaded loaded;
  // 2048 threads and 32 blocks a multiprocessor.
  CHECK(active(loaded.plain, 1024, 0) == 2);
  CHECK(active(loaded.plain, 256, 0) == 8);
  CHECK(active(loaded.plain, 32, 0) == 32);
  CHECK(active(loaded.plain, 33, 0) == 32);
  CHECK(active(loaded.plain, 1025, 0) == 0);
  // 164 KiB shared memory, 1 KiB of it lost to each block.
  CHECK(active(loaded.plain, 32, 40 << 10) == 4);
  CHECK(active(loaded.plain, 32, 163 << 10) == 1);
  CHECK(active(loaded.plain, 32, 164 << 10) == 0);
  CHECK(active(loaded.reverse, 32, (163 << 10) - 256) == 1);
  CHECK(active(loaded.reverse, 32, (163 << 10) - 255) == 0);
  CHECK(active(loaded.bounded, 64, 0) == 32);
  CHECK(active(loaded.bounded, 96, 0) == 0);
  int blocks = 0;
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, loaded.plain, 0, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, loaded.plain, 32, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nullptr, 32, 0) ==
        CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, loaded.plain, 32, 0, 64) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("suggested block sizes fill the device", "[occupancy]") {
  const Loaded loaded;
  int multiprocessors = 0, grid = 0, block = 0;
  REQUIRE_OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                  loaded.device()));
  REQUIRE_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, loaded.plain, nullptr, 0, 0));
  CHECK(block == 1024);
  CHECK(grid == 2 * multiprocessors);
  REQUIRE_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, loaded.plain, nullptr, 0, 200));
  CHECK(block <= 200);
  CHECK(active(loaded.plain, block, 0) * multiprocessors == grid);
  REQUIRE_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, loaded.bounded, nullptr, 0, 0));
  CHECK(block == 64);
  // Shared memory that grows with the block.
  REQUIRE_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, loaded.plain, shared_for, 0, 0));
  for (int other = 32; other <= 1024; other += 32) {
    CHECK(active(loaded.plain, other, shared_for(other)) * other <=
          active(loaded.plain, block, shared_for(block)) * block);
  }
}

TEST_CASE("shared memory left for a number of blocks", "[occupancy]") {
  const Loaded loaded;
  std::size_t shared = 0;
  for (const int blocks : {1, 2, 5, 8}) {
    REQUIRE_OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, loaded.reverse, blocks, 128));
    CHECK(active(loaded.reverse, 128, shared) >= blocks);
    if (blocks > 1) CHECK(active(loaded.reverse, 128, shared + 128) < blocks);
  }
  CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, loaded.reverse, 17, 128) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a device without clusters says so", "[occupancy]") {
  const Loaded loaded;
  CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0};
  int size = 0;
  CHECK(cuOccupancyMaxPotentialClusterSize(&size, loaded.plain, &config) ==
        CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuOccupancyMaxActiveClusters(&size, loaded.plain, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
