// SPDX-License-Identifier: Apache-2.0
// Wrappers for driver entries that have no row (a driver newer than the table):
// submit everything that is queued, then jump to the driver with every argument intact. Any thread,
// no lock.
#pragma once

namespace shim {

// The thunk for the driver's `address`, the same one each time. When all are taken: null, and
// queueing has been stopped for the process, since calls of the entry can no longer be seen.
void* unknown_entry_thunk(void* address, const char* name) noexcept;

}  // namespace shim
