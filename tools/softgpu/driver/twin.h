// SPDX-License-Identifier: Apache-2.0
// Entries that exist twice: the plain name, where stream 0 is the legacy stream, and the _ptsz or
// _ptds name, where it is the calling thread's own. One body serves both; it reads kPerThread.
#pragma once

#include "tools/softgpu/driver/entry.h"

// clang-format off
#define SOFTGPU_ENTRY_FLAVOUR(symbol, is_per_thread, parameters, ...)                      \
  extern "C" CUresult CUDAAPI symbol parameters {                                          \
    [[maybe_unused]] constexpr bool kPerThread = is_per_thread;                            \
    return softgpu::call(softgpu::EntryId::symbol, [&]() -> CUresult __VA_ARGS__);         \
  }
#define SOFTGPU_TWIN_ENTRY(symbol, twin, parameters, ...)            \
  SOFTGPU_ENTRY_FLAVOUR(symbol, false, parameters, __VA_ARGS__)      \
  SOFTGPU_ENTRY_FLAVOUR(twin, true, parameters, __VA_ARGS__)
// clang-format on
