// SPDX-License-Identifier: Apache-2.0
// A small client that process_test runs under different environments. Prints what it saw, one word
// or number a line.
#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void require(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "probe: %s returned %d\n", what, static_cast<int>(code));
  std::exit(1);
}
#define REQUIRE_OK(call) require(call, #call)

CUstream start() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  REQUIRE_OK(cuInit(0));
  REQUIRE_OK(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE_OK(cuCtxSetCurrent(context));
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// Three streams that meet through events, then everything is waited for.
int mixed_work() {
  CUstream a = start(), b = nullptr, c = nullptr;
  REQUIRE_OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
  REQUIRE_OK(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
  CUdeviceptr x = 0, y = 0;
  REQUIRE_OK(cuMemAlloc(&x, 4096));
  REQUIRE_OK(cuMemAlloc(&y, 4096));
  CUevent event = nullptr;
  REQUIRE_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  for (unsigned i = 0; i < 20; ++i) {
    REQUIRE_OK(cuMemsetD32Async(x, i, 1024, a));
    REQUIRE_OK(cuEventRecord(event, a));
    REQUIRE_OK(cuStreamWaitEvent(b, event, 0));
    REQUIRE_OK(cuMemcpyDtoDAsync(y, x, 4096, b));
    REQUIRE_OK(cuMemsetD8Async(y + 2048, 1, 10, nullptr));
    REQUIRE_OK(cuLaunchHostFunc(
        c, [](void*) {}, nullptr));
    REQUIRE_OK(cuEventRecord(event, b));
    REQUIRE_OK(cuStreamWaitEvent(a, event, 0));
  }
  REQUIRE_OK(cuCtxSynchronize());
  std::vector<unsigned> host(1024);
  REQUIRE_OK(cuMemcpyDtoH(host.data(), y, 4096));
  std::printf("%u\n", host[0]);
  return 0;
}

int query_ten_times(void (*leave)()) {
  const CUstream stream = start();
  for (int i = 0; i < 10; ++i) REQUIRE_OK(cuStreamQuery(stream));
  leave();
  return 0;
}

// What a forked child of an initialised process gets.
int fork_child() {
  start();
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr memory = 0;
    const bool is_refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                            cuMemAlloc(&memory, 4) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(is_refused ? 7 : 8);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  CUdeviceptr memory = 0;
  REQUIRE_OK(cuMemAlloc(&memory, 4));  // the parent goes on
  return 0;
}

// Late order runs nothing before it must; the others have at least no reason not to.
int pending_at_return() {
  const CUstream stream = start();
  void* memory = nullptr;
  REQUIRE_OK(cuMemAllocHost(&memory, 4));
  auto* const word = static_cast<volatile unsigned*>(memory);
  *word = 0;
  REQUIRE_OK(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(memory), 1, 1, stream));
  std::printf("%u\n", *word);
  REQUIRE_OK(cuStreamSynchronize(stream));
  std::printf("%u\n", *word);
  return 0;
}

int about() {
  int version = 0, devices = 0, major = 0, minor = 0;
  REQUIRE_OK(cuDriverGetVersion(&version));
  const CUresult code = cuInit(0);
  if (code != CUDA_SUCCESS) {
    std::printf("%d\n", static_cast<int>(code));
    return 0;
  }
  REQUIRE_OK(cuDeviceGetCount(&devices));
  REQUIRE_OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  REQUIRE_OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  std::printf("%d\n%d\n%d.%d\n", version, devices, major, minor);
  return 0;
}

int before_init() {
  int count = 0;
  std::printf("%d\n", static_cast<int>(cuDeviceGetCount(&count)));
  return 0;
}

int unsupported() {
  start();
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  CUmipmappedArray array = nullptr;
  for (int i = 0; i < 3; ++i) {
    std::printf("%d\n", static_cast<int>(cuMipmappedArrayCreate(&array, &descriptor, 1)));
  }
  return 0;
}

// Two rows of an array to linear memory.
int array() {
  const CUstream stream = start();
  const CUDA_ARRAY_DESCRIPTOR shape{4, 3, CU_AD_FORMAT_FLOAT, 1};
  CUarray from = nullptr;
  CUdeviceptr to = 0;
  REQUIRE_OK(cuArrayCreate(&from, &shape));
  REQUIRE_OK(cuMemAlloc(&to, 128));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = from;
  copy.srcY = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.dstPitch = 64;
  copy.WidthInBytes = 16;
  copy.Height = 2;
  REQUIRE_OK(cuMemcpy2DAsync(&copy, stream));
  REQUIRE_OK(cuArrayDestroy(from));
  return 0;
}

// Microseconds that 100 event records take.
int cost() {
  const CUstream stream = start();
  CUevent event = nullptr;
  REQUIRE_OK(cuEventCreate(&event, 0));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) REQUIRE_OK(cuEventRecord(event, stream));
  const auto end = std::chrono::steady_clock::now();
  std::printf("%lld\n",
              static_cast<long long>(
                  std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count()));
  return 0;
}

