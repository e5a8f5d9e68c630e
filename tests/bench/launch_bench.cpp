// SPDX-License-Identifier: Apache-2.0
// Host costs of launches, replays and forwarded calls, in nanoseconds; run bare or with the preload
// library, it cannot tell which. Every round measures every case once, so that a slow moment of the
// machine hits all of them. Prints one JSON object: case -> list of one number per round.
// tests/bench/run pairs processes and prints ratios.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "tests/bench/arguments.h"
#include "tests/bench/count_allocations.h"

extern "C" const char kBenchPtx[];

namespace {

constexpr std::size_t kLaunches = 600;
constexpr int kCalls = 2000;
constexpr int kWarmUp = 8;  // rounds until every sequence is recorded and every cache is warm

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "launch_bench: %s: %s\n", what, name != nullptr ? name : "unknown error");
  std::exit(2);
}
#define CHECK(call) check(call, #call)

using Clock = std::chrono::steady_clock;
double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

using Launch = decltype(&cuLaunchKernel);

// The launches of one case, on a stream of its own so that it has a recording of its own.
class Launches {
 public:
  Launches(CUfunction function, CUdeviceptr memory, std::size_t changed)
      : function_(function), changed_(changed) {
    arguments_.out = arguments_.a = arguments_.b = memory;
  }

  // Issues all launches; `changed_` of them, evenly spread, have one argument that differs from the
  // last round.
  void issue(Launch launch, CUstream stream) {
    ++round_;
    const std::size_t every = changed_ > 0 ? kLaunches / changed_ : 0;
    std::size_t until_change = every;
    for (std::size_t i = 0; i < kLaunches; ++i) {
      arguments_.c = i;
      if (every > 0 && --until_change == 0) {
        arguments_.c = i + (round_ << 16);
        until_change = every;
      }
      if (launch(function_, 1, 1, 1, 32, 1, 1, 0, stream, arguments_.list, nullptr) != CUDA_SUCCESS)
        std::abort();
    }
  }
  std::size_t changed() const { return changed_; }

 private:
  CUfunction function_;
  std::size_t changed_;
  std::uint64_t round_ = 0;
  bench::Arguments arguments_;
};

// The same launches as a graph that somebody wrote by hand and patches where they know it is
// needed.
class HandWritten {
 public:
  HandWritten(CUfunction function, CUdeviceptr memory, std::size_t changed) : changed_(changed) {
    arguments_.out = arguments_.a = arguments_.b = memory;
    parameters_.func = function;
    parameters_.gridDimX = parameters_.gridDimY = parameters_.gridDimZ = 1;
    parameters_.blockDimX = 32;
    parameters_.blockDimY = parameters_.blockDimZ = 1;
    parameters_.kernelParams = arguments_.list;
    CHECK(cuGraphCreate(&graph_, 0));
    CUgraphNode previous = nullptr;
    for (std::size_t i = 0; i < kLaunches; ++i) {
      arguments_.c = i;
      CUgraphNode node = nullptr;
      CHECK(cuGraphAddKernelNode(&node, graph_, &previous, i > 0 ? 1 : 0, &parameters_));
      nodes_.push_back(previous = node);
    }
    CHECK(cuGraphInstantiate(&exec_, graph_, 0));
  }

  void issue(CUstream stream) {
    ++round_;
    const std::size_t every = changed_ > 0 ? kLaunches / changed_ : kLaunches + 1;
    for (std::size_t i = every - 1; i < kLaunches; i += every) {
      arguments_.c = i + (round_ << 16);
      if (cuGraphExecKernelNodeSetParams(exec_, nodes_[i], &parameters_) != CUDA_SUCCESS)
        std::abort();
    }
    if (cuGraphLaunch(exec_, stream) != CUDA_SUCCESS) std::abort();
  }

 private:
  std::size_t changed_;
  std::uint64_t round_ = 0;
  bench::Arguments arguments_;
  CUDA_KERNEL_NODE_PARAMS parameters_{};
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::vector<CUgraphNode> nodes_;
};

