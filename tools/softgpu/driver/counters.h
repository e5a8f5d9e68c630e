// SPDX-License-Identifier: Apache-2.0
// CAJETA_SOFTGPU_COUNTERS: calls per entry and misuse per kind ("misuse: bad free") as a JSON
// object, kept up to date in a shared mapping of the file, so that it is right after _exit and
// after a signal. Any thread; no allocation after the first call.
#pragma once

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/misuse.h"

namespace softgpu {

// Maps the file if one is asked for. True if calls are to be counted.
bool start_counters();
void count_call(EntryId id);
void count_misuse(Misuse kind);
// Child of a fork: counts no more.
void stop_counters();

}  // namespace softgpu
