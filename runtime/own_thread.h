// SPDX-License-Identifier: Apache-2.0
// Threads of ours in a foreign process. They inherit nothing from the thread that happens to start
// them: no signal reaches them, they run as SCHED_OTHER at no worse than nice 0, on every CPU that
// the process had when the library was loaded, on a stack of a size of their own. Any thread; no
// allocation of ours; keeps errno.
#pragma once

#include <pthread.h>

namespace runtime {

// Starts `run(nullptr)`. 0, or the error of pthread_create().
[[nodiscard]] int start_own_thread(pthread_t* thread, void* (*run)(void*)) noexcept;

// Does the calling thread have a real-time policy? Threads of ours may then never get a core from
// it. A system call.
bool is_real_time_thread() noexcept;

// Could a thread of this process give itself such a policy? A few system calls.
bool may_become_real_time() noexcept;

}  // namespace runtime
