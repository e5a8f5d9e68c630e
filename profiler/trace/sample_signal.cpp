// SPDX-License-Identifier: Apache-2.0
// glibc's handler of the signal returns normally and looks at nothing but signals by tgkill() of
// its own process, so that neither one in front of it nor a sample that it gets does harm. That of
// signal 32, the other one that glibc keeps, unwinds the stack of a cancelled thread instead.
#include "profiler/trace/sample_signal.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace profiler {
namespace {

// The kernel's `struct sigaction`: libc's functions refuse the signal.
struct Action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

// A handler may be at work with one that was replaced, so none is written twice.
constexpr std::size_t kMostEarlier = 8;
constinit Action g_earlier[kMostEarlier]{};
constinit std::size_t g_earlier_count = 0;
// Release pairs with the acquire of pass_on().
constinit std::atomic<const Action*> g_next{nullptr};
constinit std::atomic<SampleTaker> g_taker{nullptr};

#if defined(__x86_64__)
// As libc's, byte for byte: debuggers and unwinders know a handler's caller by its code.
__asm__(
    ".pushsection .text\n"
    ".balign 16\n"
    ".type cajeta_sample_return, @function\n"
    ".local cajeta_sample_return\n"
    "nop\n"
    "cajeta_sample_return:\n"
    "  movq $15, %rax\n"
    "  syscall\n"
    ".size cajeta_sample_return, . - cajeta_sample_return\n"
    ".popsection\n");
extern "C" [[gnu::visibility("hidden")]] void cajeta_sample_return();
constexpr unsigned long kRestorerFlag = 0x04000000;
constexpr auto kRestorer = &cajeta_sample_return;
#else
constexpr unsigned long kRestorerFlag = 0;
constexpr void (*kRestorer)() = nullptr;
#endif

long kernel_action(const Action* next, Action* before) noexcept {
  return syscall(SYS_rt_sigaction, kSampleSignal, next, before, sizeof next->mask);
}

// Not SIG_DFL or SIG_IGN.
bool is_function(const Action& action) noexcept {
  return reinterpret_cast<std::uintptr_t>(action.handler) > 1;
}

// With the signals blocked that would have been without us.
void pass_on(int number, siginfo_t* info, void* context) noexcept {
  const Action* next = g_next.load(std::memory_order_acquire);
  if (next == nullptr || !is_function(*next)) return;
  std::uint64_t mask;
  std::memcpy(&mask, &static_cast<ucontext_t*>(context)->uc_sigmask, sizeof mask);
  mask |= next->mask | std::uint64_t{1} << (number - 1);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
  next->handler(number, info, context);
}

void on_signal(int number, siginfo_t* info, void* context) noexcept {
  const SampleTaker taker = g_taker.load(std::memory_order_acquire);
  if (taker == nullptr || !taker(*info, context)) pass_on(number, info, context);
}

bool is_ours(const Action& action) noexcept {
  return action.handler == &on_signal;
}

// Null: too many different ones.
const Action* keep_earlier(const Action& before) noexcept {
  for (std::size_t i = 0; i < g_earlier_count; ++i) {
    if (std::memcmp(&g_earlier[i], &before, sizeof before) == 0) return &g_earlier[i];
  }
  if (g_earlier_count == kMostEarlier) return nullptr;
  g_earlier[g_earlier_count] = before;
  return &g_earlier[g_earlier_count++];
}

bool go_in_front_of(const Action& before) noexcept {
  const Action* next = keep_earlier(before);
  if (next == nullptr) return false;
  g_next.store(next, std::memory_order_release);
  // SA_ONSTACK: a thread may run on a stack that is too small, and has another for signals then.
  // All signals: a handler of the program that interrupted ours might not come back.
  const Action ours{&on_signal, SA_SIGINFO | SA_RESTART | SA_ONSTACK | kRestorerFlag, kRestorer,
                    ~std::uint64_t{0}};
  return kernel_action(&ours, nullptr) == 0;
}

}  // namespace

bool take_sample_signal(SampleTaker taker) noexcept {
  g_taker.store(taker, std::memory_order_release);
  Action action{};
  if (kernel_action(nullptr, &action) != 0) return false;
  return is_ours(action) || go_in_front_of(action);
}

bool keep_sample_signal() noexcept {
  Action action{};
  if (kernel_action(nullptr, &action) != 0) return false;
  if (is_ours(action)) return true;
  return is_function(action) && go_in_front_of(action);
}

}  // namespace profiler
