// SPDX-License-Identifier: Apache-2.0
// A program that makes the code that waits, as a JIT does, and names it in a perf map.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/programs/profile/check.h"

namespace {

constexpr int kCalls = 11;

// sub rsp, 8; mov rax, target; call rax; add rsp, 8; ret
using Code = CUresult (*)();
Code make_code(CUresult (*target)(), std::size_t* size) {
  unsigned char code[] = {0x48, 0x83, 0xEC, 8,    0x48, 0xB8, 0,    0,    0, 0,   0,
                          0,    0,    0,    0xFF, 0xD0, 0x48, 0x83, 0xC4, 8, 0xC3};
  std::memcpy(code + 6, &target, sizeof target);
  void* memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(3);
  std::memcpy(memory, code, sizeof code);
  *size = sizeof code;
  return reinterpret_cast<Code>(memory);
}

}  // namespace

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  std::size_t size = 0;
  const Code wait = make_code(&cuCtxSynchronize, &size);
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::FILE* map = std::fopen(path.c_str(), "w");
  if (map == nullptr) return 3;
  std::fprintf(map, "garbage\n%zx %zx stale name\n%zx %zx py::step:/app/train.py\n",
               reinterpret_cast<std::size_t>(wait), size, reinterpret_cast<std::size_t>(wait),
               size);
  std::fclose(map);
  for (int i = 0; i < kCalls; ++i) CHECK(wait());
  return 0;
}
