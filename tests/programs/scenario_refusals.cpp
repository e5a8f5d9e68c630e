// SPDX-License-Identifier: Apache-2.0
// Scenarios about launches that CUDA refuses at the call, each behind launches that are fine and
// wait: the code must be the driver's own, and the launches around it must run.
#include <cstring>

#include "tests/programs/scenario.h"

namespace scenario {
namespace {

void report(const char* what, CUresult result) {
  std::printf("%s %s\n", what, error_name(result));
}

struct Parameters {
  explicit Parameters(CUdeviceptr data) : data_(data) {}
  void** list() { return list_; }

 private:
  CUdeviceptr data_;
  unsigned multiply_ = 3, add_ = 1;
  int count_ = 64;
  void* list_[4] = {&data_, &multiply_, &add_, &count_};
};

CUresult launch_config(const CUlaunchConfig& config, CUfunction function, Parameters& parameters) {
  return cuLaunchKernelEx(&config, function, parameters.list(), nullptr);
}

CUlaunchConfig config_on(CUstream stream) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  return config;
}

// Parameters and packed buffers that are missing, doubled or of the wrong size.
void refused_parameters() {
  Device device;
  const CUfunction affine = device.function("affine"), empty = device.function("empty");
  Stream stream;
  Buffer x;
  Parameters parameters(x.at());
  struct {
    CUdeviceptr data;
    unsigned multiply = 3, add = 1;
    int count = 64;
  } packed{x.at()};
  std::size_t right = 20, small = 12;
  void* good[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &right,
                  CU_LAUNCH_PARAM_END};
  void* short_buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                          &small, CU_LAUNCH_PARAM_END};
  void* no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_END};
  for (unsigned round = 0; round < 5; ++round) {
    const auto fine = [&] {
      for (unsigned i = 0; i < 3; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    };
    const auto raw = [&](CUfunction function, void** list, void** extra) {
      return cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, list, extra);
    };
    fine();
    report("none", raw(affine, nullptr, nullptr));
    fine();
    report("both", raw(affine, parameters.list(), good));
    report("short", raw(affine, nullptr, short_buffer));
    report("no size", raw(affine, nullptr, no_size));
    fine();
    report("good", raw(affine, nullptr, good));
    report("none wanted", raw(empty, nullptr, nullptr));
    report("no configuration", cuLaunchKernelEx(nullptr, affine, parameters.list(), nullptr));
    CUlaunchConfig config = config_on(stream);
    config.numAttrs = 1;
    report("no attributes", launch_config(config, affine, parameters));
    CUlaunchAttribute attribute{};
    attribute.id = static_cast<CUlaunchAttributeID>(999);
    config.attrs = &attribute;
    report("unknown attribute", launch_config(config, affine, parameters));
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {2, 1, 1};
    report("cluster", launch_config(config, affine, parameters));
    fine();
    report(
        "grid too large for cooperation",
        cuLaunchCooperativeKernel(affine, 1 << 20, 1, 1, 64, 1, 1, 0, stream, parameters.list()));
    fine();
    print("x", x);
  }
}

// Handles of another context, and dead ones.
void refused_handles() {
  Device first;
  const CUfunction first_affine = first.function("affine");
  Stream first_stream;
  Buffer x;
  for (unsigned i = 0; i < 3; ++i) CHECK(launch(first_affine, {}, first_stream, x.at(), 3U, i, 64));
  Device second;
  const CUfunction second_affine = second.function("affine");
  CUmodule gone = nullptr;
  CUstream dead = nullptr;
  {
    Stream second_stream;
    Buffer y;
    for (unsigned round = 0; round < 5; ++round) {
      const auto fine = [&] {
        for (unsigned i = 0; i < 3; ++i) {
          CHECK(launch(second_affine, {}, second_stream, y.at(), 3U, round + i, 64));
        }
      };
      fine();
      report("function of another context",
             launch(first_affine, {}, second_stream, y.at(), 3U, 1U, 64));
      report("again", launch(first_affine, {}, second_stream, y.at(), 3U, 1U, 64));
      fine();
      report("stream of another context",
             launch(second_affine, {}, first_stream, y.at(), 3U, 1U, 64));
      report("both of another context", launch(first_affine, {}, first_stream, x.at(), 3U, 1U, 64));
      CHECK(cuModuleLoadData(&gone, kVariantPtx));
      const CUfunction gone_affine = function_of(gone, "affine");
      fine();
      CHECK(launch(gone_affine, {}, second_stream, y.at(), 3U, round, 64));
      CHECK(cuModuleUnload(gone));
      report("unloaded function", launch(gone_affine, {}, second_stream, y.at(), 3U, 1U, 64));
      CHECK(cuStreamCreate(&dead, CU_STREAM_NON_BLOCKING));
      CHECK(launch(second_affine, {}, dead, y.at(), 3U, round, 64));
      CHECK(cuStreamSynchronize(dead));
      CHECK(cuStreamDestroy(dead));
      fine();
      report("destroyed stream", launch(second_affine, {}, dead, y.at(), 3U, 1U, 64));
      report("no stream",
             launch(second_affine, {}, reinterpret_cast<CUstream>(0x3), y.at(), 3U, 1U, 64));
      report("no function",
             launch(reinterpret_cast<CUfunction>(0x40), {}, second_stream, y.at(), 3U, 1U, 64));
      fine();
      print("y", y);
    }
    CHECK(cuCtxSetCurrent(nullptr));
    report("no context", launch(second_affine, {}, second_stream, y.at(), 3U, 1U, 64));
    report("no context, stream 0", launch(second_affine, {}, nullptr, y.at(), 3U, 1U, 64));
    CHECK(cuCtxSetCurrent(second.context()));
  }
  CHECK(cuCtxSetCurrent(first.context()));
  print("x", x);
}

// The driver has not been initialised: every call says so, and none of ours may do it instead.
void calls_before_init() {
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  int version = 0, count = 0;
  report("launch", launch(reinterpret_cast<CUfunction>(0x40), {}, nullptr));
  report("device", cuDeviceGet(&device, 0));
  report("count", cuDeviceGetCount(&count));
  report("context", cuCtxCreate(&context, nullptr, 0, 0));
  report("retain", cuDevicePrimaryCtxRetain(&context, 0));
  report("stream", cuStreamCreate(&stream, 0));
  report("synchronize", cuCtxSynchronize());
  report("memory", cuMemAlloc(&memory, 64));
  report("version", cuDriverGetVersion(&version));
  report("current", cuCtxGetCurrent(&context));
  report("init", cuInit(1));
  report("init", cuInit(0));
  Device works;
  const CUfunction affine = works.function("affine");
  Stream own;
  Buffer x;
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(launch(affine, {}, own, x.at(), 3U, round + i, 64));
    }
    print("x", x);
  }
}

}  // namespace

const std::vector<Scenario> kRefusalScenarios = {
    {"refused_parameters", refused_parameters},
    {"refused_handles", refused_handles},
    {"calls_before_init", calls_before_init},
};

}  // namespace scenario
