// SPDX-License-Identifier: Apache-2.0
// Everything that needs the whole module: frames, the call graph, shared memory offsets, and what
// the driver reports of a kernel. Throws SyntaxError for calls that fit no function and for kernels
// that need too much shared memory.
#pragma once

#include "tools/softgpu/ptx/symbols.h"

namespace softgpu::ptx {

// Needs FunctionInfo::register_words, so it comes after the slots are assigned.
void lay_out(RawModule* raw);

}  // namespace softgpu::ptx
