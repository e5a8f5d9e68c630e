// SPDX-License-Identifier: Apache-2.0
// The lower bound's own translation unit: the compiler must not see through the call, as it cannot
// for the driver's.
#include "tests/bench/arguments.h"

namespace bench {

LowerBound* g_lower_bound = nullptr;

bool LowerBound::compare(Recorded& at, void** parameters) {
  bool changed = false;
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t value = *static_cast<const std::uint64_t*>(parameters[i]);
    if (value != at.wide[i]) {
      at.wide[i] = value;
      changed = true;
    }
  }
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t value = *static_cast<const std::uint32_t*>(parameters[6 + i]);
    if (value != at.narrow[i]) {
      at.narrow[i] = value;
      changed = true;
    }
  }
  return changed;
}

bool LowerBound::keep(CUfunction function, const unsigned (&shape)[7], void** parameters) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (next_ == recorded_.size()) return false;
  Recorded& at = recorded_[next_++];
  at.changed = at.function != function || at.grid_x != shape[0] || at.grid_y != shape[1] ||
               at.grid_z != shape[2] || at.block_x != shape[3] || at.block_y != shape[4] ||
               at.block_z != shape[5] || at.shared_bytes != shape[6];
  if (at.changed) {
    at.function = function;
    at.grid_x = shape[0];
    at.grid_y = shape[1];
    at.grid_z = shape[2];
    at.block_x = shape[3];
    at.block_y = shape[4];
    at.block_z = shape[5];
    at.shared_bytes = shape[6];
  }
  if (compare(at, parameters)) at.changed = true;
  return true;
}

CUresult LowerBound::launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, CUstream, void** parameters, void**) {
  const unsigned shape[7] = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes};
  return g_lower_bound->keep(function, shape, parameters) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult LowerBound::launch_one_record(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                       unsigned, unsigned, CUstream, void** parameters, void**) {
  const std::lock_guard<std::mutex> lock(g_lower_bound->mutex_);
  Recorded& at = g_lower_bound->recorded_[0];
  at.changed = compare(at, parameters);
  return CUDA_SUCCESS;
}

}  // namespace bench
