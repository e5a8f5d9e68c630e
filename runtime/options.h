// SPDX-License-Identifier: Apache-2.0
// The environment settings of the library, read once at start from one table. A wrong value warns
// once, names the legal ones and leaves the default. Immutable after read_options(); any thread.
#pragma once

#include <cstdint>

namespace runtime {

enum class DeferMode : std::uint8_t {
  kUnset,  // only streams that asked for it through the API
  kNever,  // CAJETA_XPU_DEFER=0: the A/B control, beats the API
  kAll,    // every stream from its first launch
};

struct Options {
  DeferMode defer = DeferMode::kUnset;
  // How long a queued launch may wait for an observation, microseconds.
  std::uint64_t deadline_us = 200;
  // Memory that recordings may hold, bytes: about 10 KB a graph node plus our own copies.
  std::uint64_t graph_bytes = 256ull << 20;
  bool disabled = false;         // CAJETA_XPU_DISABLE=1: loaded, does nothing
  bool driver_profile = false;   // CAJETA_XPU_DRIVER_PROFILE=1
  bool launch_blocking = false;  // CUDA_LAUNCH_BLOCKING=1 turns deferral off
  const char* report = nullptr;  // CAJETA_XPU_REPORT, null: stderr
  const char* log_lookups =
      nullptr;  // CAJETA_XPU_LOG_LOOKUPS: file that lists every symbol look-up
};

// Reads the environment. Pure apart from warnings, so tests call it again and again.
Options read_options() noexcept;

}  // namespace runtime
