// SPDX-License-Identifier: Apache-2.0
// The operation log of a graph launch reads like that of its launches one by one: same texts,
// consecutive sequence numbers, nothing for nodes that do nothing. The log is chosen before the
// first driver call, so a child writes it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

// Run by the test below only. Stream 1 launches one by one, stream 2 a graph, twice each.
TEST_CASE("graph log child", "[.]") {
  const Gpu& gpu = Gpu::get();
  Words words(1);
  TestStream single, graphed;
  for (std::uint32_t round = 0; round < 2; ++round) {
    for (std::uint32_t value = 0; value < 3; ++value) {
      WordArguments arguments(words.at(0), value);
      REQUIRE(cuLaunchKernel(gpu.store, 1, 1, 1, 1, 1, 1, 0, single, arguments.pointers, nullptr) ==
              CUDA_SUCCESS);
    }
    single.sync();
  }
  TestGraph graph;
  const CUgraphNode first = graph.store(words.at(0), 0);
  const CUgraphNode off = graph.store(words.at(0), 9, {first});
  graph.store(words.at(0), 2, {graph.store(words.at(0), 1, {graph.empty({off})})});
  TestExec exec(graph);
  REQUIRE(cuGraphNodeSetEnabled(exec, off, 0) == CUDA_SUCCESS);
  REQUIRE(cuGraphUpload(exec, graphed) == CUDA_SUCCESS);
  exec.launch(graphed);
  exec.launch(graphed);
  graphed.sync();
}

TEST_CASE("a graph logs like its launches") {
  const std::string path = "graph_log." + std::to_string(getpid());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("CAJETA_SOFTGPU_LOG", path.c_str(), 1);
    execl("/proc/self/exe", "softgpu_test", "graph log child", "-o", "/dev/null",
          static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);

  std::map<std::string, std::map<std::uint64_t, std::string>> streams;  // by stream, by sequence
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string stream, text;
    std::uint64_t sequence = 0;
    fields >> stream >> sequence;
    std::getline(fields, text);
    if (text.find("store") != std::string::npos) streams[stream][sequence] = text;
  }
  unlink(path.c_str());
  REQUIRE(streams.size() == 2);
  const auto& single = streams.begin()->second;
  CHECK(single.size() == 6);
  CHECK(single == streams.rbegin()->second);
}
