// SPDX-License-Identifier: Apache-2.0
// What the environment of a process changes: order, counters, log, costs, device properties. Each
// case runs the probe (SOFTGPU_PROBE) as a process of its own.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/catch.h"

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/softgpu-test-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    path_ = path;
  }
  ~Folder() {
    const std::string command = "rm -r " + path_;
    if (std::system(command.c_str()) != 0) WARN("cannot remove " << path_);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Run {
  std::string out, err;
};

// `environment` as in a shell: "A=1 B=2".
Run run_probe(const Folder& folder, const std::string& environment, const std::string& mode) {
  const std::string out = folder.file("out"), err = folder.file("err");
  const std::string command = "env -u CAJETA_SOFTGPU_ORDER " + environment + " " SOFTGPU_PROBE " " +
                              mode + " >" + out + " 2>" + err;
  [[maybe_unused]] const int status = std::system(command.c_str());
  return {read_file(out), read_file(err)};
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The number behind "name": in a counters file.
long counter(const std::string& text, const std::string& name) {
  const std::size_t at = text.find('"' + name + "\":");
  REQUIRE(at != std::string::npos);
  return std::strtol(text.c_str() + at + name.size() + 3, nullptr, 10);
}

}  // namespace

TEST_CASE("late order runs nothing before it must") {
  const Folder folder;
  CHECK(run_probe(folder, "CAJETA_SOFTGPU_ORDER=late", "pending").out == "0\n1\n");
  CHECK(run_probe(folder, "CAJETA_SOFTGPU_ORDER=early", "pending").out == "1\n1\n");
}

TEST_CASE("results and per-stream logs do not depend on the order") {
  const Folder folder;
  std::vector<std::string> wanted;
  for (const char* order : {"early", "late", "random:1", "random:2", "random:3", "free"}) {
    INFO(order);
    const std::string log = folder.file(std::string("log.") + order);
    const Run run =
        run_probe(folder, "CAJETA_SOFTGPU_LOG=" + log + " CAJETA_SOFTGPU_ORDER=" + order, "mixed");
    CHECK(run.out == "19\n");
    CHECK(run.err.empty());
    const auto lines = sorted_lines(read_file(log));
    if (wanted.empty()) wanted = lines;
    CHECK(lines.size() == 8 * 20 + 1);
    CHECK(lines == wanted);
  }
  CHECK(std::count(wanted.begin(), wanted.end(), "1.2 1 copy 4096x1x1 a1+0 -> a2+0") == 1);
}

TEST_CASE("counters survive every way to end a process") {
  const Folder folder;
  for (const char* way : {"exit", "_exit", "kill"}) {
    INFO(way);
    const std::string path = folder.file(std::string("counters.") + way);
    run_probe(folder, "CAJETA_SOFTGPU_COUNTERS=" + path, way);
    const std::string text = read_file(path);
    CHECK(counter(text, "cuInit") == 1);
    CHECK(counter(text, "cuStreamQuery") == 10);
    CHECK(counter(text, "cuStreamQuery_ptsz") == 0);
    CHECK(text.substr(0, 2) == "{\n");
    CHECK(text.substr(text.size() - 3) == "\n}\n");
  }
}

TEST_CASE("a wrong value costs one line and the default is used") {
  const Folder folder;
  const Run order = run_probe(folder, "CAJETA_SOFTGPU_ORDER=sideways", "pending");
  CHECK(order.out == "1\n1\n");
  CHECK(order.err ==
        "softgpu: CAJETA_SOFTGPU_ORDER=sideways is not valid: use early (default), late, "
        "random:SEED or free\n");
  for (const char* wrong : {"ORDER=random:",
                            "ORDER=random:x",
                            "ORDER=",
                            "COSTS=much",
                            "EXECUTOR=gpu",
                            "CC=eight",
                            "CC=80",
                            "DEVICES=17",
                            "VERSION=13",
                            "COUNTERS=",
                            "VERSION=12.",
                            "VERSION=12.x",
                            "VERSION=3.2",
                            "MISSING=",
                            "MISSING=cuFuncLoad,cuNothing",
                            "FAIL=",
                            "FAIL=cuInit",
                            "FAIL=cuNothing:1",
                            "FAIL=cuInit:0",
                            "FAIL=cuInit:1-",
                            "FAIL=cuInit:1:OOPS",
                            "FAIL=cuInit:1:CUDA_SUCCESS",
                            "FAIL=cuInit:1,",
                            "FAIL=:1",
                            "MEMORY=1K",
                            "MEMORY=2T",
                            "MEMORY=",
                            "GRAPH_NODE_BYTES=-1",
                            "MISUSE=fine"}) {
    INFO(wrong);
    const Run run = run_probe(folder, std::string("CAJETA_SOFTGPU_") + wrong, "about");
    CHECK(run.out == "13000\n1\n8.0\n");
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find(std::string("softgpu: CAJETA_SOFTGPU_") + wrong) == 0);
  }
}

TEST_CASE("the device can pretend") {
  const Folder folder;
  CHECK(run_probe(folder,
                  "CAJETA_SOFTGPU_VERSION=12040 CAJETA_SOFTGPU_DEVICES=3 CAJETA_SOFTGPU_CC=9.0",
                  "about")
            .out == "12040\n3\n9.0\n");
  CHECK(run_probe(folder, "CAJETA_SOFTGPU_DEVICES=0", "about").out == "100\n");
}

