// SPDX-License-Identifier: Apache-2.0
// CAJETA_SOFTGPU_LOG: one line per finished operation,
//   <context>.<stream> <sequence> <text>
// where neither numbers nor text depend on when the operation ran: two runs compare equal after
// sorting by the first two columns. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace softgpu {

// Operations must describe themselves, for the log or for a trace (driver/trace.h).
bool is_logging();

// Appends one line (one write call, so that a killed process leaves whole lines), if there is a
// log.
void log_operation(std::uint64_t stream_ordinal, std::uint64_t sequence, std::string_view text);

// Hexadecimal bytes, with every aligned 8-byte word that points into a live allocation written as
// a<ordinal>+<offset>. Call it when the operation is made: the allocation may be gone when it
// finishes.
std::string describe_bytes(const void* bytes, std::size_t size);
// One address the same way; host addresses that are no allocation are written as "host".
std::string describe_address(std::uint64_t address);

}  // namespace softgpu
