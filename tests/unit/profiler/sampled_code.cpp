// SPDX-License-Identifier: Apache-2.0
// Code for the sampler to find: a library of its own, as the sampler leaves out the object that it
// is in itself. Built with unwind tables and no frame pointers, and the other way round.
#include <alloca.h>
#include <signal.h>
#include <time.h>

#include <cstdint>
#include <cstring>

#define SAMPLED extern "C" [[gnu::visibility("default"), gnu::noinline]]

namespace {

std::uint64_t cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

SAMPLED std::uint64_t sampled_work(std::uint64_t seed) {
  for (int i = 0; i < 200'000; ++i) seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed;
}

SAMPLED std::uint64_t sampled_burn(unsigned cpu_ms) {
  const std::uint64_t end = cpu_ns() + cpu_ms * std::uint64_t{1'000'000};
  std::uint64_t value = cpu_ms;
  while (cpu_ns() < end) value = sampled_work(value);
  return value;
}

// `+ 1` and `volatile`: a last call would become a jump, a recursion a loop.
SAMPLED std::uint64_t sampled_caller(unsigned cpu_ms) {
  return sampled_burn(cpu_ms) + 1;
}

SAMPLED std::uint64_t sampled_recursion(unsigned depth, unsigned cpu_ms) {
  if (depth <= 1) return sampled_burn(cpu_ms) + 1;
  volatile std::uint64_t value = sampled_recursion(depth - 1, cpu_ms);
  return value + 1;
}

// Its frame is aligned and of unknown size: compilers keep its address in another register or in
// memory.
SAMPLED std::uint64_t sampled_aligned(unsigned cpu_ms, unsigned bytes) {
  alignas(64) volatile unsigned char block[64];
  void* more = alloca(bytes);
  std::memset(more, 1, bytes);
  block[0] = *static_cast<unsigned char*>(more);
  return sampled_burn(cpu_ms) + block[0];
}

// More stack than is copied at once.
SAMPLED std::uint64_t sampled_large_frame(unsigned cpu_ms) {
  volatile unsigned char block[20'000];
  block[0] = 1;
  block[sizeof block - 1] = 1;
  return sampled_burn(cpu_ms) + block[0];
}

SAMPLED std::uint64_t sampled_raise(int signal) {
  return raise(signal) == 0 ? 1 : 0;
}

#if defined(__x86_64__)
// Without unwind tables its frame pointer is all there is to go by, and it is none.
SAMPLED void sampled_bogus_frame(std::uintptr_t frame) {
  std::uintptr_t saved;
  std::uint64_t rounds = 2'000'000;
  asm volatile(
      "mov %%rbp, %[saved]\n"
      "mov %[frame], %%rbp\n"
      "1: dec %[rounds]\n"
      "jnz 1b\n"
      "mov %[saved], %%rbp\n"
      : [saved] "=&r"(saved), [rounds] "+&r"(rounds)
      : [frame] "r"(frame)
      : "cc");
}
#endif
