// SPDX-License-Identifier: Apache-2.0
// Kernels that break, for the scenarios about faults: each does so only when its argument says so,
// so that a healthy launch can be recorded first.
#include <cassert>

extern "C" {

// A store wherever the host says: out of bounds, misaligned, or fine.
__global__ void poke(unsigned* where, unsigned value) {
  *where = value;
}

__global__ void trap_if(unsigned condition) {
  if (condition != 0) asm volatile("trap;");
}

__global__ void assert_zero(unsigned value) {
  assert(value == 0);
}

}  // extern "C"
