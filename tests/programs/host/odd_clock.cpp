// SPDX-License-Identifier: Apache-2.0
// Preloaded: a clock that stands still (ODD_CLOCK=still), goes backwards (back) or leaps ahead by a
// day at every look (leap).
#include <sys/time.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> g_looks{0};

timespec odd_time() {
  static const char* const how = std::getenv("ODD_CLOCK");
  const long looks = g_looks.fetch_add(1);
  timespec time{1'577'836'800, 0};
  if (how != nullptr && std::strcmp(how, "back") == 0) time.tv_sec -= looks;
  if (how != nullptr && std::strcmp(how, "leap") == 0) time.tv_sec += looks * 86'400;
  return time;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int clock_gettime(clockid_t, timespec* time) noexcept {
  *time = odd_time();
  return 0;
}

[[gnu::visibility("default")]] int gettimeofday(timeval* time, void*) noexcept {
  *time = {odd_time().tv_sec, 0};
  return 0;
}

[[gnu::visibility("default")]] time_t time(time_t* out) noexcept {
  const time_t now = odd_time().tv_sec;
  if (out != nullptr) *out = now;
  return now;
}

}  // extern "C"
