// SPDX-License-Identifier: Apache-2.0
// Loaded, called and unloaded by plain.c.
#include "tests/programs/profile/check.h"

extern "C" [[gnu::visibility("default")]] void plugin_wait() {
  for (int i = 0; i < 5; ++i) {
    CHECK(cuCtxSynchronize());  // SITE plugin_wait
  }
}
