// SPDX-License-Identifier: Apache-2.0
// What the driver itself costs the host, in nanoseconds: launches, graph launches, patches (idle
// and while the graph runs), launches right after patches, and the memory of an executable graph.
// Driver API only, single thread. Prints one JSON object: measurement -> {min, median, samples}.
// Meant for NVIDIA's driver; on softgpu it shows that the program works and its numbers are
// softgpu's.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

extern "C" const char kMeasurePtx[];

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "measure: %s: %s\n", what, name != nullptr ? name : "unknown error");
  std::exit(2);
}
#define CHECK(call) check(call, #call)

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

struct Arguments {
  CUdeviceptr out = 0, a = 0, b = 0;
  std::uint64_t c = 1;
  std::int64_t d = 2;
  double e = 3;
  unsigned f = 4;
  int count = 32;
  void* list[8] = {&out, &a, &b, &c, &d, &e, &f, &count};

  explicit Arguments(CUdeviceptr memory) : out(memory), a(memory), b(memory) {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
};

// A chain of kernel nodes and its executable graph.
class Chain {
 public:
  Chain(CUfunction function, CUdeviceptr memory, std::size_t nodes, std::int64_t steps)
      : arguments_(memory) {
    arguments_.d = steps;
    parameters_.func = function;
    parameters_.gridDimX = parameters_.gridDimY = parameters_.gridDimZ = 1;
    parameters_.blockDimX = 32;
    parameters_.blockDimY = parameters_.blockDimZ = 1;
    parameters_.kernelParams = arguments_.list;
    CHECK(cuGraphCreate(&graph_, 0));
    for (std::size_t i = 0; i < nodes; ++i) {
      CUgraphNode node = nullptr;
      CHECK(cuGraphAddKernelNode(&node, graph_, i > 0 ? &nodes_.back() : nullptr, i > 0 ? 1 : 0,
                                 &parameters_));
      nodes_.push_back(node);
    }
    CHECK(cuGraphInstantiate(&exec_, graph_, 0));
  }
  ~Chain() {
    CHECK(cuGraphExecDestroy(exec_));
    CHECK(cuGraphDestroy(graph_));
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  void launch(CUstream stream) { CHECK(cuGraphLaunch(exec_, stream)); }
  // Gives `count` nodes, evenly spread, a new argument.
  void patch(std::size_t count) {
    ++arguments_.c;
    const std::size_t every = nodes_.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(cuGraphExecKernelNodeSetParams(exec_, nodes_[i * every], &parameters_));
    }
  }

