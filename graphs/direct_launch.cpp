// SPDX-License-Identifier: Apache-2.0
#include "graphs/direct_launch.h"

#include "runtime/deferral.h"
#include "runtime/flush.h"
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

void launch_directly(runtime::ContextState& context, CUstream stream, const Sequence& sequence,
                     std::uint32_t first, std::uint32_t last) noexcept {
  if (is_mutant(Mutant::kLastLaunchDropped) && last - first > 1) --last;
  for (std::uint32_t i = first; i < last; ++i) {
    std::uint32_t turn = is_mutant(Mutant::kDirectOrderReversed) ? first + (last - 1 - i) : i;
    const LaunchSlot& slot = sequence.slots[turn];
    ArgumentPointers arguments(sequence, slot);
    const auto launch = [&]() noexcept {
      return runtime::launch_now(slot.function(), slot.shape, slot.attributes, stream,
                                 arguments.kernel_params(), arguments.extra());
    };
    CUresult result = launch();
    // As in the program's own calls: what our graphs hold is given back first.
    if (result == CUDA_ERROR_OUT_OF_MEMORY && runtime::give_back_graphs()) result = launch();
    if (result != CUDA_SUCCESS) runtime::launch_failed(context, result);
    if (result != CUDA_SUCCESS && is_mutant(Mutant::kFirstErrorOnly)) break;
  }
}

}  // namespace graphs
