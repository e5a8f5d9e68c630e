// SPDX-License-Identifier: Apache-2.0
// The values of function attributes as the program last set them: libraries set the same value
// ahead of every launch, and then nothing has changed. A bounded table; what it has dropped is
// treated as a change. Any thread; off the launch path.
#pragma once

#include <cstdint>

#include "runtime/driver.h"

namespace runtime {

struct FunctionSetting {
  const void* function;  // a CUfunction or CUkernel
  int attribute;         // a CUfunction_attribute, or one of those below
  int device;            // of a CUkernel's; 0
  int value;

  static constexpr int kCacheConfig = -1;
  static constexpr int kSharedMemConfig = -2;
};

// Whether it is what the program set last.
bool is_set(const FunctionSetting& setting) noexcept;
// Counts what begins to change. A value that was read or set while the count stood still is right.
std::uint64_t setting_changes() noexcept;
// The function is about to be changed, or one that may be the same: nothing is known of it until
// note_setting(). The count from then on.
std::uint64_t begin_setting(const FunctionSetting& setting, bool has_aliases) noexcept;
void note_setting(const FunctionSetting& setting, std::uint64_t changes) noexcept;
// Handles may come back as others.
void forget_settings() noexcept;

}  // namespace runtime
