// SPDX-License-Identifier: Apache-2.0
// Submission one by one: the fallback, and what replay is compared with in tests.
#pragma once

#include "runtime/context_state.h"
#include "runtime/sequence.h"

namespace graphs {

// The values of a launch as the driver takes them: a pointer per parameter into the sequence's own
// bytes. Good until the next call on this thread's stack frame; kernels with more parameters than
// fit are packed through `extra`.
class ArgumentPointers {
 public:
  ArgumentPointers(const runtime::Sequence& sequence, const runtime::LaunchSlot& slot) noexcept;
  void** kernel_params() noexcept { return is_packed_ ? nullptr : pointers_; }
  void** extra() noexcept { return is_packed_ ? extra_ : nullptr; }

 private:
  // 256 pointers, 2 KiB of stack: kernels have tens; the rare larger one uses the packed form.
  static constexpr std::size_t kMaxPointers = 256;
  void* pointers_[kMaxPointers];
  void* extra_[5];
  std::size_t size_;
  bool is_packed_;
};

// Launches [first, last) of the sequence on the stream of that context, all of them, in order.
// Those that fail are entered in the context's ledger.
void launch_directly(runtime::ContextState& context, CUstream stream,
                     const runtime::Sequence& sequence, std::uint32_t first,
                     std::uint32_t last) noexcept;

}  // namespace graphs
