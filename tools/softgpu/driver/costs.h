// SPDX-License-Identifier: Apache-2.0
// CAJETA_SOFTGPU_COSTS: what a call costs the host on a real driver, spent by spinning so that
// submitting costs what it costs there. Simulated figures, never measurements of this machine.
// Constants; any thread.
#pragma once

#include "tools/softgpu/driver/entry.h"

namespace softgpu {

struct Cost {
  std::uint32_t call_ns = 0;
  double node_ns = 0;  // per graph node
};

// By the chosen profile.
Cost cost_of(EntryId id);

}  // namespace softgpu
