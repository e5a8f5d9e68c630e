// SPDX-License-Identifier: Apache-2.0
#include "graphs/direct_launch.h"

#include "runtime/mutants.h"

namespace graphs {

using runtime::is_mutant;
using runtime::LaunchSlot;
using runtime::Mutant;
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
  if (is_mutant(Mutant::kLastLaunchDropped) && last - first > 1) --last;
  for (std::uint32_t i = first; i < last; ++i) {
    std::uint32_t turn = is_mutant(Mutant::kDirectOrderReversed) ? first + (last - 1 - i) : i;
    const LaunchSlot& slot = sequence.slots[turn];
    ArgumentPointers arguments(sequence, slot);
    CUresult result = runtime::launch_now(slot.function(), slot.shape, slot.attributes, stream,
                                          arguments.kernel_params(), arguments.extra());
    if (error == CUDA_SUCCESS) error = result;
    if (error != CUDA_SUCCESS && is_mutant(Mutant::kFirstErrorOnly)) break;
  }
  return error;
}

}  // namespace graphs
