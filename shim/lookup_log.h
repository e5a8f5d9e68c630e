// SPDX-License-Identifier: Apache-2.0
// The look-up log (CAJETA_XPU_LOG_LOOKUPS=FILE, or `stderr`): one line per symbol look-up that
// reached a door, with what it was answered with. For tests and for finding out how a program gets
// in. Any thread; keeps errno.
#pragma once

#include "runtime/driver.h"

namespace shim {

enum class Answer : std::uint8_t {
  kMissing,  // null: the driver has no such symbol
  kDriver,   // the driver's (or some other library's) own address
  kWrapper,  // our wrapper
  kGeneric,  // a thunk for a driver entry without a row
};

// `version` < 0: the door has neither version nor flags.
void log_lookup(const char* door, const char* name, int version, cuuint64_t flags,
                Answer answer) noexcept;

}  // namespace shim
