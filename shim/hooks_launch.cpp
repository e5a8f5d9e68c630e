// SPDX-License-Identifier: Apache-2.0
// Launches that leave the fast path, and those that are never queued.
#include "profiler/trace/device_timer.h"
#include "shim/hooks.h"

namespace shim {

using runtime::DirectReason;

namespace {

template <EntryId id, typename... Args>
profiler::LaunchFacts facts_of_launch(Args... args) noexcept {
  profiler::LaunchFacts facts{};
  facts.entry = id;
  facts.stream = stream_of<id>(args...);
  facts.is_per_thread = row(id).per_thread_default();
  if constexpr (row(id).stream == runtime::StreamArgument::kLaunchConfig) {
    facts.function = argument<1>(args...);
    if (const CUlaunchConfig* config = argument<0>(args...)) {
      facts.shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                     {config->blockDimX, config->blockDimY, config->blockDimZ},
                     config->sharedMemBytes};
    }
  } else if constexpr (id == EntryId::cuLaunchGridAsync) {
    facts.function = argument<0>(args...);  // which keeps the block to itself
    facts.shape.grid[0] = static_cast<unsigned>(argument<1>(args...));
    facts.shape.grid[1] = static_cast<unsigned>(argument<2>(args...));
    facts.shape.grid[2] = 1;
  } else if constexpr (sizeof...(args) >= 9) {
    facts.function = argument<0>(args...);
    facts.shape = {{argument<1>(args...), argument<2>(args...), argument<3>(args...)},
                   {argument<4>(args...), argument<5>(args...), argument<6>(args...)},
                   argument<7>(args...)};
  }
  return facts;
}

// The driver's launch call, between the device profiler's events when it is armed.
template <EntryId id, typename... Args>
CUresult call_driver_timed(Args... args) noexcept {
  if (!profiler::times_launches()) [[likely]]
    return call_driver<id>(args...);
  const profiler::LaunchFacts facts = facts_of_launch<id>(args...);
  profiler::TimedSlot* slot = profiler::begin_device_time(facts);
  const CUresult result = call_driver<id>(args...);
  if (slot != nullptr) profiler::end_device_time(slot, facts, result);
  return result;
}

// Those that the device profiler does not attribute.
void count_direct(DirectReason reason, unsigned launches) noexcept {
  runtime::g_counters.count_direct(reason, launches);
  if (profiler::times_launches()) profiler::count_untimed_launches(launches);
}

// Submits a launch that is not queued, behind what is.
template <EntryId id, typename... Args>
CUresult launch_directly(DirectReason reason, Args... args) noexcept {
  {
    const ErrnoKeeper keeper;
    runtime::flush_for_launch(stream_of<id>(args...), row(id).per_thread_default(), reason);
  }
  const CUresult result = call_driver_timed<id>(args...);
  if (reason == DirectReason::kFault) runtime::launched_after_fault(result);
  return result;
}

template <EntryId id>
CUresult launch_with_config(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                            void** extra) noexcept {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) {
    return launch_directly<id>(DirectReason::kLimits, config, function, kernel_params, extra);
  }
  constexpr bool is_per_thread = row(id).per_thread_default();
  runtime::LaunchAttributes attributes;
  DirectReason reason = runtime::read_attributes(*config, &attributes);
  if (is_per_thread && reason == DirectReason::kCount && !attributes.is_plain()) {
    reason = DirectReason::kPerThreadStream;
  }
  if (reason != DirectReason::kCount) {
    return launch_directly<id>(reason, config, function, kernel_params, extra);
  }
  const runtime::LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                                   config->sharedMemBytes};
  const runtime::Launch launch{function, shape, config->hStream, kernel_params, attributes};
  if (!is_per_thread && extra == nullptr &&
      runtime::queue_expected(launch.key(), shape, config->hStream, kernel_params)) {
    return CUDA_SUCCESS;
  }
  const ErrnoKeeper keeper;
  runtime::LaunchOutcome outcome = runtime::queue_launch(launch, extra, is_per_thread);
  if (outcome.is_queued) return outcome.result;
  return launch_directly<id>(outcome.reason, config, function, kernel_params, extra);
}

