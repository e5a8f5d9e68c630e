// SPDX-License-Identifier: Apache-2.0
// A library that waits for the device where its caller does not see it.
#include "tests/programs/profile/check.h"

namespace hidden {

[[gnu::visibility("default")]] void wait_for(CUstream stream) {
  CHECK(cuStreamSynchronize(stream));  // SITE hidden_wait
}

}  // namespace hidden
