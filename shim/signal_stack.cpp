// SPDX-License-Identifier: Apache-2.0
// Stands in front of libc's sigaltstack(), which does nothing but ask the kernel: a thread whose
// alternative stack is too small for a sample must not get one.
#include "profiler/trace/signal_stacks.h"

extern "C" [[gnu::visibility("default")]] int sigaltstack(const stack_t* next,
                                                          stack_t* before) noexcept {
  return profiler::set_signal_stack(next, before);
}
