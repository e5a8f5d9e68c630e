// SPDX-License-Identifier: Apache-2.0
// The environment settings of the library, copied once, at the first call, from one table. A wrong
// value warns once, names the legal ones and leaves the default. Immutable afterwards; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/call_kind.h"
#include "runtime/process_start.h"

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
  bool disabled = false;        // CAJETA_XPU_DISABLE=1: loaded, does nothing
  bool driver_profile = false;  // CAJETA_XPU_DRIVER_PROFILE=1
  // CAJETA_XPU_DRIVER_SITES: from which length on the site of a call is kept, nanoseconds by kind;
  // kNoSites: never. Any site switches the driver profile on.
  static constexpr std::uint64_t kNoSites = UINT64_MAX;
  std::uint64_t site_thresholds_ns[static_cast<std::size_t>(CallKind::kCount)] = {
      kNoSites, kNoSites, kNoSites, kNoSites, kNoSites};
  bool keeps_sites = false;
  bool walks_frame_pointers = false;  // CAJETA_XPU_SITES_WALK=frame-pointers
  bool launch_blocking = false;       // CUDA_LAUNCH_BLOCKING=1 turns deferral off
  // Paths are absolute, and texts of the Environment that they were read from.
  const char* report = nullptr;      // CAJETA_XPU_REPORT, null: stderr
  std::uint64_t report_every_s = 0;  // CAJETA_XPU_REPORT_EVERY; 0: only at the end
  int report_signal = 0;             // CAJETA_XPU_REPORT_SIGNAL; 0: none
  const char* log_lookups =
      nullptr;  // CAJETA_XPU_LOG_LOOKUPS: file that lists every symbol look-up

  bool profiler = false;                      // CAJETA_PROFILER: anything that does not say "off"
  bool times_launches = true;                 // CAJETA_PROFILER_GPU
  std::uint64_t sample_hz = 1000;             // CAJETA_PROFILER_HZ, of a thread's CPU time
  std::uint64_t sample_ring = 4096;           // CAJETA_PROFILER_RING, samples of a thread
  std::uint64_t launch_ring = 8192;           // CAJETA_PROFILER_GPU_RING, launches of a context
  std::uint64_t trace_bytes = 512ull << 20;   // CAJETA_PROFILER_BYTES, of the file
  const char* trace_file = "cajeta.pftrace";  // CAJETA_PROFILER_OUT
  std::uint32_t refused = 0;  // a bit for each row of settings() whose text was wrong
  // An armed device profiler keeps every launch direct: each is attributed as it is submitted.
  bool is_timing_launches() const noexcept { return profiler && times_launches; }
};

// A row of the table: what the library, its command line tool and the manual know of a setting.
struct Setting {
  const char* name;
  const char* legal;
  const char* by_default;
  const char* purpose;  // one sentence
  // False leaves the options as they were.
  bool (*parse)(const char* text, Options* options) noexcept;
};
std::span<const Setting> settings() noexcept;

// Reads the copy, and keeps there what it makes of it.
Options read_options(Environment* environment) noexcept;

// What the process was told: read by the first call of either, for good. A program may change its
// environment until its first call of the driver.
const Options& process_options() noexcept;
const Environment& process_environment() noexcept;

// Says which settings are not understood. Apart from reading: a process that never calls the driver
// prints nothing.
void warn_of_refused(const Options& options, const Environment& environment) noexcept;

}  // namespace runtime
