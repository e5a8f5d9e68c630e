// SPDX-License-Identifier: Apache-2.0
// A captured program does what the program does: random programs over several streams, run directly
// and as a graph.
#include <memory>
#include <random>

#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

namespace {

void order(CUstream later, CUstream earlier, CUevent event) {
  REQUIRE(cuEventRecord(event, earlier) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitEvent(later, event, 0) == CUDA_SUCCESS);
}

// A random program over a few words and streams, free of races: whenever two uses of a word
// conflict and are in different streams, an event orders them. So it has one result, whatever the
// order policy does.
class RandomProgram {
 public:
  static constexpr std::size_t kWords = 6, kStreams = 3, kSteps = 40;

  explicit RandomProgram(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < kSteps; ++i) {
      steps_.push_back({pick(4), pick(kStreams), pick(kWords), pick(kWords),
                        static_cast<std::uint32_t>(pick(1000))});
    }
  }

  // Issues the program on `streams`, of which all later ones wait for the first and are joined back
  // to it.
  void issue(const std::vector<std::unique_ptr<TestStream>>& streams, const Words& words) const {
    std::vector<std::unique_ptr<TestEvent>> events;
    const auto link = [&](std::size_t later, std::size_t earlier) {
      events.push_back(std::make_unique<TestEvent>());
      order(*streams[later], *streams[earlier], *events.back());
    };
    for (std::size_t i = 1; i < kStreams; ++i) link(i, 0);
    std::vector<std::vector<bool>> used(kWords, std::vector<bool>(kStreams, false));
    for (const Step& step : steps_) {
      for (const std::size_t word : {step.to, step.from}) {
        for (std::size_t other = 0; other < kStreams; ++other) {
          if (other == step.stream || !used[word][other]) continue;
          link(step.stream, other);
          used[word][other] = false;
        }
        used[word][step.stream] = true;
      }
      run(step, *streams[step.stream], words);
    }
    for (std::size_t i = 1; i < kStreams; ++i) link(0, i);
  }

  void model(std::vector<std::uint32_t>* words) const {
    for (const Step& step : steps_) {
      std::uint32_t& to = (*words)[step.to];
      const std::uint32_t from = (*words)[step.from];
      if (step.kind == 0) to = step.value;
      if (step.kind == 1) to = from;
      if (step.kind == 2) to = to * 3 + step.value;
      if (step.kind == 3) to = to * 5 + from;
    }
  }

 private:
  struct Step {
    std::size_t kind, stream, to, from;
    std::uint32_t value;
  };

  std::size_t pick(std::size_t count) { return random_() % count; }

  static void run(const Step& step, CUstream stream, const Words& words) {
    const Gpu& gpu = Gpu::get();
    CUdeviceptr to = words.at(step.to), from = words.at(step.from);
    if (step.kind == 0) REQUIRE(cuMemsetD32Async(to, step.value, 1, stream) == CUDA_SUCCESS);
    if (step.kind == 1) REQUIRE(cuMemcpyDtoDAsync_v2(to, from, 4, stream) == CUDA_SUCCESS);
    if (step.kind == 2) {
      WordArguments arguments(to, step.value);
      REQUIRE(cuLaunchKernel(gpu.scale, 1, 1, 1, 1, 1, 1, 0, stream, arguments.pointers, nullptr) ==
              CUDA_SUCCESS);
    }
    if (step.kind == 3) {
      void* arguments[] = {&to, &from};
      REQUIRE(cuLaunchKernel(gpu.mix, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) ==
              CUDA_SUCCESS);
    }
  }

  std::mt19937_64 random_;
  std::vector<Step> steps_;
};

}  // namespace

TEST_CASE("a captured program does what the program does") {
  Gpu::get();
  std::vector<std::unique_ptr<TestStream>> streams;
  for (std::size_t i = 0; i < RandomProgram::kStreams; ++i)
    streams.push_back(std::make_unique<TestStream>());
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program(seed);
    std::vector<std::uint32_t> expected(RandomProgram::kWords, 0);
    program.model(&expected);
    Words direct(RandomProgram::kWords), replayed(RandomProgram::kWords);
    program.issue(streams, direct);
    streams[0]->sync();
    CHECK(direct.read() == expected);

    REQUIRE(cuStreamBeginCapture_v2(*streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    program.issue(streams, replayed);
    CUgraph captured = nullptr;
    REQUIRE(cuStreamEndCapture(*streams[0], &captured) == CUDA_SUCCESS);
    TestGraph graph(captured);
    TestExec exec(graph);
    exec.launch(*streams[0]);
    streams[0]->sync();
    CHECK(replayed.read() == expected);
    program.model(&expected);
    exec.launch(*streams[1]);
    streams[1]->sync();
    CHECK(replayed.read() == expected);
  }
}