template <EntryId id>
CUresult launch_graph(CUgraphExec graph, CUstream stream) noexcept {
  if (!profiler::times_launches()) [[likely]]
    return forward_with_rule<id>(graph, stream);
  before<id>(graph, stream);
  return call_driver_timed<id>(graph, stream);
}

}  // namespace

template <EntryId id>
CUresult launch_slowly(const runtime::Launch& launch, void** extra) noexcept {
  const ErrnoKeeper keeper;
  constexpr bool is_per_thread = row(id).per_thread_default();
  runtime::LaunchOutcome outcome = runtime::queue_launch(launch, extra, is_per_thread);
  if (outcome.is_queued) return outcome.result;
  const runtime::LaunchShape& shape = launch.shape;
  return launch_directly<id>(outcome.reason, launch.function, shape.grid[0], shape.grid[1],
                             shape.grid[2], shape.block[0], shape.block[1], shape.block[2],
                             shape.shared_bytes, launch.stream, launch.kernel_params, extra);
}

template CUresult launch_slowly<EntryId::cuLaunchKernel>(const runtime::Launch&, void**) noexcept;
template CUresult launch_slowly<EntryId::cuLaunchKernel_ptsz>(const runtime::Launch&,
                                                              void**) noexcept;

CUresult Hooks::cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                 void** kernel_params, void** extra) noexcept {
  return launch_with_config<EntryId::cuLaunchKernelEx>(config, function, kernel_params, extra);
}

CUresult Hooks::cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function,
                                      void** kernel_params, void** extra) noexcept {
  return launch_with_config<EntryId::cuLaunchKernelEx_ptsz>(config, function, kernel_params, extra);
}

CUresult Hooks::cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                          unsigned grid_z, unsigned block_x, unsigned block_y,
                                          unsigned block_z, unsigned shared_bytes, CUstream stream,
                                          void** kernel_params) noexcept {
  const runtime::Launch launch{
      function,
      {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes},
      stream,
      kernel_params,
      {true, {}}};
  if (runtime::queue_expected(launch.key(), launch.shape, stream, kernel_params)) {
    return CUDA_SUCCESS;
  }
  const ErrnoKeeper keeper;
  runtime::LaunchOutcome outcome = runtime::queue_launch(launch, nullptr, false);
  if (outcome.is_queued) return outcome.result;
  return launch_directly<EntryId::cuLaunchCooperativeKernel>(
      outcome.reason, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
      stream, kernel_params);
}

CUresult Hooks::cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x,
                                               unsigned grid_y, unsigned grid_z, unsigned block_x,
                                               unsigned block_y, unsigned block_z,
                                               unsigned shared_bytes, CUstream stream,
                                               void** kernel_params) noexcept {
  return launch_directly<EntryId::cuLaunchCooperativeKernel_ptsz>(
      DirectReason::kCooperative, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
      shared_bytes, stream, kernel_params);
}

CUresult Hooks::cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned count,
                                                     unsigned flags) noexcept {
  constexpr EntryId id = EntryId::cuLaunchCooperativeKernelMultiDevice;
  count_direct(DirectReason::kCooperative, count);
  return forward_with_rule<id>(list, count, flags);
}

CUresult Hooks::cuLaunch(CUfunction function) noexcept {
  count_direct(DirectReason::kLegacyLaunch, 1);
  return forward_with_rule<EntryId::cuLaunch>(function);
}

CUresult Hooks::cuLaunchGrid(CUfunction function, int width, int height) noexcept {
  count_direct(DirectReason::kLegacyLaunch, 1);
  return forward_with_rule<EntryId::cuLaunchGrid>(function, width, height);
}

CUresult Hooks::cuLaunchGridAsync(CUfunction function, int width, int height,
                                  CUstream stream) noexcept {
  return launch_directly<EntryId::cuLaunchGridAsync>(DirectReason::kLegacyLaunch, function, width,
                                                     height, stream);
}

CUresult Hooks::cuGraphLaunch(CUgraphExec graph, CUstream stream) noexcept {
  return launch_graph<EntryId::cuGraphLaunch>(graph, stream);
}
CUresult Hooks::cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) noexcept {
  return launch_graph<EntryId::cuGraphLaunch_ptsz>(graph, stream);
}

}  // namespace shim
