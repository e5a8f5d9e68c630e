// SPDX-License-Identifier: Apache-2.0
#include "graphs/direct_launch.h"

namespace graphs {

using runtime::LaunchSlot;
using runtime::Sequence;

ArgumentPointers::ArgumentPointers(const Sequence& sequence, const LaunchSlot& slot) noexcept
    : size_(slot.info->argument_bytes), is_packed_(slot.info->parameters.size() > kMaxPointers) {
  auto* bytes = const_cast<std::byte*>(sequence.arguments_of(slot));
  if (is_packed_) {
    void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size_,
                      CU_LAUNCH_PARAM_END};
    for (std::size_t i = 0; i < 5; ++i) extra_[i] = packed[i];
    return;
  }
  std::size_t i = 0;
  for (const runtime::ParameterSpec& spec : slot.info->parameters) {
    pointers_[i++] = bytes + spec.offset;
  }
}

CUresult launch_directly(CUstream stream, const Sequence& sequence, std::uint32_t first,
                         std::uint32_t last) noexcept {
  CUresult error = CUDA_SUCCESS;
  for (std::uint32_t i = first; i < last; ++i) {
    const LaunchSlot& slot = sequence.slots[i];
    const runtime::LaunchShape& shape = slot.shape;
    ArgumentPointers arguments(sequence, slot);
    CUresult result = runtime::real.cuLaunchKernel(
        slot.function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1],
        shape.block[2], shape.shared_bytes, stream, arguments.kernel_params(), arguments.extra());
    if (error == CUDA_SUCCESS) error = result;
  }
  return error;
}

}  // namespace graphs
