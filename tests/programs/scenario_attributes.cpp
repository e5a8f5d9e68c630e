// SPDX-License-Identifier: Apache-2.0
// Scenarios about launch attributes that a graph carries: cooperative launches with a barrier over
// the grid, the same function launched plainly, launches too large for the device, and clusters.
#include "tests/programs/scenario.h"

extern "C" const char kClusterPtx[];  // compute capability 9.0

namespace scenario {
namespace {

constexpr unsigned kThreads = 16;

template <typename... Args>
CUresult launch_cooperative(CUfunction function, unsigned grid, CUstream stream, Args... args) {
  void* parameters[] = {&args..., nullptr};
  return cuLaunchCooperativeKernel(function, grid, 1, 1, kThreads, 1, 1, 0, stream, parameters);
}

template <typename... Args>
CUresult launch_config(CUfunction function, unsigned grid_x, unsigned grid_y, CUstream stream,
                       std::vector<CUlaunchAttribute> attributes, Args... args) {
  CUlaunchConfig config{};
  config.gridDimX = grid_x;
  config.gridDimY = grid_y;
  config.gridDimZ = 1;
  config.blockDimX = kThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  void* parameters[] = {&args..., nullptr};
  return cuLaunchKernelEx(&config, function, parameters, nullptr);
}

CUlaunchAttribute cooperative() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  return attribute;
}

CUlaunchAttribute cluster(unsigned x, unsigned y) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = x;
  attribute.value.clusterDim.y = y;
  attribute.value.clusterDim.z = 1;
  return attribute;
}

// Blocks exchange values across a barrier of the whole grid; grids grow and arguments change.
void cooperative_loop() {
  Device device;
  const CUfunction relay = device.function("relay"), affine = device.function("affine");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 10; ++round) {
    const unsigned step = round / 2;  // every other round nothing changes
    CHECK(launch(affine, {}, stream, x.at(), 3U, step, 64));
    CHECK(launch_cooperative(relay, 4, stream, x.at(), step, 64));
    CHECK(launch_config(relay, 1 + step % 4, 1, stream, {cooperative()}, x.at(), step + 1, 64));
    CHECK(launch_cooperative(relay, 2, stream, x.at(), 7U, 64));
    print("x", x);
  }
}

// The kernel sees how it was launched, so neither form may be replayed as the other.
void cooperative_and_plain() {
  Device device;
  const CUfunction relay = device.function("relay");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 12; ++round) {
    for (unsigned i = 0; i < 4; ++i) {
      const bool is_plain = (round / 3 + i) % 2 == 0;
      CHECK(is_plain ? launch(relay, {4, kThreads, 0}, stream, x.at(), i, 64)
                     : launch_cooperative(relay, 4, stream, x.at(), i, 64));
    }
    print("x", x);
  }
}

// More blocks than the device holds at once: refused at the call, every time.
void cooperative_refused() {
  Device device;
  const CUfunction relay = device.function("relay");
  Stream stream;
  Buffer x;
  int blocks = 0, multiprocessors = 0;
  CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, relay, kThreads, 0));
  CHECK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  const auto most = static_cast<unsigned>(blocks * multiprocessors);
  for (unsigned round = 0; round < 6; ++round) {
    CHECK(launch_cooperative(relay, 4, stream, x.at(), round, 64));
    std::printf("too large %s\n",
                error_name(launch_cooperative(relay, most + 1, stream, x.at(), round, 64)));
    std::printf("zero grid %s\n", error_name(launch_cooperative(relay, 0, stream, x.at(), 1U, 64)));
    std::printf("as attribute %s\n", error_name(launch_config(relay, most + 1, 1, stream,
                                                              {cooperative()}, x.at(), 1U, 64)));
    std::printf("cluster on any device %s\n",
                error_name(launch_config(relay, 4, 1, stream, {cluster(3, 1)}, x.at(), 1U, 64)));
    CHECK(launch_cooperative(relay, 4, stream, x.at(), round, 64));
    print("x", x);
  }
}

// What `where` must have seen of clusters of 2 x 2 in a grid of 8 x 4.
void check_places(CUfunction where, CUstream stream) {
  const Buffer y;
  CHECK(launch_config(where, 8, 4, stream, {cluster(2, 2)}, y.at(), 5U));
  CHECK(cuStreamSynchronize(stream));
  const std::vector<unsigned> words = y.read();
  for (unsigned block = 0; block < 32; ++block) {
    const unsigned at_x = block % 8, at_y = block / 8;
    const unsigned seen =
        at_x / 2 + 3 * 4 + 5 * (at_y % 2) + 7 * 2 + 11 * (at_x % 2 + 2 * (at_y % 2)) + 13 * 4;
    REQUIRE(words[block] == ((block * 31 + seen) ^ 5U));
  }
}

void clusters() {
  Device device(kClusterPtx);
  const CUfunction where = device.function("where");
  Stream stream;
  Buffer x;
  check_places(where, stream);
  for (unsigned round = 0; round < 12; ++round) {
    const unsigned key = round / 2;
    CHECK(launch_config(where, 8, 4, stream, {cluster(2, 2)}, x.at(), key));
    CHECK(launch_config(where, 8, 1 + key % 3, stream, {cluster(4, 1)}, x.at(), 1U));
    CHECK(launch_config(where, 8, 2, stream, {}, x.at(), 2U));
    CHECK(launch_config(where, 8, 2, stream, {cluster(1, 1)}, x.at(), 3U));
    CHECK(launch_config(where, 8, 2, stream, {cluster(round % 4 == 3 ? 4 : 2, 1), cooperative()},
                        x.at(), 4U));
    print("x", x);
    std::printf("does not divide %s\n",
                error_name(launch_config(where, 7, 1, stream, {cluster(2, 1)}, x.at(), 1U)));
    std::printf("not portable %s\n",
                error_name(launch_config(where, 16, 1, stream, {cluster(16, 1)}, x.at(), 1U)));
  }
}

}  // namespace

const std::vector<Scenario> kAttributeScenarios = {
    {"cooperative_loop", cooperative_loop},
    {"cooperative_and_plain", cooperative_and_plain},
    {"cooperative_refused", cooperative_refused},
    {"clusters", clusters},
};

}  // namespace scenario
