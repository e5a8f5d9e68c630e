// SPDX-License-Identifier: Apache-2.0
// CAJETA_SOFTGPU_FAIL: calls that fail on demand, before they do anything. Counting is atomic; any
// thread.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/softgpu/driver/entry_table.h"

namespace softgpu {

// Calls number `first` to `last` of an entry (or of all together) return `code`.
struct Fault {
  bool is_any = false;
  EntryId entry{};
  std::uint64_t first = 1;
  std::uint64_t last = 1;
  CUresult code = CUDA_ERROR_UNKNOWN;
};

// ENTRY:N, ENTRY:N+ or ENTRY:*, each with :ERROR behind it if wanted, comma separated; ENTRY may be
// `any`. False, and `faults` unchanged: not of this form.
bool parse_faults(std::string_view text, std::vector<Fault>* faults);

// Counts the call and says how it fails; CUDA_SUCCESS: it does not.
CUresult next_fault(EntryId entry);

}  // namespace softgpu
