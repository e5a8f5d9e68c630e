// SPDX-License-Identifier: Apache-2.0
// A library that retains and releases the primary context around each of its uses, while the
// program holds it; at the end both let it go, and it starts again.
#include "tests/programs/host/tiny.h"

namespace {

void use(CUdevice device) {
  for (int round = 0; round < 30; ++round) {
    CUcontext context;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    for (unsigned i = 0; i < 10; ++i) tiny::bump(i);
    if (round % 2 != 0) CHECK(cuStreamSynchronize(nullptr));
    CHECK(cuDevicePrimaryCtxRelease(device));
  }
  std::printf("%u\n", tiny::cell());
}

}  // namespace

int main() {
  for (int life = 0; life < 3; ++life) {
    tiny::start();
    use(0);
    CHECK(cuDevicePrimaryCtxRelease(0));
    unsigned flags;
    int is_active;
    CHECK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    std::printf("active %d\n", is_active);
  }
}
