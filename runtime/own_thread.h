// SPDX-License-Identifier: Apache-2.0
// Threads of ours in a foreign process: they take no signal of the program. Any thread.
#pragma once

#include <pthread.h>

namespace runtime {

// Starts `run(nullptr)` with every signal blocked. 0, or the error of pthread_create().
[[nodiscard]] int start_own_thread(pthread_t* thread, void* (*run)(void*)) noexcept;

}  // namespace runtime
