// SPDX-License-Identifier: Apache-2.0
#include "runtime/own_thread.h"

#include <signal.h>

namespace runtime {

int start_own_thread(pthread_t* thread, void* (*run)(void*)) noexcept {
  // Blocked before the thread is there: it inherits the mask.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failure = pthread_create(thread, nullptr, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failure;
}

}  // namespace runtime
