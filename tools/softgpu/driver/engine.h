// SPDX-License-Identifier: Apache-2.0
// The device: a set of operations with dependencies, run under an order policy. Host calls only
// enqueue; what runs when is the policy's choice among ready operations (late, early, random:SEED,
// free). All functions are called with the driver lock held (driver/state.h) unless they say
// otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tools/softgpu/driver/trace.h"
#include "tools/softgpu/driver/work.h"

namespace softgpu {

struct Stream;

// One unit of device work. Ready when every dependency is done.
class Operation {
 public:
  virtual ~Operation() = default;
  // Runs a bounded piece. True when finished. Called without the driver lock; never re-entered.
  virtual bool step() = 0;
  // Called once with the driver lock held, after the last step: set fault state, complete events,
  // write the log line.
  virtual void finish() {}

  // Nothing it could do now (waits for a value or a host function): the engine turns to other
  // operations.
  virtual bool is_blocked() const { return false; }
  // Skipped when its context has a sticky error: no step(), only finish(). Event records and waits
  // are not.
  virtual bool is_skipped_on_error() const { return true; }
  // What the log and a trace say of it; empty when neither is wanted.
  virtual std::string_view text() const { return {}; }

  std::vector<std::shared_ptr<Operation>> dependencies;  // cleared when done
  Context* context = nullptr;                            // whose sticky error skips it
  bool done = false;
  bool was_skipped = false;  // set before finish(): step() never ran to the end
  const std::unique_ptr<OperationTrace> trace = new_operation_trace();  // null: not tracing

 private:
  friend class Engine;
  enum class State : std::uint8_t { kNew, kWaiting, kReady, kRunning, kDone };
  std::vector<std::shared_ptr<Operation>> dependents_;
  std::size_t unmet_ = 0;       // dependencies not done
  std::uint64_t enqueued_ = 0;  // enqueue order
  State state_ = State::kNew;
};

// Makes the operation that performs `work` (engine_operations.cpp; kernels in kernel_operation.cpp;
// a child graph is expanded by graph launch and never reaches this). `stream_ordinal` and
// `sequence` identify it in the log.
std::shared_ptr<Operation> make_operation(const Work& work, Context& context,
                                          std::uint64_t stream_ordinal, std::uint64_t sequence);

// Adds work to a stream in stream order, after what legacy-stream rules demand. If the stream is
// capturing, the work becomes a graph node instead (driver/capture.h). Returns what the API call
// must return.
CUresult submit(Stream& stream, Work work);

// As submit for a stream that is known not to capture, and returns the operation. Under early order
// it has been run when this returns, unless it takes long. The lock may have been dropped
// meanwhile.
std::shared_ptr<Operation> enqueue(Stream& stream, const Work& work);

// Adds operations that already depend on each other (a graph launch): `operations` run after the
// stream's earlier work and after `after`; the stream's later work waits for all of them. Not for
// capturing streams.
void enqueue_group(Stream& stream, std::vector<std::shared_ptr<Operation>> operations,
                   const std::vector<std::shared_ptr<Operation>>& after);

// True when a kernel submitted to `stream` now would have nothing to do and nothing to wait for:
// null executor, early order, no log, stream idle, not capturing, no fault. The caller may then
// only count ++stream.sequence and return. A graph launch of n nodes may add n.
bool can_skip_kernels(const Stream& stream);

// Lets a polling host make progress: runs what the order policy grants to one query. Driver lock
// held, may be dropped. `polls` counts unanswered queries of one object; after a bounded number the
// operation is run to its end.
void progress_for_query(const std::shared_ptr<Operation>& operation, unsigned& polls);

// Blocks the host until `operation` is done, running whatever the policy picks. Drops the driver
// lock while waiting.
void wait_for(const std::shared_ptr<Operation>& operation);
// Everything ever enqueued on the stream / in the context / on the device.
void wait_for_stream(Stream& stream);
void wait_for_context(Context& context);
void wait_for_all();

}  // namespace softgpu
