// SPDX-License-Identifier: Apache-2.0
// Marks the calling thread as being inside the library: while the depth is not 0, every wrapper and
// every look-up door forwards untouched. Hold one around our own driver calls, dlopen, and any code
// that holds one of our locks. Initial-exec thread-local: readable before libc has finished
// starting, never allocates.
#pragma once

namespace runtime {

extern constinit thread_local int t_reentry_depth [[gnu::tls_model("initial-exec")]];

inline bool in_own_call() noexcept {
  return t_reentry_depth != 0;
}

class ReentryGuard {
 public:
  ReentryGuard() noexcept { ++t_reentry_depth; }
  ~ReentryGuard() { --t_reentry_depth; }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;
};

}  // namespace runtime
