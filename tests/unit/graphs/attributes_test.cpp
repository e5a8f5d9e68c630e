// SPDX-License-Identifier: Apache-2.0
// Cooperative launches and launches with a cluster: what is queued, what the graph carries, and
// what is left to the driver's own judgement.
#include "tests/unit/graphs/program.h"

using runtime::DirectReason;
using runtime::LaunchAttributes;

namespace {

constexpr LaunchAttributes kCooperative{true, {}};
constexpr LaunchAttributes kPair{false, {2, 1, 1}};
constexpr LaunchAttributes kBoth{true, {2, 1, 1}};

CUlaunchAttribute attribute(CUlaunchAttributeID id) {
  CUlaunchAttribute made{};
  made.id = id;
  return made;
}

CUlaunchAttribute cluster(unsigned x, unsigned y, unsigned z) {
  CUlaunchAttribute made = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  made.value.clusterDim = {x, y, z};
  return made;
}

CUlaunchAttribute cooperative(int value) {
  CUlaunchAttribute made = attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  made.value.cooperative = value;
  return made;
}

DirectReason read(std::vector<CUlaunchAttribute> attributes, LaunchAttributes* read) {
  *read = {};
  CUlaunchConfig config{};
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  return runtime::read_attributes(config, read);
}

}  // namespace

TEST_CASE("launches with attributes replay with their attributes") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (std::uint64_t step = 0; step < 6; ++step) {
    for (const LaunchAttributes& attributes : {kCooperative, LaunchAttributes{}, kPair, kBoth}) {
      REQUIRE(program.launch_with(attributes, stream, function, 2, step) == CUDA_SUCCESS);
    }
    REQUIRE(program.sync(stream) == CUDA_SUCCESS);
    REQUIRE(program.driver.log() == program.asked);
  }
  CHECK(program.counters().graphs_built == 1);
  CHECK(program.driver.calls("cuGraphLaunch") == 5);
  // First sight, each in a form that says the same.
  CHECK(program.driver.calls("cuLaunchCooperativeKernel") == 1);
  CHECK(program.driver.calls("cuLaunchKernelEx") == 2);
  CHECK(program.driver.calls("cuLaunchKernel") == 1);
  CHECK(program.driver.calls("cuGraphKernelNodeSetAttribute") == 4);
}

TEST_CASE("the same function with other attributes is another sequence") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  const LaunchAttributes all[] = {{}, kCooperative, kPair, {false, {1, 2, 1}}, {false, {1, 1, 1}}};
  for (int round = 0; round < 4; ++round) {
    for (const LaunchAttributes& attributes : all) {
      for (std::uint64_t i = 0; i < 2; ++i) {
        runtime::LaunchShape shape{{2, 2, 1}, {32, 1, 1}, 0};
        void* params[] = {&i};
        {
          std::lock_guard guard(program.driver.mutex);
          program.asked.push_back({stream, function, 2,
                                   program.driver.pack(function, params, nullptr), false,
                                   attributes});
        }
        REQUIRE(program.submit({function, shape, stream, params, attributes}) == CUDA_SUCCESS);
      }
      program.sync(stream);
      REQUIRE(program.driver.log() == program.asked);
    }
  }
  CHECK(program.counters().graphs_built == std::size(all));
  CHECK(program.counters().patches == 0);
}

