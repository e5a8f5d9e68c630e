// SPDX-License-Identifier: Apache-2.0
// CAJETA_SOFTGPU_TRACE: writes what was submitted, touched, waited for and ordered, in the format
// of tools/softgpu/trace_format.h. Driver lock held for all functions. Without the option an
// operation costs one test of a flag. A forked child writes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/softgpu/ptx/footprint.h"

namespace softgpu {

class Operation;
struct Context;
struct Event;
struct Stream;

bool is_tracing();

// What a trace keeps of an operation until it is done.
struct OperationTrace {
  std::uint64_t number = 0;  // 0: not submitted
  bool has_identity = false;
  std::uint64_t stream_ordinal = 0, sequence = 0;
  ptx::Footprint footprint;
};
// Null when not tracing.
std::unique_ptr<OperationTrace> new_operation_trace();

// Before its dependencies are reduced to those that are not done.
void trace_submitted(const Operation& operation);
void trace_done(const Operation& operation);
// One of the steps that an operation is made of: a conditional node's. In order, before its end.
void trace_step(const Operation& operation, std::string_view text, const ptx::Footprint& accesses);

using Goal = std::shared_ptr<Operation>;
using Goals = std::vector<Goal>;

// One host call that waits, from here to the end of the scope. The entry that runs names it.
class TracedWait {
 public:
  explicit TracedWait(const Goal& goal);
  explicit TracedWait(const Goals& goals);
  explicit TracedWait(const Context& context);  // for everything in it
  ~TracedWait();
  TracedWait(const TracedWait&) = delete;
  TracedWait& operator=(const TracedWait&) = delete;

 private:
  std::uint64_t number_ = 0;  // 0: not tracing
};

void trace_query(const Stream& stream, const Goals& goals, bool is_done);
void trace_query(const Event& event, const Goal& record, bool is_done);

}  // namespace softgpu