// What dlsym, cuGetProcAddress and a call bound by the linker say of cuFuncGetParamInfo.
int find_entry() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  std::printf("%d\n", dlsym(library, "cuFuncGetParamInfo") != nullptr);
  void* address = nullptr;
  CUdriverProcAddressQueryResult status{};
  REQUIRE_OK(cuGetProcAddress("cuFuncGetParamInfo", &address, CUDA_VERSION,
                              CU_GET_PROC_ADDRESS_DEFAULT, &status));
  std::printf("%d\n", address != nullptr);
  // Bound before the library could hide it.
  static decltype(&cuFuncGetParamInfo) const volatile bound = &cuFuncGetParamInfo;
  std::size_t offset = 0, size = 0;
  start();
  std::printf("%d\n", bound(nullptr, 0, &offset, &size) != CUDA_ERROR_NOT_FOUND);
  return 0;
}

// Results of ten queries of the same stream.
int ten_results() {
  const CUstream stream = start();
  for (int i = 0; i < 10; ++i) std::printf("%d\n", static_cast<int>(cuStreamQuery(stream)));
  return 0;
}

// Results of allocating three times one MiB, around instantiating a graph of ten nodes.
int fill_memory() {
  start();
  CUdeviceptr memory = 0;
  std::printf("%d\n", static_cast<int>(cuMemAlloc(&memory, 1 << 20)));
  CUgraph graph = nullptr;
  REQUIRE_OK(cuGraphCreate(&graph, 0));
  for (int i = 0; i < 10; ++i) {
    CUgraphNode node = nullptr;
    REQUIRE_OK(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  }
  CUgraphExec exec = nullptr;
  std::printf("%d\n", static_cast<int>(cuGraphInstantiate(&exec, graph, 0)));
  std::printf("%d\n", static_cast<int>(cuMemAlloc(&memory, 1 << 20)));
  if (exec == nullptr) return 0;
  REQUIRE_OK(cuGraphExecDestroy(exec));
  std::printf("%d\n", static_cast<int>(cuMemAlloc(&memory, 1 << 20)));
  return 0;
}

// One of each kind that needs no kernel.
int misuse() {
  const CUstream stream = start();
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  REQUIRE_OK(cuMemAlloc(&memory, 4));
  REQUIRE_OK(cuMemFree(memory));
  cuMemFree(memory);
  REQUIRE_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  REQUIRE_OK(cuEventDestroy(event));
  cuEventRecord(event, stream);
  cuEventRecord(event, stream);
  cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(event));
  REQUIRE_OK(cuLaunchHostFunc(
      stream, [](void*) { cuCtxSynchronize(); }, nullptr));
  REQUIRE_OK(cuStreamSynchronize(stream));
  REQUIRE_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  cuStreamSynchronize(stream);
  CUgraph graph = nullptr;
  cuStreamEndCapture(stream, &graph);
  CUcontext left = nullptr;
  REQUIRE_OK(cuCtxCreate(&left, nullptr, 0, 0));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "find") return find_entry();
  if (mode == "results") return ten_results();
  if (mode == "memory") return fill_memory();
  if (mode == "misuse") return misuse();
  if (mode == "mixed") return mixed_work();
  if (mode == "exit") return query_ten_times([] {});
  if (mode == "_exit") return query_ten_times([] { _exit(0); });
  if (mode == "kill") return query_ten_times([] { raise(SIGKILL); });
  if (mode == "fork") return fork_child();
  if (mode == "pending") return pending_at_return();
  if (mode == "about") return about();
  if (mode == "before-init") return before_init();
  if (mode == "unsupported") return unsupported();
  if (mode == "array") return array();
  if (mode == "cost") return cost();
  std::fprintf(stderr, "probe: unknown mode\n");
  return 2;
}
