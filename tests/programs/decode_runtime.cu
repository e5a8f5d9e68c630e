// SPDX-License-Identifier: Apache-2.0
// The same decoder with the runtime API and <<<>>>, for machines with NVIDIA's driver: built once
// with the static and once with the shared runtime.
#include <cuda_runtime.h>

#include "tests/programs/decode.cu"
#include "tests/programs/decode_run.h"

namespace {

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "decode: %s: %s (%d)\n", what, cudaGetErrorName(result), result);
  std::exit(2);
}

class RuntimeBackend {
 public:
  RuntimeBackend() { check(cudaStreamCreate(&stream_), "cudaStreamCreate"); }

  ~RuntimeBackend() {
    check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
    for (void* memory : device_memory_) check(cudaFree(memory), "cudaFree");
    for (void* memory : host_memory_) check(cudaFreeHost(memory), "cudaFreeHost");
  }

  RuntimeBackend(const RuntimeBackend&) = delete;
  RuntimeBackend& operator=(const RuntimeBackend&) = delete;

  void print_device() {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    std::fprintf(stderr, "device %s\n", properties.name);
  }

  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    device_memory_.push_back(memory);
    return memory;
  }

  void* host_buffer(std::size_t bytes) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    host_memory_.push_back(memory);
    return memory;
  }

  void upload(void* device, const void* host, std::size_t bytes) {
    check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    // The copy may only be staged yet.
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }

  void download(void* host, const void* device, std::size_t bytes) {
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
  }

  template <Kernel kernel, typename... Args>
  void launch(Shape shape, Args... args) {
    launch_symbol<kernel>(shape, args...);
    check(cudaGetLastError(), "<<<>>>");
  }

  void wait() { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  template <Kernel kernel, typename... Args>
  void launch_symbol(Shape at, Args... args) {
    const unsigned shared = at.shared_bytes;
    if constexpr (kernel == Kernel::kEmbed) embed<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kRmsNorm)
      rms_norm<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kMatvec)
      matvec<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kMatvecAdd)
      matvec_add<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kRopeCache)
      rope_cache<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kAttention)
      attention<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kAdd) add<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kSwiglu)
      swiglu<<<at.grid, at.block, shared, stream_>>>(args...);
    if constexpr (kernel == Kernel::kArgmax)
      argmax<<<at.grid, at.block, shared, stream_>>>(args...);
  }

  cudaStream_t stream_ = nullptr;
  std::vector<void*> device_memory_;
  std::vector<void*> host_memory_;
};

}  // namespace

int main(int count, char** arguments) {
  Options options;
  if (!parse_options(count, arguments, options)) return 2;
  RuntimeBackend backend;
  if (options.time) backend.print_device();
  return run(backend, options);
}
