// SPDX-License-Identifier: Apache-2.0
// A call on a stack of ours, for handlers on stacks of the program.
#pragma once

namespace profiler {

// `top`: the high end of the memory, aligned to 16 bytes. `function` returns and throws nothing.
inline void call_on_stack(void* top, void (*function)(void* argument), void* argument) noexcept {
#if defined(__x86_64__)
  __asm__ volatile(
      "movq %%rsp, %%rbx\n"
      "movq %[top], %%rsp\n"
      "callq *%[function]\n"
      "movq %%rbx, %%rsp\n"
      : "+D"(argument)
      : [top] "r"(top), [function] "r"(function)
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "cc", "memory");
#elif defined(__aarch64__)
  register void* first __asm__("x0") = argument;
  __asm__ volatile(
      "mov x19, sp\n"
      "mov sp, %[top]\n"
      "blr %[function]\n"
      "mov sp, x19\n"
      : "+r"(first)
      : [top] "r"(top), [function] "r"(function)
      : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
        "x15", "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
        "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
        "v29", "v30", "v31", "cc", "memory");
#else
  (void)top;
  function(argument);
#endif
}

}  // namespace profiler
