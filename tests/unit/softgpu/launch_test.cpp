// SPDX-License-Identifier: Apache-2.0
// Launching kernels through every entry: results, arguments copied at the call, and each error a
// driver returns. Run under all order policies (meson.build).
#include <cuda.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"
#include "tests/unit/softgpu/test_data.h"

// The launch entries of CUDA 3 are tested too.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

extern "C" CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, unsigned, CUstream, void**, void**);

namespace {

class Launcher : public Session {
 public:
  Launcher() { REQUIRE_OK(cuModuleLoad(&module_, test_data_path("default.fatbin").c_str())); }

  CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    REQUIRE_OK(cuModuleGetFunction(&found, module_, name));
    return found;
  }

 private:
  CUmodule module_ = nullptr;
};

CUresult launch(CUfunction function, unsigned grid, unsigned block, void** params,
                CUstream stream = nullptr) {
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, params, nullptr);
}

std::vector<float> ramp(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * step;
  return values;
}

constexpr int kCount = 1000;

// Inputs and output of vector_add.
struct Addition {
  DeviceArray<float> a{ramp(kCount, 1)}, b{ramp(kCount, 2)}, c{kCount};
  int count = kCount;
  // For launches to streams that do not wait for the copies above.
  void settle() const { REQUIRE_OK(cuCtxSynchronize()); }
  std::vector<void*> params() { return {a.parameter(), b.parameter(), c.parameter(), &count}; }
  bool is_right() const { return c.values() == ramp(kCount, 3); }
};

}  // namespace

TEST_CASE("vector addition by parameter pointers", "[launch]") {
  const Launcher launcher;
  Addition addition;
  REQUIRE_OK(launch(launcher.function("vector_add"), 8, 128, addition.params().data()));
  REQUIRE_OK(cuCtxSynchronize());
  CHECK(addition.is_right());
}

TEST_CASE("vector addition by a packed buffer", "[launch]") {
  const Launcher launcher;
  Addition addition;
  struct {
    CUdeviceptr a, b, c;
    int count;  // the struct ends in padding: 32 bytes for 28
  } packed{addition.a.address(), addition.b.address(), addition.c.address(), kCount};
  std::size_t size = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  const CUfunction function = launcher.function("vector_add");
  REQUIRE_OK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
  std::memset(&packed, 0xee, sizeof(packed));
  CHECK(addition.is_right());

  size = 27;
  CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra) ==
        CUDA_ERROR_INVALID_VALUE);
  size = 28;
  extra[0] = reinterpret_cast<void*>(77);
  CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra) ==
        CUDA_ERROR_INVALID_VALUE);
  extra[0] = CU_LAUNCH_PARAM_END;
  CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("arguments are copied at the call", "[launch]") {
  const Launcher launcher;
  CUstream stream = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Addition addition;
  addition.settle();
  CUdeviceptr a = addition.a.address(), b = addition.b.address(), c = addition.c.address();
  int count = kCount;
  void* params[] = {&a, &b, &c, &count};
  REQUIRE_OK(launch(launcher.function("vector_add"), 8, 128, params, stream));
  a = b = c = 1;
  count = 0;
  params[0] = params[1] = nullptr;
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(addition.is_right());
  REQUIRE_OK(cuStreamDestroy(stream));
}

TEST_CASE("parameters of every alignment arrive", "[launch]") {
  const Launcher launcher;
  DeviceArray<double> out(5);
  char a = -5;
  double b = 2.25;
  short c = -300;
  struct {
    char first = 1;
    double second = 0.5;
    short third = 20;
  } d;
  long long e = 1ll << 40;
  void* params[] = {&a, &b, &c, &d, &e, out.parameter()};
  REQUIRE_OK(launch(launcher.function("mixed_parameters"), 1, 1, params));
  CHECK(out.values() == std::vector<double>{-5, 2.25, -300, 21.5, 1099511627776.0});
}

