// SPDX-License-Identifier: Apache-2.0
// Devices, contexts of both kinds, and the stack of each thread.
#include <cuda.h>

#include <cstring>
#include <string>
#include <thread>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"

extern "C" CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);

namespace {

CUcontext current() {
  CUcontext context = nullptr;
  REQUIRE_OK(cuCtxGetCurrent(&context));
  return context;
}

// Leaves the calling thread without contexts.
class EmptyStack {
 public:
  EmptyStack() {
    REQUIRE_OK(cuInit(0));
    while (cuCtxPopCurrent(nullptr) == CUDA_SUCCESS) {
    }
  }
  ~EmptyStack() {
    while (cuCtxPopCurrent(nullptr) == CUDA_SUCCESS) {
    }
  }
};

}  // namespace

TEST_CASE("devices answer and refuse ordinals that do not exist") {
  REQUIRE_OK(cuInit(0));
  CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
  int count = 0;
  REQUIRE_OK(cuDeviceGetCount(&count));
  REQUIRE(count == 1);
  CUdevice device = -1;
  REQUIRE_OK(cuDeviceGet(&device, 0));
  CHECK(cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGet(&device, -1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGetCount(nullptr) == CUDA_ERROR_INVALID_VALUE);
  char name[64] = {};
  REQUIRE_OK(cuDeviceGetName(name, sizeof name, device));
  CHECK(std::strlen(name) > 0);
  std::size_t bytes = 0;
  REQUIRE_OK(cuDeviceTotalMem(&bytes, device));
  CHECK(bytes > 0);
  char bus[32] = {};
  REQUIRE_OK(cuDeviceGetPCIBusId(bus, sizeof bus, device));
  CUdevice found = -1;
  REQUIRE_OK(cuDeviceGetByPCIBusId(&found, bus));
  CHECK(found == device);
}

TEST_CASE("every public device attribute has an answer") {
  REQUIRE_OK(cuInit(0));
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = -77;
    INFO("attribute " << i);
    const CUresult code = cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), 0);
    CHECK(code == CUDA_SUCCESS);
    CHECK(value != -77);
  }
  int value = 0;
  CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CHECK(value == 8);
}

TEST_CASE("errors have names and sentences") {
  const char* text = nullptr;
  REQUIRE_OK(cuGetErrorName(CUDA_ERROR_NOT_READY, &text));
  CHECK(std::string(text) == "CUDA_ERROR_NOT_READY");
  REQUIRE_OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::string(text) == "out of memory");
  CHECK(cuGetErrorName(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST_CASE("contexts form a stack per thread") {
  EmptyStack empty;
  CHECK(current() == nullptr);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
  CUcontext first = nullptr, second = nullptr, popped = nullptr;
  REQUIRE_OK(cuCtxCreate_v2(&first, 0, 0));
  CHECK(current() == first);
  REQUIRE_OK(cuCtxCreate(&second, nullptr, CU_CTX_SCHED_SPIN, 0));
  CHECK(first != second);
  CHECK(current() == second);
  unsigned flags = 0;
  REQUIRE_OK(cuCtxGetFlags(&flags));
  CHECK(flags == CU_CTX_SCHED_SPIN);
  std::thread([] { CHECK(current() == nullptr); }).join();
  REQUIRE_OK(cuCtxPopCurrent(&popped));
  CHECK(popped == second);
  CHECK(current() == first);
  REQUIRE_OK(cuCtxSetCurrent(second));
  CHECK(current() == second);
  REQUIRE_OK(cuCtxSetCurrent(nullptr));
  CHECK(current() == nullptr);
  CHECK(cuCtxPopCurrent(&popped) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE_OK(cuCtxDestroy(first));
  REQUIRE_OK(cuCtxDestroy(second));
}

TEST_CASE("wrong flags and handles are refused") {
  EmptyStack empty;
  CUcontext context = nullptr;
  CHECK(cuCtxCreate_v2(&context, 3, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxCreate_v2(&context, 0x1000, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxCreate_v2(&context, 0, 5) == CUDA_ERROR_INVALID_DEVICE);
  int not_a_context = 0;
  const auto wild = reinterpret_cast<CUcontext>(&not_a_context);
  CHECK(cuCtxSetCurrent(wild) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxPushCurrent(wild) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxDestroy(wild) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxDestroy(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("a destroyed context is known as such to threads that still have it") {
  EmptyStack empty;
  CUcontext context = nullptr;
  REQUIRE_OK(cuCtxCreate_v2(&context, 0, 0));
  CUdeviceptr memory = 0;
  REQUIRE_OK(cuMemAlloc(&memory, 64));
  std::thread([context] { CHECK(cuCtxDestroy(context) == CUDA_SUCCESS); }).join();
  CHECK(cuMemFree(memory) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_CASE("the primary context is one handle with a count") {
  EmptyStack empty;
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 99;
  int is_active = 99;
  REQUIRE_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
  CHECK(is_active == 0);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE_OK(cuDevicePrimaryCtxRetain(&first, 0));
  REQUIRE_OK(cuDevicePrimaryCtxRetain(&second, 0));
  CHECK(first == second);
  REQUIRE_OK(cuDevicePrimaryCtxRelease(0));
  REQUIRE_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
  CHECK(is_active == 1);
  REQUIRE_OK(cuCtxSetCurrent(first));
  unsigned long long id = 0, later_id = 0;
  REQUIRE_OK(cuCtxGetId(first, &id));
  CUdeviceptr memory = 0;
  REQUIRE_OK(cuMemAlloc(&memory, 64));
  REQUIRE_OK(cuDevicePrimaryCtxRelease(0));
  CHECK(cuMemFree(memory) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE_OK(cuDevicePrimaryCtxRetain(&second, 0));
  CHECK(first == second);
  REQUIRE_OK(cuCtxGetId(second, &later_id));
  CHECK(id != later_id);
  CHECK(cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE);  // went with the old state
  CHECK(cuCtxDestroy(first) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE_OK(cuDevicePrimaryCtxReset(0));
  CHECK(cuMemAlloc(&memory, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE_OK(cuDevicePrimaryCtxRelease(0));
}

TEST_CASE("limits and configurations keep what was set") {
  Session session;
  REQUIRE_OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  std::size_t value = 0;
  REQUIRE_OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value == 4096);
  CHECK(cuCtxGetLimit(&value, static_cast<CUlimit>(77)) == CUDA_ERROR_UNSUPPORTED_LIMIT);
  REQUIRE_OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
  CUfunc_cache config{};
  REQUIRE_OK(cuCtxGetCacheConfig(&config));
  CHECK(config == CU_FUNC_CACHE_PREFER_L1);
  int least = 99, greatest = 99;
  REQUIRE_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  CHECK(least == 0);
  CHECK(greatest < least);
  unsigned version = 0;
  REQUIRE_OK(cuCtxGetApiVersion(nullptr, &version));
  CHECK(version >= 3020);
}
