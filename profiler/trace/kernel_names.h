// SPDX-License-Identifier: Apache-2.0
// Names of launched functions, kept for the life of the process: when the trace is written the
// module may be gone and its handles given to others. Any thread; a known function costs no lock.
#pragma once

#include "runtime/driver.h"

namespace profiler {

// The mangled name; never null ("kernel" where the driver tells none). Asks the driver at first
// sight: cuFuncGetName, or cuKernelGetName where the handle is a CUkernel (both CUDA 12.3).
const char* kernel_name(CUfunction function) noexcept;

// Function handles may name other functions from now on: code was unloaded, or a context ended.
void forget_kernel_names() noexcept;

}  // namespace profiler