TEST_CASE("all launch entries run the kernel", "[launch]") {
  const Launcher launcher;
  const CUfunction function = launcher.function("vector_add");
  Addition addition;
  std::vector<void*> params = addition.params();
  CUstream stream = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  SECTION("cuLaunchKernel_ptsz") {
    REQUIRE_OK(
        cuLaunchKernel_ptsz(function, 8, 1, 1, 128, 1, 1, 0, nullptr, params.data(), nullptr));
  }
  SECTION("cuLaunchKernelEx") {
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    CUlaunchConfig config{};
    config.gridDimX = 8;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    REQUIRE_OK(cuLaunchKernelEx(&config, function, params.data(), nullptr));
    attributes[1].id = static_cast<CUlaunchAttributeID>(999);
    CHECK(cuLaunchKernelEx(&config, function, params.data(), nullptr) == CUDA_ERROR_INVALID_VALUE);
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[1].value.clusterDim = {2, 1, 1};
    CHECK(cuLaunchKernelEx(&config, function, params.data(), nullptr) ==
          CUDA_ERROR_INVALID_CLUSTER_SIZE);
    config.attrs = nullptr;
    CHECK(cuLaunchKernelEx(&config, function, params.data(), nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuLaunchKernelEx(nullptr, function, params.data(), nullptr) == CUDA_ERROR_INVALID_VALUE);
  }
  SECTION("cuLaunchKernelEx completes an event") {
    CUevent event = nullptr;
    REQUIRE_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    attribute.value.launchCompletionEvent.event = event;
    CUlaunchConfig config{8, 1, 1, 128, 1, 1, 0, stream, &attribute, 1};
    REQUIRE_OK(cuLaunchKernelEx(&config, function, params.data(), nullptr));
    REQUIRE_OK(cuEventSynchronize(event));
    REQUIRE_OK(cuEventDestroy(event));
  }
  SECTION("cuLaunchCooperativeKernel") {
    REQUIRE_OK(cuLaunchCooperativeKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, params.data()));
    CHECK(cuLaunchCooperativeKernel(function, 100000, 1, 1, 128, 1, 1, 0, stream, params.data()) ==
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  }
  SECTION("the entries of CUDA 3") {
    REQUIRE_OK(cuFuncSetBlockShape(function, 128, 1, 1));
    REQUIRE_OK(cuFuncSetSharedSize(function, 0));
    REQUIRE_OK(cuParamSetSize(function, 28));
    REQUIRE_OK(cuParamSetv(function, 0, addition.a.parameter(), 8));
    REQUIRE_OK(cuParamSetv(function, 8, addition.b.parameter(), 8));
    REQUIRE_OK(cuParamSetv(function, 16, addition.c.parameter(), 8));
    REQUIRE_OK(cuParamSeti(function, 24, kCount));
    CHECK(cuParamSeti(function, -1, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuFuncSetBlockShape(function, 0, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuLaunchGrid(function, 0, 1) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE_OK(cuLaunchGrid(function, 4, 1));
    REQUIRE_OK(cuLaunchGridAsync(function, 8, 1, stream));
  }
  REQUIRE_OK(cuCtxSynchronize());
  CHECK(addition.is_right());
  REQUIRE_OK(cuStreamDestroy(stream));
}

TEST_CASE("launches that a driver refuses", "[launch]") {
  const Launcher launcher;
  const CUfunction function = launcher.function("vector_add");
  Addition addition;
  std::vector<void*> params = addition.params();
  const auto shaped = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, 0, nullptr, params.data(), nullptr);
  };
  SECTION("handles") {
    CHECK(launch(nullptr, 1, 1, params.data()) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(launch(reinterpret_cast<CUfunction>(&addition), 1, 1, params.data()) ==
          CUDA_ERROR_INVALID_HANDLE);
    CHECK(launch(function, 1, 1, params.data(), reinterpret_cast<CUstream>(&addition)) ==
          CUDA_ERROR_INVALID_HANDLE);
  }
  SECTION("sizes of nothing") {
    CHECK(shaped(0, 1, 1, 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 0, 1, 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 1, 1, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  }
  SECTION("device limits") {
    CHECK(shaped(0x80000000u, 1, 1, 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 65536, 1, 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 1, 65536, 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 1, 1, 1025, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 1, 1, 1, 1, 65) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 1, 1, 33, 32, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shaped(1, 1, 1, 32, 32, 1) == CUDA_SUCCESS);
  }
  SECTION("the function's limits") {
    DeviceArray<int> out(65);
    void* one[] = {out.parameter()};
    const CUfunction bounded = launcher.function("bounded");
    CHECK(launch(bounded, 1, 65, one) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(launch(bounded, 1, 64, one) == CUDA_SUCCESS);
  }
  SECTION("shared memory without opting in") {
    const CUfunction reverse = launcher.function("reverse_block");
    std::vector<int> values(64);
    std::iota(values.begin(), values.end(), 0);
    DeviceArray<int> data(values);
    void* one[] = {data.parameter()};
    const auto with_shared = [&](unsigned bytes) {
      return cuLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, bytes, nullptr, one, nullptr);
    };
    CHECK(with_shared(49152 - 255) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE_OK(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
    REQUIRE_OK(with_shared(65536));
    std::vector<int> reversed(values.rbegin(), values.rend());
    CHECK(data.values() == reversed);
  }
  SECTION("arguments") {
    CHECK(launch(function, 1, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
    std::size_t size = 28;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params.data(), extra) ==
          CUDA_ERROR_INVALID_VALUE);
    params[1] = nullptr;
    CHECK(launch(function, 1, 1, params.data()) == CUDA_ERROR_INVALID_VALUE);
    CHECK(launch(launcher.function("nothing"), 1, 1, nullptr) == CUDA_SUCCESS);
  }
  SECTION("another context") {
    CUstream stream = nullptr;
    REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    const Session other;
    CHECK(launch(function, 1, 1, params.data()) == CUDA_ERROR_INVALID_HANDLE);
  }
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("a fault is sticky and ends with its context", "[launch]") {
  {
    const Launcher launcher;
    DeviceArray<int> out(1);
    void* params[] = {out.parameter()};
    const CUfunction nothing = launcher.function("nothing");
    REQUIRE_OK(launch(launcher.function("fault"), 1, 1, params));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(launch(nothing, 1, 1, nullptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CUmodule module = nullptr;
    CHECK(cuModuleLoad(&module, test_data_path("kernels.ptx").c_str()) ==
          CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  const Launcher launcher;
  REQUIRE_OK(launch(launcher.function("nothing"), 1, 1, nullptr));
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("unloading a module waits for its kernels", "[launch]") {
  const Session session;
  Addition addition;
  addition.settle();
  CUstream stream = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE_OK(cuModuleLoad(&module, test_data_path("default.fatbin").c_str()));
  REQUIRE_OK(cuModuleGetFunction(&function, module, "vector_add"));
  REQUIRE_OK(launch(function, 8, 128, addition.params().data(), stream));
  REQUIRE_OK(cuModuleUnload(module));
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  CHECK(addition.is_right());
  CHECK(launch(function, 8, 128, addition.params().data(), stream) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE_OK(cuStreamDestroy(stream));
}

TEST_CASE("device printf comes out when the host synchronises", "[launch]") {
  const Launcher launcher;
  int value = 12;
  void* params[] = {&value};
  std::fflush(stdout);
  const int kept = dup(STDOUT_FILENO);
  std::FILE* const captured = std::tmpfile();
  REQUIRE(captured != nullptr);
  dup2(fileno(captured), STDOUT_FILENO);
  const CUresult launched = launch(launcher.function("say"), 1, 2, params);
  const CUresult finished = cuCtxSynchronize();
  std::fflush(stdout);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  REQUIRE_OK(launched);
  REQUIRE_OK(finished);
  std::rewind(captured);
  char text[256] = "";
  const std::size_t length = std::fread(text, 1, sizeof(text) - 1, captured);
  std::fclose(captured);
  CHECK(std::string(text, length) == "value 12 of thread 0\nvalue 12 of thread 1\n");
}
