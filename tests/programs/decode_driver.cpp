// SPDX-License-Identifier: Apache-2.0
// The decoder on the driver API, through one of the doors of door.h; with DECODE_LEGACY_STREAM
// everything runs on stream 0, with DECODE_NON_BLOCKING on a stream that ignores stream 0. A
// failing call ends the program with status 2.
#include "tests/programs/decode_run.h"
#include "tests/programs/door.h"

extern "C" const char kDecodePtx[];

namespace {

class DriverBackend {
 public:
  DriverBackend() : cu_(open_door()) {
    check(cu_.cuInit(0), "cuInit");
    check(cu_.cuDeviceGet(&device_, 0), "cuDeviceGet");
    CUcontext context = nullptr;
    check(cu_.cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
    check(cu_.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cu_.cuModuleLoadData(&module_, kDecodePtx), "cuModuleLoadData");
    constexpr const char* kNames[] = {"embed",     "rms_norm", "matvec", "matvec_add", "rope_cache",
                                      "attention", "add",      "swiglu", "argmax"};
    static_assert(std::size(kNames) == static_cast<std::size_t>(decode::Kernel::kCount));
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      check(cu_.cuModuleGetFunction(&functions_[i], module_, kNames[i]), kNames[i]);
    }
#if !defined(DECODE_LEGACY_STREAM)
#if defined(DECODE_NON_BLOCKING)
    check(cu_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
#else
    check(cu_.cuStreamCreate(&stream_, CU_STREAM_DEFAULT), "cuStreamCreate");
#endif
#endif
  }

  ~DriverBackend() {
    if (stream_ != nullptr) check(cu_.cuStreamDestroy(stream_), "cuStreamDestroy");
    for (CUdeviceptr memory : device_memory_) check(cu_.cuMemFree(memory), "cuMemFree");
    for (void* memory : host_memory_) check(cu_.cuMemFreeHost(memory), "cuMemFreeHost");
    check(cu_.cuModuleUnload(module_), "cuModuleUnload");
    check(cu_.cuDevicePrimaryCtxRelease(device_), "cuDevicePrimaryCtxRelease");
  }

  DriverBackend(const DriverBackend&) = delete;
  DriverBackend& operator=(const DriverBackend&) = delete;

  void print_device() {
    char name[128] = "";
    check(cu_.cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
    std::fprintf(stderr, "device %s\n", name);
  }

  void* allocate(std::size_t bytes) {
    CUdeviceptr memory = 0;
    check(cu_.cuMemAlloc(&memory, bytes), "cuMemAlloc");
    device_memory_.push_back(memory);
    return reinterpret_cast<void*>(memory);
  }

  void* host_buffer(std::size_t bytes) {
    void* memory = nullptr;
    check(cu_.cuMemAllocHost(&memory, bytes), "cuMemAllocHost");
    host_memory_.push_back(memory);
    return memory;
  }

  void upload(void* device, const void* host, std::size_t bytes) {
    check(cu_.cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(device), host, bytes), "cuMemcpyHtoD");
    // The copy may only be staged yet, and a non-blocking stream does not wait for it.
    check(cu_.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }

  void download(void* host, const void* device, std::size_t bytes) {
    check(cu_.cuMemcpyDtoHAsync(host, reinterpret_cast<CUdeviceptr>(device), bytes, stream_),
          "cuMemcpyDtoHAsync");
  }

  template <decode::Kernel kernel, typename... Args>
  void launch(decode::Shape shape, Args... args) {
    void* parameters[] = {&args...};
    check(cu_.cuLaunchKernel(functions_[static_cast<std::size_t>(kernel)], shape.grid, 1, 1,
                             shape.block, 1, 1, shape.shared_bytes, stream_, parameters, nullptr),
          "cuLaunchKernel");
  }

  void wait() {
    check(cu_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }

 private:
  void check(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = nullptr;
    cu_.cuGetErrorName(result, &name);
    std::fprintf(stderr, "decode: %s: %s (%d)\n", what, name != nullptr ? name : "unknown error",
                 result);
    std::exit(2);
  }

  Door cu_;
  CUdevice device_ = 0;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUfunction functions_[static_cast<std::size_t>(decode::Kernel::kCount)] = {};
  std::vector<CUdeviceptr> device_memory_;
  std::vector<void*> host_memory_;
};

}  // namespace

int main(int count, char** arguments) {
  decode::Options options;
  if (!decode::parse_options(count, arguments, options)) return 2;
  DriverBackend backend;
  if (options.time) backend.print_device();
  return decode::run(backend, options);
}
