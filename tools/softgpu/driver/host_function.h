// SPDX-License-Identifier: Apache-2.0
// Host functions and stream callbacks: run one at a time on a thread of their own, never on a
// client's thread, which may hold a lock that the function wants. CUDA calls inside them are
// refused.
#pragma once

#include <functional>
#include <memory>

#include "tools/softgpu/driver/engine.h"

namespace softgpu {

// True on the thread that runs host functions, while it runs one.
bool is_in_host_function();

// The operation that calls `function` once; `text` is its log line.
std::shared_ptr<Operation> make_host_operation(std::function<void()> function, const char* text,
                                               std::uint64_t stream_ordinal, std::uint64_t sequence,
                                               bool runs_after_error);

// Child of a fork: the thread does not exist here.
void forget_host_thread();

}  // namespace softgpu
