// SPDX-License-Identifier: Apache-2.0
// Streams: order of work, handles 0, 1 and 2, and what legacy-stream rules demand. Driver lock held
// throughout.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/engine.h"

namespace softgpu {

// Priorities: a smaller number is more urgent. Hints only.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

enum class StreamKind {
  kLegacy,
  kPerThread,  // joins with the legacy stream, as a blocking one
  kBlocking,
  kNonBlocking,  // CU_STREAM_NON_BLOCKING
};

struct Stream {
  CUstream handle = nullptr;  // CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a table handle
  StreamKind kind = StreamKind::kBlocking;
  Context* context = nullptr;
  // Identity in the log: context ordinal << 32 | n; n is 0 for the legacy stream, 1, 2, ... for
  // created streams in creation order, 1 << 31 | thread ordinal for per-thread ones.
  std::uint64_t ordinal = 0;
  std::uint64_t id = 0;        // cuStreamGetId
  std::uint64_t sequence = 0;  // operations submitted so far: the next one's sequence number
  unsigned flags = 0;          // as given to cuStreamCreate
  int priority = 0;
  bool is_destroyed = false;  // the handle is gone, work may still be pending

  // Later work waits for all of these. Done ones may linger; see is_idle().
  std::vector<std::shared_ptr<Operation>> tail;
  // Of a legacy stream, when tracing: tails of destroyed streams that its next work comes after.
  std::vector<std::shared_ptr<Operation>> retired;

  // Kernel and graph launches that are not known to be done, oldest first; kept only where a depth
  // is asked for (Options::queue_depth).
  std::deque<std::shared_ptr<Operation>> launches;

  StreamCapture capture;  // kept by driver/capture.cpp

  CUaccessPolicyWindow access_window{};
  CUsynchronizationPolicy sync_policy = CU_SYNC_POLICY_AUTO;
  CUlaunchMemSyncDomainMap domain_map{0, 1};
  CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;

  unsigned polls = 0;  // NOT_READY answers since the last progress (driver/engine.cpp bounds them)

  bool is_blocking() const {
    return kind == StreamKind::kBlocking || kind == StreamKind::kPerThread;
  }
};

using StreamTable = ObjectTable<Stream, CUstream, HandleKind::kStream>;
StreamTable& streams();

Stream& create_stream(Context& context, unsigned flags, int priority);
void destroy_stream(Stream& stream);

// The stream a handle means in the current context: 0 is the legacy stream, or this thread's own
// when `per_thread_default` (the _ptsz and _ptds entries); 1 and 2 are CU_STREAM_LEGACY and
// CU_STREAM_PER_THREAD. Fails with INVALID_HANDLE, INVALID_CONTEXT, CONTEXT_IS_DESTROYED or the
// context's sticky error.
Stream& resolve_stream(CUstream handle, bool per_thread_default);
// As above without looking at the sticky error (cuStreamDestroy, getters).
Stream& resolve_stream_any(CUstream handle, bool per_thread_default);
std::shared_ptr<Stream> shared_stream(Stream& stream);

// Streams of `context` that legacy-stream work joins with: blocking and per-thread ones.
std::vector<Stream*> blocking_streams(Context& context);

// Every operation the next operation of `stream` must wait for: its tail and what the legacy rules
// add. Done ones are left out, unless a trace wants to know of them.
std::vector<std::shared_ptr<Operation>> stream_dependencies(Stream& stream);

// What cuCtxWaitEvent demands of work in a context.
void add_context_waits(const Context& context, std::vector<std::shared_ptr<Operation>>* all);
// What everything submitted to a context and its green ones has to end with.
std::vector<std::shared_ptr<Operation>> context_tails(Context& context);

// No unfinished work on the stream itself.
bool is_idle(const Stream& stream);

// Frees what a destroyed or reset context owned.
void destroy_streams(Context& context);
// Gives a new or revived context its legacy stream.
void make_legacy_stream(Context& context);

}  // namespace softgpu
