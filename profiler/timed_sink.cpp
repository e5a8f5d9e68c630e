// SPDX-License-Identifier: Apache-2.0
#include "profiler/timed_sink.h"

#include "profiler/call_stats.h"
#include "profiler/clock.h"
#include "runtime/thread_state.h"

namespace profiler {
namespace {

using runtime::Batch;
using runtime::BatchSink;
using runtime::StreamQueue;

// Times one submission from construction to end().
class SubmissionTimer {
 public:
  SubmissionTimer() noexcept
      : graph_launches_(runtime::t_thread.graph_launches), start_(now_ticks()) {}

  void end(std::uint64_t launches) const noexcept {
    if (launches == 0 || !g_profile_enabled.load(std::memory_order_relaxed)) return;
    const std::uint64_t ns = ns_between(start_, now_ticks());
    const bool is_replayed = runtime::t_thread.graph_launches != graph_launches_;
    CallStats::record_batch(is_replayed ? LaunchKind::kReplayed : LaunchKind::kOneByOne, ns,
                            launches);
    ++t_submissions.count;
    t_submissions.ns += ns;
  }

 private:
  std::uint32_t graph_launches_;
  std::uint64_t start_;
};

class TimedSink final : public BatchSink {
 public:
  void stand_before(BatchSink* sink) noexcept { sink_ = sink; }

  void submit_launches(StreamQueue& queue, const runtime::Sequence& sequence, std::uint32_t first,
                       std::uint32_t last, runtime::DirectReason reason) noexcept override {
    const SubmissionTimer timer;
    sink_->submit_launches(queue, sequence, first, last, reason);
    timer.end(last - first);
  }

  void submit_batch(StreamQueue& queue, const Batch& batch) noexcept override {
    const std::uint32_t launches = batch.count - batch.submitted;
    const SubmissionTimer timer;
    sink_->submit_batch(queue, batch);
    timer.end(launches);
  }

  runtime::Sequence* recording_for(StreamQueue& queue, runtime::LaunchKey first) noexcept override {
    return sink_->recording_for(queue, first);
  }
  void purge(StreamQueue& queue, Purge what) noexcept override { sink_->purge(queue, what); }

 private:
  BatchSink* sink_ = nullptr;
};

constinit TimedSink g_timed_sink;

}  // namespace

BatchSink* time_sink(BatchSink* sink) noexcept {
  g_timed_sink.stand_before(sink);
  return &g_timed_sink;
}

}  // namespace profiler
