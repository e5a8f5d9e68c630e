// SPDX-License-Identifier: Apache-2.0
// A program for sanitizers, which the test builds. First a little work, with pauses in which the
// library submits from a thread of its own; then a fault: overflow (one byte behind a heap block),
// leak, race, shift (by more than an int has bits) or none.
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/programs/host/tiny.h"

int main(int count, char** arguments) {
  const char* const fault = count > 1 ? arguments[1] : "none";
  tiny::start();
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) tiny::bump(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::printf("%u\n", tiny::cell());
  try {
    throw fault;
  } catch (const char*) {
    std::puts("caught");
  }
  std::fflush(stdout);
  if (std::strcmp(fault, "overflow") == 0) {
    volatile char* const block = new char[10];
    volatile int index = 10;
    block[index] = 1;
    delete[] block;
  }
  if (std::strcmp(fault, "leak") == 0) {
    auto* volatile block = static_cast<char*>(std::malloc(77));
    block[0] = 1;
    block = nullptr;
  }
  if (std::strcmp(fault, "race") == 0) {
    int shared = 0;
    const auto add = [&shared] {
      for (int i = 0; i < 100'000; ++i) ++shared;
    };
    std::thread other(add);
    add();
    other.join();
  }
  if (std::strcmp(fault, "shift") == 0) {
    volatile int bits = 40;
    volatile int result = 1 << bits;
    (void)result;
  }
}