class Bench {
 public:
  Bench() {
    CHECK(cuInit(0));
    CUdevice device = 0;
    CHECK(cuDeviceGet(&device, 0));
    CUcontext context = nullptr;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module_, kBenchPtx));
    CHECK(cuModuleGetFunction(&function_, module_, "wide"));
    // Stream 0 is one stream: another function keeps its two sequences apart.
    CHECK(cuModuleGetFunction(&other_function_, module_, "wide_again"));
    CHECK(cuMemAlloc(&memory_, 4096));
    CHECK(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    CHECK(cuStreamCreate(&call_stream_, CU_STREAM_NON_BLOCKING));
    for (const std::size_t changed : {std::size_t{0}, kLaunches}) {
      streamed_.push_back({std::make_unique<Launches>(function_, memory_, changed), stream()});
      const CUfunction legacy = changed > 0 ? other_function_ : function_;
      legacy_.push_back({std::make_unique<Launches>(legacy, memory_, changed), nullptr});
      bounded_.push_back({std::make_unique<Launches>(function_, memory_, changed), nullptr});
      bounds_.push_back(std::make_unique<bench::LowerBound>(kLaunches));
    }
    for (const std::size_t changed : {std::size_t{0}, kLaunches / 10, kLaunches}) {
      replayed_.push_back({std::make_unique<Launches>(function_, memory_, changed), stream()});
      by_hand_.push_back({std::make_unique<HandWritten>(function_, memory_, changed), stream()});
    }
  }

  void round() {
    measure_launches();
    measure_replays();
    measure_calls();
  }
  void forget() { samples_.clear(); }
  void print() const {
    std::printf("{\n");
    const char* separator = "";
    for (const auto& [name, values] : samples_) {
      std::printf("%s\"%s\": [", separator, name.c_str());
      for (std::size_t i = 0; i < values.size(); ++i)
        std::printf("%s%.4f", i > 0 ? ", " : "", values[i]);
      std::printf("]");
      separator = ",\n";
    }
    std::printf("\n}\n");
  }

 private:
  template <typename T>
  struct OnStream {
    std::unique_ptr<T> what;
    CUstream stream;
  };

  CUstream stream() {
    CUstream stream = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }

  void note(const std::string& name, double value) { samples_[name].push_back(value); }

  // The calls alone: what submits them comes after the clock is read.
  void measure_issue(const char* name, OnStream<Launches>& launches, Launch launch) {
    const std::string suffix = launches.what->changed() > 0 ? "_1_changed" : "_0_changed";
    const std::uint64_t allocations = bench::allocations();
    const auto start = Clock::now();
    launches.what->issue(launch, launches.stream);
    const double elapsed = nanoseconds_since(start);
    const std::uint64_t allocated = bench::allocations() - allocations;  // before note() allocates
    note(name + suffix, elapsed / kLaunches);
    note(name + suffix + "_allocations", static_cast<double>(allocated) / kLaunches);
    CHECK(cuStreamSynchronize(launches.stream));
  }

  void measure_launches() {
    for (auto& launches : streamed_) measure_issue("launch", launches, &cuLaunchKernel);
    for (auto& launches : legacy_) measure_issue("launch_legacy", launches, &cuLaunchKernel);
    for (std::size_t i = 0; i < bounded_.size(); ++i) {
      bench::g_lower_bound = bounds_[i].get();
      bench::g_lower_bound->rewind();
      measure_issue("lower_bound", bounded_[i], &bench::LowerBound::launch);
      measure_issue("lower_bound_one_record", bounded_[i], &bench::LowerBound::launch_one_record);
    }
  }

  // From the first launch until the device is done.
  void measure_replays() {
    for (auto& launches : replayed_) {
      const auto start = Clock::now();
      launches.what->issue(&cuLaunchKernel, launches.stream);
      CHECK(cuStreamSynchronize(launches.stream));
      note("launches_600_patches_" + std::to_string(launches.what->changed()),
           nanoseconds_since(start));
    }
    constexpr std::size_t kPatches[] = {0, kLaunches / 10, kLaunches};
    for (std::size_t i = 0; i < by_hand_.size(); ++i) {
      const auto start = Clock::now();
      by_hand_[i].what->issue(by_hand_[i].stream);
      CHECK(cuStreamSynchronize(by_hand_[i].stream));
      note("graph_by_hand_patches_" + std::to_string(kPatches[i]), nanoseconds_since(start));
    }
  }

  template <typename Call>
  void measure_call(const char* name, Call call) {
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) {
      if (call() != CUDA_SUCCESS) std::abort();
    }
    note(name, nanoseconds_since(start) / kCalls);
  }

  void measure_calls() {
    measure_call("cuCtxGetDevice", [] {
      CUdevice device;
      return cuCtxGetDevice(&device);
    });
    measure_call("cuMemGetInfo", [] {
      std::size_t free_bytes, total_bytes;
      return cuMemGetInfo(&free_bytes, &total_bytes);
    });
    measure_call("cuEventQuery", [this] { return cuEventQuery(event_); });
    measure_call("cuStreamSynchronize_idle", [this] { return cuStreamSynchronize(call_stream_); });
  }

  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr, other_function_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUevent event_ = nullptr;
  CUstream call_stream_ = nullptr;
  std::vector<OnStream<Launches>> streamed_, legacy_, bounded_, replayed_;
  std::vector<OnStream<HandWritten>> by_hand_;
  std::vector<std::unique_ptr<bench::LowerBound>> bounds_;
  std::map<std::string, std::vector<double>> samples_;
};

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count == 2 ? std::atoi(arguments[1]) : 0;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: launch_bench ROUNDS\n");
    return 2;
  }
  Bench bench;
  for (int i = 0; i < kWarmUp; ++i) bench.round();
  bench.forget();
  for (int i = 0; i < rounds; ++i) bench.round();
  bench.print();
  return 0;
}
