// SPDX-License-Identifier: Apache-2.0
// Around every floating-point operation of ours. The program may have unmasked traps on this
// thread, rounds upwards, or looks at its flags afterwards: our arithmetic feels nothing of that
// and leaves no trace. None of it is on the launch path. Any thread; async-signal-safe.
#pragma once

#if !defined(__x86_64__)
#include <cfenv>
#endif
#include <cstdint>

namespace runtime {

#if defined(__x86_64__)

// Our code is compiled to SSE instructions, which MXCSR rules; glibc's printf reads its rounding
// mode from the x87 control word. The memory clobbers keep arithmetic in its place: operands are
// loaded behind them, and results stored before.
class DefaultFloats {
 public:
  DefaultFloats() noexcept {
    constexpr std::uint32_t mxcsr = 0x1f80;    // to nearest, no flush, no trap, no flag
    constexpr std::uint16_t control = 0x037f;  // to nearest, 64 bits, no trap
    asm volatile("stmxcsr %0" : "=m"(mxcsr_)::"memory");
    asm volatile("ldmxcsr %0" ::"m"(mxcsr) : "memory");
    // Raises nothing, even with an exception of the program's pending: it masks all.
    asm volatile("fnstenv %0" : "=m"(x87_)::"memory");
    asm volatile("fldcw %0" ::"m"(control) : "memory");
  }
  ~DefaultFloats() {
    asm volatile("fldenv %0" ::"m"(x87_) : "memory");
    asm volatile("ldmxcsr %0" ::"m"(mxcsr_) : "memory");
  }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::uint32_t mxcsr_;
  struct {
    std::uint32_t words[7];
  } x87_;
};

#else

class DefaultFloats {
 public:
  DefaultFloats() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&saved_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::fenv_t saved_;
};

#endif

}  // namespace runtime
