// SPDX-License-Identifier: Apache-2.0
// Entries that the driver we pretend to be does not have: newer ones than CAJETA_SOFTGPU_VERSION
// and those of CAJETA_SOFTGPU_MISSING. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "tools/softgpu/driver/entry_table.h"

namespace softgpu {

// Comma-separated symbols. False, and `entries` unchanged: one of them is no entry.
bool parse_missing(std::string_view text, std::vector<EntryId>* entries);

// cuGetProcAddress does not know it, dlsym does not find it, and a call that was bound by a linker
// answers CUDA_ERROR_NOT_FOUND.
bool is_absent(EntryId entry);
// Whether any entry is.
bool has_absent_entries();

}  // namespace softgpu
