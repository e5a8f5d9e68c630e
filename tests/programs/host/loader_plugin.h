// SPDX-License-Identifier: Apache-2.0
// What loader.cpp hands to its plugin.
#pragma once

#include <cuda.h>

#include <cstddef>

inline constexpr const char* kLoaderNames[] = {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                               "cuStreamCreate", "cuStreamSynchronize"};
inline constexpr std::size_t kLoaderEntries = 4;

struct LoaderTable {
  void* entries[kLoaderEntries];  // null: the plugin uses its own
};
extern "C" LoaderTable* loader_table();