TEST_CASE("a cooperative launch beyond what the device holds goes to the driver at once") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  auto launch = [&](unsigned grid) {
    return program.launch_with(kCooperative, stream, function, grid, std::uint64_t{grid});
  };
  for (int round = 0; round < 3; ++round) {
    CHECK(launch(8) == CUDA_SUCCESS);  // 4 multiprocessors of 2 blocks
    CHECK(program.counters().pending == 1);
    CHECK(program.sync(stream) == CUDA_SUCCESS);
    program.driver.fail("cuLaunchCooperativeKernel", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK(launch(9) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    program.asked.pop_back();
    CHECK(program.driver.log() == program.asked);
  }
  CHECK(program.direct(DirectReason::kLimits) == 3);
  CHECK(program.driver.calls("cuOccupancyMaxActiveBlocksPerMultiprocessor") == 1);  // remembered
  runtime::functions_changed(runtime::CodeScope::of_function(function));
  program.driver.active_blocks = 1;
  program.driver.fail("cuLaunchCooperativeKernel", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CHECK(launch(8) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);  // asked again
}

TEST_CASE("clusters that the driver might refuse go to the driver at once") {
  Program program;
  program.driver.has_clusters = GENERATE(true, false);
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  auto pending = [&](LaunchAttributes attributes, unsigned grid) {
    program.sync(stream);
    program.launch_with(attributes, stream, function, grid, std::uint64_t{1});
    return program.counters().pending;
  };
  CHECK(pending(kPair, 4) == (program.driver.has_clusters ? 1 : 0));
  CHECK(pending(kPair, 3) == 0);                 // does not divide the grid
  CHECK(pending({false, {16, 1, 1}}, 16) == 0);  // not portable
  CHECK(pending(kBoth, 4) == 0);                 // one cluster fits, two are asked for
  program.driver.active_clusters = 0;
  CHECK(pending({false, {4, 1, 1}}, 4) == 0);  // cannot be placed at all
  CHECK(program.driver.log() == program.asked);
}

TEST_CASE("a graph node that refuses an attribute leaves the launches direct") {
  Program program;
  program.driver.fail("cuGraphKernelNodeSetAttribute", CUDA_ERROR_NOT_SUPPORTED, -1);
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (std::uint64_t step = 0; step < 6; ++step) {
    program.launch_with(kCooperative, stream, function, 1, step);
    program.launch_with(kPair, stream, function, 2, step);
    program.sync(stream);
    REQUIRE(program.driver.log() == program.asked);
  }
  CHECK(program.driver.calls("cuGraphLaunch") == 0);
  CHECK(program.direct(DirectReason::kPatchFailed) == 10);
}

TEST_CASE("attributes are read for what they say") {
  LaunchAttributes found;
  CHECK(read({}, &found) == DirectReason::kCount);
  CHECK(read({attribute(CU_LAUNCH_ATTRIBUTE_IGNORE), cooperative(0)}, &found) ==
        DirectReason::kCount);
  CHECK(found.is_plain());
  CHECK(read({cooperative(1), cluster(2, 3, 1)}, &found) == DirectReason::kCount);
  CHECK(found.is_cooperative);
  CHECK((found.cluster[0] == 2 && found.cluster[1] == 3 && found.cluster[2] == 1));
  // A kernel can tell a cluster of one block from none (%is_explicit_cluster).
  CHECK(read({cluster(1, 1, 1)}, &found) == DirectReason::kCount);
  CHECK_FALSE(found.is_plain());
  CHECK(read({cluster(2, 0, 1)}, &found) == DirectReason::kLimits);
  CHECK(read({cluster(32, 1, 1)}, &found) == DirectReason::kLimits);
  CHECK(read({cluster(2, 1, 1), cluster(1, 1, 1)}, &found) == DirectReason::kAttributes);
  CHECK(read({cooperative(1), cooperative(0)}, &found) == DirectReason::kAttributes);
  for (CUlaunchAttributeID id :
       {CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW}) {
    CHECK(read({cooperative(1), attribute(id)}, &found) == DirectReason::kAttributes);
  }
}

TEST_CASE("a null function of an empty launch is nobody's expected launch") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  program.launch_with(kCooperative, stream, function, 1, std::uint64_t{1});
  void* params[] = {nullptr};
  for (unsigned size : {0u, 1u}) {
    runtime::LaunchShape shape{{size, size, size}, {size * 32, size, size}, 0};
    CHECK_FALSE(runtime::queue_expected(runtime::launch_key(nullptr), shape, stream, params));
  }
}

TEST_CASE("a thread that stays in its context keeps its queue") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  program.launch(stream, function, 1, std::uint64_t{1});
  int asked = program.driver.calls("cuCtxGetCurrent");
  runtime::context_switched();
  CHECK(runtime::t_thread.last.queue != nullptr);
  CHECK(program.driver.calls("cuCtxGetCurrent") == asked + 1);
  CUcontext mine = program.driver.current;
  program.driver.current = fake::Driver::context(4000);
  runtime::context_switched();
  CHECK(runtime::t_thread.last.queue == nullptr);
  CHECK(runtime::t_thread.context == nullptr);
  program.driver.current = mine;
  CHECK(program.sync(stream) == CUDA_SUCCESS);
  CHECK(program.driver.log() == program.asked);
}
