// SPDX-License-Identifier: Apache-2.0
// All of its CUDA calls, the first one too, on a thread with as many KiB of stack as it is told.

#include <pthread.h>

#include "tests/programs/host/tiny.h"

namespace {

void* work(void*) {
  tiny::start();
  for (unsigned i = 0; i < 300; ++i) tiny::bump(1);
  std::printf("%u\n", tiny::cell());
  return nullptr;
}

}  // namespace

int main(int, char** argv) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  const std::size_t size = std::strtoul(argv[1], nullptr, 10) * 1024;
  if (pthread_attr_setstacksize(&attributes, size) != 0) return 2;
  if (pthread_create(&thread, &attributes, work, nullptr) != 0) return 3;
  pthread_join(thread, nullptr);
}
