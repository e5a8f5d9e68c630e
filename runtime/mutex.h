// SPDX-License-Identifier: Apache-2.0
// std::mutex for code without exceptions: locking a valid default mutex cannot fail, so its result
// is not looked at. Never held across a call into the program; see each user for what it guards.
#pragma once

#include <pthread.h>

namespace runtime {

class Mutex {
 public:
  constexpr Mutex() noexcept = default;
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class MutexGuard {
 public:
  explicit MutexGuard(Mutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~MutexGuard() { mutex_.unlock(); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace runtime
