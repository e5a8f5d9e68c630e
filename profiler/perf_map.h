// SPDX-License-Identifier: Apache-2.0
// Names of code made at run time, from the map that JITs and Python's trampolines write for
// perf(1): /tmp/perf-PID.map, lines of start, size (hex) and name. Read when a report is written;
// no malloc, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace profiler {

// The name of the code at the address, cut to `capacity`; false when the map has none. Where ranges
// overlap the last one written holds: code that was thrown away leaves its lines behind.
[[nodiscard]] bool find_in_perf_map(int pid, std::uintptr_t address, char* name,
                                    std::size_t capacity) noexcept;

// Hands over every range of the map with its name, in the order of the file.
void read_perf_map(int pid,
                   void (*take)(void* context, std::uintptr_t start, std::uint64_t size,
                                std::string_view name),
                   void* context) noexcept;

}  // namespace profiler
