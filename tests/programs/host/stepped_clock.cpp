// SPDX-License-Identifier: Apache-2.0
// The clocks that a program's libc shows are stepped or stand still while it works.
// stepped_clock forward|back|still|zero
// The third time that a thread of ours looks at the wall clock it is an hour ahead ("forward"), or
// was ("back"); or all clocks but those of CPU time show one moment.
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "tests/programs/host/tiny.h"

namespace {

constexpr time_t kHour = 3600;
std::atomic<int> g_step{0};    // hours that the wall clock is stepped by
std::atomic<int> g_still{-1};  // the seconds that clocks show; -1: they run

bool is_tracing_thread() {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  return std::strcmp(name, "cajeta-trace") == 0;
}

bool is_cpu_clock(clockid_t clock) {
  return clock < 0 || clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t clock,
                                                            timespec* now) noexcept {
  if (g_still >= 0 && !is_cpu_clock(clock)) {
    *now = {g_still.load(), 0};
    return 0;
  }
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME && g_step != 0 && is_tracing_thread()) {
    static std::atomic<int> looks{0};
    const int look = ++looks;
    if (g_step > 0 ? look > 3 : look == 3) now->tv_sec += kHour;
  }
  return static_cast<int>(result);
}

int main(int count, char** arguments) {
  if (count != 2) return 7;
  tiny::start();
  const char* how = arguments[1];
  if (std::strcmp(how, "forward") == 0) g_step = 1;
  if (std::strcmp(how, "back") == 0) g_step = -1;
  if (std::strcmp(how, "still") == 0) g_still = 1'577'836'800;
  if (std::strcmp(how, "zero") == 0) g_still = 0;
  timespec now{};
  // More launches than the device's ring holds, unless it is emptied meanwhile.
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 100; ++j) tiny::bump(1);
    tiny::cell();
    const timespec nap{0, 2'000'000};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, nullptr);
  }
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  std::printf("%u\n", tiny::cell());
  return 0;
}
