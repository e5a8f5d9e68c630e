// SPDX-License-Identifier: Apache-2.0
// A program that launches through the runtime as the hooks do, over the fake driver, and remembers
// what it asked for.
#pragma once

#include "graphs/replayer.h"
#include "runtime/deferral.h"
#include "runtime/flush.h"
#include "runtime/launch.h"
#include "tests/unit/catch.h"
#include "tests/unit/fake_driver.h"

struct Program {
  fake::Driver driver;
  std::vector<fake::Ran> asked;
  std::uint64_t launches = 0;

  explicit Program(std::uint64_t budget_bytes = 256u << 20,
                   std::uint64_t deadline_us = 3'600'000'000) {
    static int contexts = 0;
    driver.current = fake::Driver::context(++contexts);
    runtime::forget_thread_context();
    runtime::set_sink(graphs::start_replayer(budget_bytes));
    runtime::Options options;
    options.defer = runtime::DeferMode::kAll;
    options.deadline_us = deadline_us;
    runtime::start(options);
    before = runtime::snapshot_counters();
  }

  ~Program() {
    runtime::flush_all(runtime::EntryId::cuCtxSynchronize);
    runtime::context_dies(*runtime::current_context());
    runtime::context_gone(*runtime::current_context());
    runtime::forget_thread_context();
    runtime::flush_at_exit();
  }

  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream made = driver.add_stream(flags, driver.current);
    runtime::stream_created(made, runtime::current_context(), flags);
    return made;
  }

  template <typename... Args>
  CUresult launch(CUstream stream, CUfunction function, unsigned grid, Args... args) {
    return launch_with({}, stream, function, grid, args...);
  }

  template <typename... Args>
  CUresult launch_with(const runtime::LaunchAttributes& attributes, CUstream stream,
                       CUfunction function, unsigned grid, Args... args) {
    void* params[] = {static_cast<void*>(&args)..., nullptr};
    {
      std::lock_guard guard(driver.mutex);
      asked.push_back(
          {stream, function, grid, driver.pack(function, params, nullptr), false, attributes});
    }
    CUresult result = submit({function, {{grid, 1, 1}, {32, 1, 1}, 0}, stream, params, attributes});
    // The call has returned: what the program does with its variables is its own business.
    ((std::memset(static_cast<void*>(&args), 0xEE, sizeof args)), ...);
    return result;
  }

  CUresult submit(const runtime::Launch& launch) {
    ++launches;
    if (runtime::queue_expected(launch.key(), launch.shape, launch.stream, launch.kernel_params)) {
      return CUDA_SUCCESS;
    }
    runtime::LaunchOutcome outcome = runtime::queue_launch(launch, nullptr, false);
    if (outcome.is_queued) return outcome.result;
    runtime::flush_for_launch(launch.stream, false, outcome.reason);
    return runtime::launch_now(launch.function, launch.shape, launch.attributes, launch.stream,
                               launch.kernel_params, nullptr);
  }

  CUresult sync(CUstream stream) {
    runtime::flush_for_stream_wait(stream, false, runtime::EntryId::cuStreamSynchronize);
    return runtime::tell_of_stream(stream, false, CUDA_SUCCESS);
  }

  // The counters since the program began; the invariant of counters.h is checked on the way.
  runtime::CounterSnapshot counters() const {
    runtime::CounterSnapshot now = runtime::snapshot_counters();
    now.queued -= before.queued;
    now.replayed -= before.replayed;
    now.direct -= before.direct;
    now.graphs_built -= before.graphs_built;
    now.graphs_evicted -= before.graphs_evicted;
    now.graph_launches -= before.graph_launches;
    now.patches -= before.patches;
    now.flushes -= before.flushes;
    for (std::size_t i = 0; i < std::size(now.direct_by_reason); ++i) {
      now.direct_by_reason[i] -= before.direct_by_reason[i];
    }
    CHECK(now.replayed + now.direct + now.pending == launches);
    return now;
  }

  std::uint64_t direct(runtime::DirectReason reason) const {
    return counters().direct_by_reason[static_cast<std::size_t>(reason)];
  }

  runtime::CounterSnapshot before;
};
