// SPDX-License-Identifier: Apache-2.0
// Turns an address of the driver into ours: by the address itself, which says exactly which ABI it
// is, and by name only to choose among entries that share an address. Any thread, no lock; the
// table is built on first use and kept.
#pragma once

#include "shim/lookup_log.h"

namespace shim {

struct Found {
  void* address;
  Answer answer;
};

// What a dlsym look-up of `name` that gave `address` is to be answered with. An address outside the
// driver is left alone.
Found wrap_symbol(void* address, const char* name) noexcept;

// The same for cuGetProcAddress, where `api`, `version` and `flags` were asked for.
Found wrap_query(void* address, const char* api, int version, cuuint64_t flags) noexcept;

}  // namespace shim
