// SPDX-License-Identifier: Apache-2.0
// The exported wrapper of each entry, for the doors that hand out addresses. Constant data, any
// thread.
#pragma once

#include "runtime/entry.h"

namespace shim {

// The address that a program linked against libcuda also gets: every door gives out the same one.
void* wrapper_of(runtime::EntryId id) noexcept;

}  // namespace shim
