// SPDX-License-Identifier: Apache-2.0
// A program that does nothing but its work.
#include "tests/programs/host/tiny.h"

int main() {
  tiny::start();
  for (unsigned i = 0; i < 100; ++i) tiny::bump(1);
  std::printf("%u\n", tiny::cell());
}
