// SPDX-License-Identifier: Apache-2.0
// The door of a program linked to libcuda: the linker's symbols. The same address must come from
// every other door.
#include <cuda.h>

#include "tests/programs/doors/door_check.h"

#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name

int main() {
  using doors::check;
  void* driver = doors::open_driver();
#define CHECK_LINKED(name)                                                                  \
  check(doors::lives_in(reinterpret_cast<void*>(&name), "cajeta_xpu"), "linked", #name);    \
  check(dlsym(driver, TEXT(name)) == reinterpret_cast<void*>(&name), "one address", #name); \
  check(dlsym(RTLD_DEFAULT, TEXT(name)) == reinterpret_cast<void*>(&name), "default", #name)
  CHECK_LINKED(cuInit);
  CHECK_LINKED(cuDriverGetVersion);
  CHECK_LINKED(cuMemAlloc);
  CHECK_LINKED(cuMemcpyHtoDAsync);
  CHECK_LINKED(cuLaunchKernel);
  CHECK_LINKED(cuGetProcAddress);
  int version = -1;
  check(cuInit(0) == CUDA_SUCCESS, "cuInit");
  check(cuDriverGetVersion(&version) == CUDA_SUCCESS, "cuDriverGetVersion");
  return doors::finish();
}
