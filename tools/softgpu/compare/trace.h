// SPDX-License-Identifier: Apache-2.0
// A trace in memory, and reading one. The format is in tools/softgpu/trace_format.h. Views point
// into `content`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu::compare {

enum class AccessKind : std::uint8_t { kRead, kWrite, kUpdate };

// Granules first to last, both included.
struct Access {
  std::uint64_t allocation = 0;
  std::uint64_t first = 0, last = 0;
  AccessKind kind = AccessKind::kRead;
};

enum class Outcome : std::uint8_t { kPending, kDone, kSkipped };

// Operations are named by their index: the number in the trace less one.
using OperationIndex = std::uint32_t;

struct Operation {
  std::uint64_t thread = 0;
  std::uint64_t context = 0;
  bool has_identity = false;
  std::uint64_t stream = 0;  // context << 32 | n
  std::uint64_t sequence = 0;
  std::vector<OperationIndex> after;
  std::string_view text;
  std::vector<std::string_view> steps;  // what they did, in order; conditional nodes only
  Outcome outcome = Outcome::kPending;
  std::string_view access_text;
  std::vector<Access> accesses;
};

// A waiting call, or a query.
struct Wait {
  std::uint64_t thread = 0;
  std::string_view entry;
  std::string_view object;              // queries only
  std::vector<std::uint64_t> contexts;  // for everything in them
  std::vector<OperationIndex> goals;
  std::uint64_t submitted = 0;  // queries of streams only: operations of the stream by then
  bool is_query = false;
  bool is_over = false;  // the wait ended, or the query was answered with yes
};

struct Event {
  enum class Kind : std::uint8_t { kSubmit, kBeginWait, kEndWait, kQuery };
  Kind kind = Kind::kSubmit;
  std::uint32_t index = 0;  // of the operation or wait
};

struct Trace {
  std::string content;
  std::vector<Operation> operations;
  std::vector<Wait> waits;
  std::vector<Event> events;  // in order
};

// False: `error` says why, in one line without the name of the file.
bool parse_trace(std::string content, Trace* trace, std::string* error);
bool read_trace(const std::string& path, Trace* trace, std::string* error);

}  // namespace softgpu::compare
