// SPDX-License-Identifier: Apache-2.0
// The lock of a queue, and what the end of the process may expect of it.
#include "runtime/lock.h"

#include <thread>

#include "tests/unit/catch.h"

using runtime::QueueLock;

TEST_CASE("a lock is held by one thread at a time") {
  QueueLock lock;
  long count = 0;
  const auto add = [&] {
    for (int i = 0; i < 20000; ++i) {
      const runtime::QueueGuard guard(lock);
      ++count;
    }
  };
  std::thread one(add), other(add);
  one.join();
  other.join();
  CHECK(count == 40000);
}

TEST_CASE("nobody waits for a lock that the thread itself holds") {
  QueueLock lock;
  constexpr int kDays = 1'000'000'000;
  REQUIRE(lock.lock_within(kDays));
  CHECK_FALSE(lock.lock_within(kDays));
  lock.unlock();
  CHECK(lock.try_lock());
  lock.unlock();
}

TEST_CASE("another thread's lock is waited for") {
  QueueLock lock;
  lock.lock();
  std::atomic<bool> has_it{false};
  std::thread other([&] {
    has_it = lock.lock_within(60'000);
    lock.unlock();
  });
  CHECK_FALSE(has_it);
  lock.unlock();
  other.join();
  CHECK(has_it);
  std::thread holder([&] { lock.lock(); });
  holder.join();
  CHECK_FALSE(lock.lock_within(1));
}
