// SPDX-License-Identifier: Apache-2.0
// The floating-point environment of the calling thread: rounding, flush to zero, traps and flags.
// What the program has made of it is neither felt by our arithmetic nor changed by it. No state;
// any thread.
#pragma once

#include <cfenv>
#include <cstdint>

namespace softgpu {

#if defined(__x86_64__)

// Ours is compiled to SSE instructions, which MXCSR rules. The x87 control word is looked at all
// the same: glibc reads the rounding mode of printf from it.
inline constexpr std::uint32_t kDefaultMxcsr = 0x1f80;  // to nearest, no flush, no trap, no flag
inline constexpr std::uint32_t kMxcsrFlags = 0x3f;
inline constexpr std::uint16_t kDefaultX87 = 0x037f;  // to nearest, 64 bits, no trap

// The memory clobbers keep arithmetic in its place: operands are loaded behind them, and results
// stored before.
inline std::uint32_t read_mxcsr() {
  std::uint32_t value;
  asm volatile("stmxcsr %0" : "=m"(value)::"memory");
  return value;
}
inline void write_mxcsr(std::uint32_t value) {
  asm volatile("ldmxcsr %0" ::"m"(value) : "memory");
}

// The default environment while it lives; then the thread's own, flags included. A few cycles where
// the thread has changed nothing.
class DefaultFloats {
 public:
  DefaultFloats() : mxcsr_(read_mxcsr()) {
    if ((mxcsr_ & ~kMxcsrFlags) != kDefaultMxcsr) [[unlikely]]
      write_mxcsr(kDefaultMxcsr);
    std::uint16_t control;
    asm volatile("fnstcw %0" : "=m"(control)::"memory");
    has_own_x87_ = control != kDefaultX87;
    if (has_own_x87_) [[unlikely]] {
      // Raises nothing, even with an exception of the program's pending: it masks all.
      asm volatile("fnstenv %0" : "=m"(x87_)::"memory");
      asm volatile("fldcw %0" ::"m"(kDefaultX87) : "memory");
    }
  }
  ~DefaultFloats() {
    if (has_own_x87_) [[unlikely]] {
      asm volatile("fldenv %0" ::"m"(x87_) : "memory");
    }
    if (read_mxcsr() != mxcsr_) write_mxcsr(mxcsr_);
  }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  struct X87Environment {
    std::uint32_t words[7];
  };
  std::uint32_t mxcsr_;
  bool has_own_x87_;
  X87Environment x87_;
};

// One of FE_TONEAREST and so on for our arithmetic, until it ends.
class RoundingScope {
 public:
  explicit RoundingScope(int mode) : saved_(read_mxcsr()) {
    // <fenv.h> has the two bits where the x87 control word has them.
    write_mxcsr((saved_ & ~kRounding) | static_cast<std::uint32_t>(mode) << 3);
  }
  ~RoundingScope() { write_mxcsr(saved_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  static constexpr std::uint32_t kRounding = 0x6000;
  static_assert(FE_UPWARD << 3 == 0x4000 && FE_DOWNWARD << 3 == 0x2000);
  static_assert(FE_TOWARDZERO << 3 == 0x6000 && FE_TONEAREST == 0);
  std::uint32_t saved_;
};

#else

class DefaultFloats {
 public:
  DefaultFloats() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&saved_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::fenv_t saved_;
};

class RoundingScope {
 public:
  explicit RoundingScope(int mode) : saved_(std::fegetround()) { std::fesetround(mode); }
  ~RoundingScope() { std::fesetround(saved_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int saved_;
};

#endif

}  // namespace softgpu
