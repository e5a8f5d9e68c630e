// SPDX-License-Identifier: Apache-2.0
// Launches in turn on streams made in one order and used in another, and polls mapped memory until
// all have run, without any CUDA call: the deadline submits them. Order in the driver's log is the
// point.
#include <unistd.h>

#include <thread>

#include "tests/programs/host/tiny.h"

int main() {
  alarm(60);
  tiny::start();
  void* host;
  CHECK(cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK(cuMemHostGetDevicePointer(&tiny::g_cell, host, 0));
  auto* word = static_cast<unsigned*>(host);
  *word = 0;
  constexpr int kStreams = 5;
  CUstream streams[kStreams];
  for (CUstream& stream : streams) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned round = 1; round <= 4; ++round) {
    for (const int turn : {2, 0, 4, 1, 3}) tiny::bump(1, streams[turn]);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round * kStreams) std::this_thread::yield();
  }
  std::printf("%u\n", *word);
}
