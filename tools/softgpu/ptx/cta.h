// SPDX-License-Identifier: Apache-2.0
// Picks the handlers of CTA barriers. The state they work on is in machine.h.
#pragma once

#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

Handler select_barrier(const Instruction& i);

}  // namespace softgpu::ptx
