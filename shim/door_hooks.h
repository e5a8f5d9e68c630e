// SPDX-License-Identifier: Apache-2.0
// Hooks of the entries that let an application in: initialisation and symbol queries. Found by
// Thunk like those of hooks.h. Any thread; they may run before cuInit.
#pragma once

#include "runtime/driver.h"

namespace shim {

struct DoorHooks {
  static CUresult CUDAAPI cuInit(unsigned int flags) noexcept;
  static CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                           cuuint64_t flags) noexcept;
  static CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                              cuuint64_t flags,
                                              CUdriverProcAddressQueryResult* status) noexcept;
};

}  // namespace shim
