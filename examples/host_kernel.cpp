// SPDX-License-Identifier: Apache-2.0
// The same code on either backend: on the CPU the kernel is a function, on CUDA it is PTX.
//   c++ -std=c++17 host_kernel.cpp -Iruntime/include -ldl && LD_PRELOAD=libcajeta_xpu.so ./a.out
//   cpu
#include <cstdio>
#include <cstring>

#include "cajeta/xpu.hpp"

namespace xpu = cajeta::xpu;

namespace {

const char kPtx[] = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry add(.param .u64 x, .param .u32 n) {
  .reg .u64 %p; .reg .u32 %r<2>;
  ld.param.u64 %p, [x]; ld.param.u32 %r0, [n];
  atom.global.add.u32 %r1, [%p], %r0; ret;
})";

int add(const cajeta_xpu_launch_shape* shape, void* const* arguments, void*) {
  unsigned* x = nullptr;
  unsigned n = 0;
  std::memcpy(&x, arguments[0], sizeof x);
  std::memcpy(&n, arguments[1], sizeof n);
  *x += n * shape->grid[0] * shape->block[0];
  return CAJETA_XPU_SUCCESS;
}

void run(const char* backend) {
  const xpu::Device device(backend);
  const cajeta_xpu_host_kernel functions[] = {{"add", &add, nullptr}};
  const xpu::Module module =
      device.backend() == "cpu" ? xpu::Module(device, functions, 1) : xpu::Module(device, kPtx);
  const xpu::Kernel kernel = module.kernel("add");
  const xpu::Buffer x(device, sizeof(unsigned));
  const auto stream = xpu::KernelStream::create(device);
  unsigned value = 0;
  stream.write(x, &value, sizeof value);
  stream.setDeferred(true);  // accepted, and without effect, on the cpu
  for (unsigned i = 1; i <= 10; ++i) stream.launch(kernel, {{2, 1, 1}, {4, 1, 1}}, x, i);
  const auto pending = stream.pendingLaunches();
  stream.read(&value, x, sizeof value);  // submits, and waits
  std::printf("%s: %u, %u pending before it was read\n", backend, value,
              static_cast<unsigned>(pending));
}

}  // namespace

int main(int count, char** arguments) try {
  run(count > 1 ? arguments[1] : "cuda");
  return 0;
} catch (const xpu::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