TEST_CASE("an older driver does not have the entry") {
  const Folder folder;
  CHECK(run_probe(folder, "", "find").out == "1\n1\n1\n");
  for (const char* without : {"VERSION=12.3", "VERSION=12030", "MISSING=cuFuncGetParamInfo",
                              "MISSING=cuInit_,cuFuncLoad"}) {
    INFO(without);
    const bool is_legal = std::string(without).find("cuInit_") == std::string::npos;
    const Run run = run_probe(folder, std::string("CAJETA_SOFTGPU_") + without, "find");
    CHECK(run.out == (is_legal ? "0\n0\n0\n" : "1\n1\n1\n"));
    CHECK(run.err.empty() == is_legal);
  }
}

TEST_CASE("chosen calls fail") {
  const Folder folder;
  const auto results = [&](const char* faults) {
    std::string text =
        run_probe(folder, std::string("CAJETA_SOFTGPU_FAIL=") + faults, "results").out;
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  };
  CHECK(results("cuStreamQuery:3") == "0 0 999 0 0 0 0 0 0 0 ");
  CHECK(results("cuStreamQuery:9+:OUT_OF_MEMORY") == "0 0 0 0 0 0 0 0 2 2 ");
  CHECK(results("cuStreamQuery:*:CUDA_ERROR_LAUNCH_FAILED") ==
        "719 719 719 719 719 719 719 719 719 719 ");
  // cuInit, cuDevicePrimaryCtxRetain, cuCtxSetCurrent and cuStreamCreate come first.
  CHECK(results("any:6:INVALID_VALUE,cuStreamQuery:4,cuStreamWaitEvent:1") ==
        "0 1 0 999 0 0 0 0 0 0 ");
}

TEST_CASE("device memory runs out, also by graphs") {
  const Folder folder;
  CHECK(run_probe(folder, "", "memory").out == "0\n0\n0\n0\n");
  CHECK(run_probe(folder, "CAJETA_SOFTGPU_MEMORY=1M", "memory").out == "0\n0\n2\n2\n");
  CHECK(run_probe(folder, "CAJETA_SOFTGPU_MEMORY=3M CAJETA_SOFTGPU_GRAPH_NODE_BYTES=128K", "memory")
            .out == "0\n0\n2\n0\n");
  CHECK(run_probe(folder, "CAJETA_SOFTGPU_MEMORY=2M CAJETA_SOFTGPU_GRAPH_NODE_BYTES=128K", "memory")
            .out == "0\n2\n0\n");
}

TEST_CASE("misuse is counted, reported or fatal") {
  const Folder folder;
  const std::string path = folder.file("counters");
  const std::string counted = "CAJETA_SOFTGPU_COUNTERS=" + path;
  const Run ignored = run_probe(folder, counted, "misuse");
  CHECK(ignored.err.empty());
  const std::string text = read_file(path);
  CHECK(counter(text, "misuse: bad free") == 1);
  CHECK(counter(text, "misuse: dead or foreign handle") == 3);
  CHECK(counter(text, "misuse: call in a host function") == 1);
  CHECK(counter(text, "misuse: broken capture") == 2);
  CHECK(counter(text, "misuse: leak") == 1);
  CHECK(counter(text, "misuse: stale graph") == 0);
  run_probe(folder, counted, "mixed");
  CHECK(read_file(path).find("misuse: bad free\":                0") != std::string::npos);
  const std::string reported = run_probe(folder, "CAJETA_SOFTGPU_MISUSE=report", "misuse").err;
  CHECK(reported.find("softgpu: misuse in cuMemFree_v2: bad free\n") == 0);
  CHECK(std::count(reported.begin(), reported.end(), '\n') == 7);
  const Run ended = run_probe(folder, counted + " CAJETA_SOFTGPU_MISUSE=abort", "misuse");
  CHECK(ended.err.find("softgpu: misuse in cuMemFree_v2: bad free\n") == 0);
  CHECK(counter(read_file(path), "cuEventCreate") == 0);
}

TEST_CASE("nothing works before cuInit or in a forked child") {
  const Folder folder;
  CHECK(run_probe(folder, "", "before-init").out == "3\n");
  CHECK(run_probe(folder, "", "fork").out == "7\n");
}

TEST_CASE("an entry that is not implemented says so once") {
  const Folder folder;
  const Run run = run_probe(folder, "", "unsupported");
  CHECK(run.out == "801\n801\n801\n");
  CHECK(run.err == "softgpu: cuMipmappedArrayCreate is not implemented\n");
}

TEST_CASE("a trace names arrays and their rows, and waits for them to go") {
  const Folder folder;
  const std::string path = folder.file("trace");
  const Run run =
      run_probe(folder, "CAJETA_SOFTGPU_ORDER=late CAJETA_SOFTGPU_TRACE=" + path, "array");
  CHECK(run.err.empty());
  const std::string trace = read_file(path);
  const std::size_t copied = trace.find(" copy 16x2x1 a1+0[0,1,0] -> a2+0\n");
  const std::size_t began = trace.find(" cuArrayDestroy ");
  const std::size_t done = trace.find(" done r1:1-2;w2:0-1\n");
  REQUIRE(copied != std::string::npos);
  REQUIRE(began != std::string::npos);
  REQUIRE(done != std::string::npos);
  CHECK((copied < began && began < done && done < trace.find("\nE ")));
}

TEST_CASE("a cost profile is spent by the host") {
  const Folder folder;
  const std::string linux_cost = run_probe(folder, "CAJETA_SOFTGPU_COSTS=linux", "cost").out;
  const std::string wsl2_cost = run_probe(folder, "CAJETA_SOFTGPU_COSTS=wsl2", "cost").out;
  CHECK(std::stol(linux_cost) >= 60);  // 100 times 0.6 us
  CHECK(std::stol(wsl2_cost) >= 300);  // 100 times 3 us
}