 private:
  Arguments arguments_;
  CUDA_KERNEL_NODE_PARAMS parameters_{};
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::vector<CUgraphNode> nodes_;
};

std::size_t resident_bytes() {
  long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const int fields = std::fscanf(file, "%ld %ld", &pages, &resident);
  std::fclose(file);
  return fields == 2 ? static_cast<std::size_t>(resident) * 4096 : 0;
}

class Measurement {
 public:
  Measurement(int repeats, std::int64_t busy_steps) : repeats_(repeats), busy_steps_(busy_steps) {
    CHECK(cuInit(0));
    CUdevice device = 0;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(device_name_, sizeof device_name_, device));
    CHECK(cuDriverGetVersion(&driver_version_));
    CUcontext context = nullptr;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kMeasurePtx));
    CHECK(cuModuleGetFunction(&wide_, module, "wide"));
    CHECK(cuModuleGetFunction(&busy_, module, "busy"));
    CHECK(cuMemAlloc(&memory_, 1 << 16));
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }

  void launches() {
    Arguments arguments(memory_);
    constexpr int kBatch =
        500;  // under the 1,024 launches after which a driver makes the host wait
    for (const CUstream stream : {stream_, CUstream{nullptr}}) {
      for (int repeat = -2; repeat < repeats_; ++repeat) {
        const auto start = Clock::now();
        for (int i = 0; i < kBatch; ++i) {
          ++arguments.c;
          CHECK(cuLaunchKernel(wide_, 1, 1, 1, 32, 1, 1, 0, stream, arguments.list, nullptr));
        }
        note(stream != nullptr ? "launch" : "launch_legacy_stream", repeat,
             nanoseconds_since(start) / kBatch);
        CHECK(cuStreamSynchronize(stream));
      }
    }
  }

  void graph_launches() {
    for (const std::size_t nodes : {10, 100, 1000}) {
      Chain chain(wide_, memory_, nodes, 0);
      for (int repeat = -2; repeat < repeats_; ++repeat) {
        const auto start = Clock::now();
        chain.launch(stream_);
        note("graph_launch_" + std::to_string(nodes) + "_nodes", repeat, nanoseconds_since(start));
        CHECK(cuStreamSynchronize(stream_));
        note("graph_launch_and_wait_" + std::to_string(nodes) + "_nodes", repeat,
             nanoseconds_since(start));
      }
    }
  }

  // Patches of a graph of 1,000 nodes, and what the next launch costs.
  void patches() {
    for (const bool in_flight : {false, true}) {
      Chain chain(in_flight ? busy_ : wide_, memory_, 1000, busy_steps_);
      for (const std::size_t count : {0, 1, 10, 100, 1000}) {
        for (int repeat = -2; repeat < repeats_; ++repeat)
          patch_once(chain, count, in_flight, repeat);
      }
    }
  }

  void memory() {
    constexpr std::size_t kNodes = 1000, kExecs = 8;
    std::size_t free_before = 0, free_after = 0, total = 0;
    CHECK(cuMemGetInfo(&free_before, &total));
    const std::size_t resident_before = resident_bytes();
    std::vector<std::unique_ptr<Chain>> chains;
    for (std::size_t i = 0; i < kExecs; ++i) {
      chains.push_back(std::make_unique<Chain>(wide_, memory_, kNodes, 0));
      chains.back()->launch(stream_);
    }
    CHECK(cuStreamSynchronize(stream_));
    CHECK(cuMemGetInfo(&free_after, &total));
    const double nodes = kNodes * kExecs;
    note("device_bytes_per_node", 0,
         (static_cast<double>(free_before) - static_cast<double>(free_after)) / nodes);
    note("host_bytes_per_node", 0,
         (static_cast<double>(resident_bytes()) - static_cast<double>(resident_before)) / nodes);
  }

  void print() {
    std::printf("{\n\"device\": \"%s\",\n\"driver_version\": %d,\n\"measurements\": {\n",
                device_name_, driver_version_);
    const char* separator = "";
    for (auto& [name, values] : samples_) {
      std::sort(values.begin(), values.end());
      std::printf("%s\"%s\": {\"min\": %.1f, \"median\": %.1f, \"samples\": %zu}", separator,
                  name.c_str(), values.front(), values[values.size() / 2], values.size());
      separator = ",\n";
    }
    std::printf("\n}\n}\n");
  }

 private:
  // The first two repeats are warm-up.
  void note(const std::string& name, int repeat, double value) {
    if (repeat >= 0) samples_[name].push_back(value);
  }

  void patch_once(Chain& chain, std::size_t count, bool in_flight, int repeat) {
    const std::string suffix = "_" + std::to_string(count) + (in_flight ? "_in_flight" : "_idle");
    if (in_flight) chain.launch(stream_);
    if (count > 0) {
      const auto start = Clock::now();
      chain.patch(count);
      note("patch" + suffix, repeat, nanoseconds_since(start));
    }
    // Was the graph really still running when it had been patched?
    if (in_flight && count > 0) {
      note("still_running_after_patch_" + std::to_string(count), repeat,
           cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY ? 1 : 0);
    }
    const auto start = Clock::now();
    chain.launch(stream_);
    note("launch_after_patch" + suffix, repeat, nanoseconds_since(start));
    CHECK(cuStreamSynchronize(stream_));
    note("launch_after_patch_and_wait" + suffix, repeat, nanoseconds_since(start));
  }

  int repeats_;
  std::int64_t busy_steps_;
  char device_name_[128] = "";
  int driver_version_ = 0;
  CUfunction wide_ = nullptr, busy_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUstream stream_ = nullptr;
  std::map<std::string, std::vector<double>> samples_;
};

}  // namespace

int main(int count, char** arguments) {
  const bool quick = count == 2 && std::strcmp(arguments[1], "--quick") == 0;
  if (count > 1 && !quick) {
    std::fprintf(stderr, "usage: measure [--quick]\n");
    return 2;
  }
  // The busy kernel takes some ten microseconds on a GPU: 1,000 of them outlast 1,000 patches.
  Measurement measurement(quick ? 2 : 50, quick ? 4 : 4000);
  measurement.launches();
  measurement.graph_launches();
  measurement.patches();
  measurement.memory();
  measurement.print();
  return 0;
}
