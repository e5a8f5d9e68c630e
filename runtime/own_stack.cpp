// SPDX-License-Identifier: Apache-2.0
#include "runtime/own_stack.h"

#include <cstddef>

namespace runtime {
namespace {

// Reading debug information for names takes 30 KiB; what is not touched costs nothing.
constexpr std::size_t kStackBytes = 512 * 1024;
alignas(64) constinit unsigned char g_stack[kStackBytes] = {};

}  // namespace

#if defined(__x86_64__)

// With a frame pointer, by which unwinders find the way back.
[[gnu::noinline]]
#ifndef __clang__
[[gnu::optimize("no-omit-frame-pointer")]]
#endif
void run_on_own_stack(void (*run)() noexcept) noexcept {
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[top], %%rsp\n\t"
      "callq *%[run]\n\t"
      "movq %%rbx, %%rsp\n\t"
      :
      : [top] "r"(g_stack + kStackBytes), [run] "r"(run)
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15", "cc", "memory");
}

#else

void run_on_own_stack(void (*run)() noexcept) noexcept {
  run();
}

#endif

}  // namespace runtime
