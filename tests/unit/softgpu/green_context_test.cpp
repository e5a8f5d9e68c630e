// SPDX-License-Identifier: Apache-2.0
// Green contexts: resources and their rules, whose objects they use, which streams are theirs, and
// events of whole contexts.
#include <cuda.h>

#include <array>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"

namespace {

CUdevResource device_resource() {
  CUdevResource resource{};
  REQUIRE_OK(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  return resource;
}

// The primary context current, and a green one made from it.
class Green {
 public:
  Green() {
    REQUIRE_OK(cuInit(0));
    REQUIRE_OK(cuDevicePrimaryCtxRetain(&primary, 0));
    REQUIRE_OK(cuCtxSetCurrent(primary));
    CUdevResource all = device_resource(), part{};
    unsigned groups = 1;
    REQUIRE_OK(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 8));
    REQUIRE_OK(cuDevResourceGenerateDesc(&descriptor, &part, 1));
    REQUIRE_OK(cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    REQUIRE_OK(cuCtxFromGreenCtx(&context, green));
  }
  ~Green() {
    if (green != nullptr) cuGreenCtxDestroy(green);
    cuCtxSetCurrent(nullptr);
    cuDevicePrimaryCtxRelease(0);
  }
  Green(const Green&) = delete;
  Green& operator=(const Green&) = delete;

  CUstream stream() const {
    CUstream made = nullptr;
    REQUIRE_OK(cuGreenCtxStreamCreate(&made, green, CU_STREAM_NON_BLOCKING, 0));
    return made;
  }

  CUcontext primary = nullptr, context = nullptr;
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
};

// A word that holds back what waits for it.
class Gate {
 public:
  Gate() {
    REQUIRE_OK(cuMemAlloc(&word_, 4));
    close();
  }
  ~Gate() { cuMemFree(word_); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void close() const {
    REQUIRE_OK(cuMemsetD32(word_, 0, 1));
    REQUIRE_OK(cuStreamSynchronize(nullptr));
  }
  void hold(CUstream stream) const {
    REQUIRE_OK(cuStreamWaitValue32(stream, word_, 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  void open(CUstream stream) const { REQUIRE_OK(cuStreamWriteValue32(stream, word_, 1, 0)); }

 private:
  CUdeviceptr word_ = 0;
};

CUevent new_event() {
  CUevent event = nullptr;
  REQUIRE_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

}  // namespace

TEST_CASE("multiprocessors are split into equal groups and a rest") {
  REQUIRE_OK(cuInit(0));
  const CUdevResource all = device_resource();
  int count = 0;
  REQUIRE_OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  const auto whole = static_cast<unsigned>(count);
  CHECK(all.sm.smCount == whole);
  CHECK(all.sm.minSmPartitionSize == 4);  // compute capability 8.0
  CHECK(all.sm.smCoscheduledAlignment == 2);
  unsigned groups = 0;
  REQUIRE_OK(cuDevSmResourceSplitByCount(nullptr, &groups, &all, nullptr, 0, 7));
  CHECK(groups == whole / 8);
  std::array<CUdevResource, 3> parts{};
  CUdevResource rest{};
  groups = 3;
  REQUIRE_OK(cuDevSmResourceSplitByCount(parts.data(), &groups, &all, &rest, 0, 7));
  CHECK(groups == 3);
  for (const CUdevResource& part : parts) CHECK(part.sm.smCount == 8);
  CHECK(rest.sm.smCount == whole - 24);
  groups = 1;
  CHECK(cuDevSmResourceSplitByCount(parts.data(), &groups, &rest, nullptr, 0, 4) ==
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(cuDevSmResourceSplitByCount(parts.data(), &groups, &all, nullptr, 0, whole + 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplitByCount(parts.data(), &groups, &all, nullptr, 4, 4) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevSmResourceSplitByCount(parts.data(), nullptr, &all, nullptr, 0, 4) ==
        CUDA_ERROR_INVALID_VALUE);
  CUdevResource none{};
  CHECK(cuDevSmResourceSplitByCount(parts.data(), &groups, &none, nullptr, 0, 4) ==
        CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

TEST_CASE("a descriptor takes groups of one split only") {
  REQUIRE_OK(cuInit(0));
  CUdevResource all = device_resource();
  std::array<CUdevResource, 2> parts{}, others{};
  unsigned groups = 2;
  REQUIRE_OK(cuDevSmResourceSplitByCount(parts.data(), &groups, &all, nullptr, 0, 8));
  REQUIRE_OK(cuDevSmResourceSplitByCount(others.data(), &groups, &all, nullptr, 0, 8));
  CUdevResourceDesc descriptor = nullptr;
  CHECK(cuDevResourceGenerateDesc(&descriptor, parts.data(), 2) == CUDA_SUCCESS);
  CUgreenCtx green = nullptr;
  REQUIRE_OK(cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CUdevResource given{};
  REQUIRE_OK(cuGreenCtxGetDevResource(green, &given, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(given.sm.smCount == 16);
  REQUIRE_OK(cuGreenCtxDestroy(green));
  parts[1] = others[1];
  CHECK(cuDevResourceGenerateDesc(&descriptor, parts.data(), 2) ==
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(cuDevResourceGenerateDesc(&descriptor, parts.data(), 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDevResourceGenerateDesc(nullptr, parts.data(), 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceGetDevResource(7, &given, CU_DEV_RESOURCE_TYPE_SM) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGetDevResource(0, &given, CU_DEV_RESOURCE_TYPE_INVALID) ==
        CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

TEST_CASE("a green context keeps the primary one and is refused elsewhere") {
  Green world;
  CUgreenCtx other = nullptr;
  CHECK(cuGreenCtxCreate(&other, world.descriptor, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGreenCtxCreate(&other, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(world.context != world.primary);
  unsigned long long id = 0, again = 0;
  REQUIRE_OK(cuGreenCtxGetId(world.green, &id));
  CHECK(cuGreenCtxGetId(nullptr, &again) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE_OK(cuCtxSetCurrent(world.context));
  REQUIRE_OK(cuGreenCtxGetId(nullptr, &again));
  CHECK(id == again);
  CHECK(cuCtxDestroy(world.context) == CUDA_ERROR_INVALID_CONTEXT);
  unsigned flags = 0;
  int is_active = 0;
  REQUIRE_OK(cuDevicePrimaryCtxRelease(0));
  REQUIRE_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
  CHECK(is_active == 1);
  REQUIRE_OK(cuGreenCtxDestroy(world.green));
  CHECK(cuGreenCtxDestroy(world.green) == CUDA_ERROR_INVALID_CONTEXT);
  world.green = nullptr;
  REQUIRE_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
  CHECK(is_active == 0);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE_OK(cuDevicePrimaryCtxRetain(&world.primary, 0));  // for the destructor
}

TEST_CASE("streams know their green context") {
  Green world;
  CUstream stream = world.stream(), blocking = nullptr, plain = nullptr;
  REQUIRE_OK(cuStreamCreate(&plain, CU_STREAM_DEFAULT));
  CUgreenCtx green = world.green;
  REQUIRE_OK(cuStreamGetGreenCtx(plain, &green));
  CHECK(green == nullptr);
  CHECK(cuGreenCtxStreamCreate(&blocking, world.green, CU_STREAM_DEFAULT, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CUcontext context = nullptr;
  REQUIRE_OK(cuStreamGetCtx(stream, &context));
  CHECK(context == world.context);
  REQUIRE_OK(cuStreamGetCtx_v2(stream, &context, &green));
  CHECK(context == world.primary);
  CHECK(green == world.green);
  REQUIRE_OK(cuCtxSetCurrent(world.context));
  REQUIRE_OK(cuStreamGetGreenCtx(nullptr, &green));
  CHECK(green == world.green);
  CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  REQUIRE_OK(cuStreamGetGreenCtx(blocking, &green));
  CHECK(green == world.green);
  REQUIRE_OK(cuStreamDestroy(stream));
  REQUIRE_OK(cuGreenCtxDestroy(world.green));
  world.green = nullptr;
  unsigned flags = 0;
  CHECK(cuStreamGetFlags(blocking, &flags) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuStreamDestroy(blocking) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE_OK(cuStreamDestroy(plain));
}

TEST_CASE("the primary context waits for its green ones, and a green one for itself") {
  Green world;
  const Gate gate;
  const CUstream stream = world.stream();
  gate.hold(stream);
  gate.open(nullptr);
  REQUIRE_OK(cuCtxSynchronize_v2(world.primary));
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  gate.close();
  CUstream plain = nullptr;
  REQUIRE_OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  gate.hold(plain);
  REQUIRE_OK(cuCtxSynchronize_v2(world.context));  // would hang if it waited for `plain`
  CHECK(cuStreamQuery(plain) == CUDA_ERROR_NOT_READY);
  gate.open(stream);
  REQUIRE_OK(cuStreamSynchronize(plain));
  REQUIRE_OK(cuStreamDestroy(plain));
}

TEST_CASE("an event of a context covers what was submitted to it and holds back what comes") {
  Green world;
  const Gate gate;
  const CUstream inner = world.stream();
  CUstream outer = nullptr, free_stream = nullptr;
  REQUIRE_OK(cuStreamCreate(&outer, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
  const CUevent of_green = new_event(), of_primary = new_event(), empty = new_event();
  gate.hold(outer);
  REQUIRE_OK(cuGreenCtxRecordEvent(world.green, of_green));
  REQUIRE_OK(cuCtxRecordEvent(world.primary, of_primary));
  REQUIRE_OK(cuEventSynchronize(of_green));  // `outer` is not of the green context
  CHECK(cuEventQuery(of_primary) == CUDA_ERROR_NOT_READY);
  // From here on the green context waits for what is held.
  REQUIRE_OK(cuGreenCtxWaitEvent(world.green, of_primary));
  REQUIRE_OK(cuEventRecord(empty, inner));
  CHECK(cuEventQuery(empty) == CUDA_ERROR_NOT_READY);
  const CUstream later = world.stream();  // made behind the wait
  REQUIRE_OK(cuEventRecord(empty, later));
  CHECK(cuEventQuery(empty) == CUDA_ERROR_NOT_READY);
  gate.open(free_stream);  // not held: it is the primary context's
  REQUIRE_OK(cuEventSynchronize(empty));
  CHECK(cuEventQuery(of_primary) == CUDA_SUCCESS);
  // The other way round: the primary context's wait holds its green ones too.
  gate.close();
  gate.hold(outer);
  REQUIRE_OK(cuEventRecord(of_primary, outer));
  gate.open(free_stream);
  REQUIRE_OK(cuCtxWaitEvent(world.primary, of_primary));
  REQUIRE_OK(cuEventRecord(empty, inner));
  REQUIRE_OK(cuEventSynchronize(empty));
  CHECK(cuStreamQuery(outer) == CUDA_SUCCESS);
  for (const CUevent event : {of_green, of_primary, empty}) REQUIRE_OK(cuEventDestroy(event));
  for (const CUstream stream : {inner, outer, free_stream, later}) {
    REQUIRE_OK(cuStreamDestroy(stream));
  }
}

TEST_CASE("events of a context refuse foreign events and captures") {
  Green world;
  const CUevent ours = new_event();
  CHECK(cuCtxRecordEvent(nullptr, ours) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxRecordEvent(world.primary, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuCtxWaitEvent(world.primary, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  {
    Session other;
    const CUevent theirs = new_event();
    CHECK(cuCtxRecordEvent(world.primary, theirs) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuCtxWaitEvent(world.primary, theirs) == CUDA_SUCCESS);
  }
  REQUIRE_OK(cuCtxSetCurrent(world.primary));
  const CUstream stream = world.stream();
  CUgraph graph = nullptr;
  REQUIRE_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuCtxRecordEvent(world.primary, ours) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  REQUIRE_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuGreenCtxWaitEvent(world.green, ours) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  REQUIRE_OK(cuEventDestroy(ours));
  REQUIRE_OK(cuStreamDestroy(stream));
}

TEST_CASE("a reset of the primary context ends its green ones") {
  Green world;
  const CUstream stream = world.stream();
  REQUIRE_OK(cuDevicePrimaryCtxReset(0));
  CUcontext context = nullptr;
  CHECK(cuCtxFromGreenCtx(&context, world.green) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuGreenCtxDestroy(world.green) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuGreenCtxDestroy(world.green) == CUDA_ERROR_INVALID_CONTEXT);
  world.green = nullptr;
}
