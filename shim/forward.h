// SPDX-License-Identifier: Apache-2.0
// What every wrapper does: submit what the call could observe (the row's rule), and call the
// driver. Hooks reuse the parts. Any thread; keeps errno; takes no lock of its own.
#pragma once

#include <cerrno>
#include <string_view>
#include <type_traits>

#include "runtime/deferral.h"
#include "runtime/driver.h"
#include "runtime/flush.h"
#include "runtime/mutants.h"
#include "shim/argument.h"
#include "shim/lifecycle.h"

namespace shim {

using runtime::EntryClass;
using runtime::EntryId;
using runtime::FailureRule;
using runtime::is_mutant;
using runtime::Mutant;
using runtime::row;
using runtime::Rule;
using runtime::StreamArgument;

class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept : value_(errno) {}
  ~ErrnoKeeper() {
    if (!is_mutant(Mutant::kErrnoLost)) errno = value_;
  }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int value_;
};

// The stream that a call names, null-safe; stream 0 when the entry has no stream argument.
template <EntryId id, typename... Args>
CUstream stream_of([[maybe_unused]] Args... args) noexcept {
  constexpr StreamArgument where = row(id).stream;
  if constexpr (where == StreamArgument::kLaunchConfig) {
    const CUlaunchConfig* config = argument<0>(args...);
    return config != nullptr ? config->hStream : nullptr;
  } else if constexpr (where == StreamArgument::kLaunchList) {
    const CUDA_LAUNCH_PARAMS* list = argument<0>(args...);
    return list != nullptr && argument<1>(args...) != 0 ? list[0].hStream : nullptr;
  } else if constexpr (where == StreamArgument::kInstantiateParams) {
    const CUDA_GRAPH_INSTANTIATE_PARAMS* params = argument<2>(args...);
    return params != nullptr ? params->hUploadStream : nullptr;
  } else if constexpr (where == StreamArgument::kPointer2) {
    const CUstream* stream = argument<2>(args...);
    return stream != nullptr ? *stream : nullptr;
  } else if constexpr (where == StreamArgument::kNone) {
    return nullptr;
  } else {
    constexpr std::size_t position = static_cast<std::size_t>(where);
    static_assert(std::is_same_v<decltype(argument<position>(args...)), CUstream>,
                  "the row's stream column does not point at a CUstream");
    return argument<position>(args...);
  }
}

// The context that a call names as its first argument; null (the current one) when it names none.
template <typename... Args>
CUcontext context_of([[maybe_unused]] Args... args) noexcept {
  if constexpr (sizeof...(Args) != 0) {
    if constexpr (std::is_same_v<decltype(argument<0>(args...)), CUcontext>)
      return argument<0>(args...);
  }
  return nullptr;
}

// False but for a mutant that forgets the rule of some entries.
template <EntryId id>
bool is_flush_dropped() noexcept {
  constexpr std::string_view api = row(id).api;
  if constexpr (api == "cuEventRecord") return is_mutant(Mutant::kEventRecordFlushDropped);
  if constexpr (api == "cuStreamQuery") return is_mutant(Mutant::kQueryFlushDropped);
  if constexpr (api == "cuMemFree") return is_mutant(Mutant::kFreeFlushDropped);
  if constexpr (api == "cuMemcpyDtoDAsync") return is_mutant(Mutant::kCopyFlushDropped);
  if constexpr (api == "cuLaunchHostFunc") return is_mutant(Mutant::kHostFunctionFlushDropped);
  constexpr bool is_capture = row(id).entry_class == EntryClass::kCapture;
  return is_capture && is_mutant(Mutant::kCaptureFlushDropped);
}

// Submits what the row's rule says, whatever is queued. Rules that a hook refines act at their
// strictest.
template <EntryId id, typename... Args>
[[gnu::noinline]] void submit_by_rule(Args... args) noexcept {
  constexpr Rule rule = row(id).rule;
  const ErrnoKeeper keeper;
  if (is_flush_dropped<id>()) return;
  if constexpr (rule == Rule::kFlushStream) {
    runtime::flush_stream(stream_of<id>(args...), row(id).per_thread_default(), id);
  } else if constexpr (rule == Rule::kFlushLegacy) {
    runtime::flush_legacy(id);
  } else if constexpr (rule == Rule::kFlushContext) {
    runtime::flush_context(context_of(args...), id);
  } else if constexpr (rule == Rule::kFlushStreamWait) {
    runtime::flush_for_stream_wait(stream_of<id>(args...), row(id).per_thread_default(), id);
  } else if constexpr (rule == Rule::kFlushDefaultStreams) {
    runtime::flush_for_default_streams(id);
  } else if constexpr (rule == Rule::kFlushForLiveness || rule == Rule::kFlushIfUnloaded) {
    runtime::flush_for_liveness(id);
  } else if constexpr (rule != Rule::kPass && rule != Rule::kLookup) {
    runtime::flush_all(id);
  }
}

// The row's rule, ahead of the driver call. One atomic load when nothing is queued.
template <EntryId id, typename... Args>
void before(Args... args) noexcept {
  if (runtime::anything_queued()) [[unlikely]]
    submit_by_rule<id>(args...);
}

// Every answer of the driver passes through here: a fault changes what may be queued.
inline CUresult noted(CUresult result) noexcept {
  if (result != CUDA_SUCCESS) [[unlikely]]
    runtime::note_failure(result);
  return result;
}

// The driver's own answer to `call`. Memory that our graphs hold must not make a call of the
// program fail: it is given back, and the call made again, once.
template <EntryId id, typename Call>
[[gnu::always_inline]] inline CUresult call_again_without_graphs(Call call) noexcept {
  CUresult result = call();
  if constexpr (row(id).failure == FailureRule::kRetries) {
    if (result == CUDA_ERROR_OUT_OF_MEMORY && runtime::give_back_graphs()) [[unlikely]]
      result = call();
  }
  return noted(result);
}

template <EntryId id, typename... Args>
[[gnu::noinline]] CUresult tell(CUresult called, Args... args) noexcept {
  const ErrnoKeeper keeper;
  if constexpr (row(id).stream != StreamArgument::kNone) {
    return runtime::tell_of_stream(stream_of<id>(args...), row(id).per_thread_default(), called);
  } else {
    return runtime::tell_of_context(context_of(args...), called);
  }
}

// What the program is told: the driver's answer, or in a row that tells the failure of a queued
// launch in place of success.
template <EntryId id, typename... Args>
[[gnu::always_inline]] inline CUresult call_driver(Args... args) noexcept {
  const CUresult result =
      call_again_without_graphs<id>([&]() noexcept { return runtime::slot_of<id>()(args...); });
  if constexpr (row(id).failure == FailureRule::kTells) {
    if (runtime::anything_untold()) [[unlikely]]
      return tell<id>(result, args...);
  }
  return result;
}

template <EntryId id, typename... Args>
[[gnu::noinline]] CUresult forward_behind_queue(Args... args) noexcept {
  submit_by_rule<id>(args...);
  return call_driver<id>(args...);
}

// The whole of an entry without a hook: rule and driver call.
template <EntryId id, typename... Args>
[[gnu::always_inline]] inline CUresult forward_with_rule(Args... args) noexcept {
  if constexpr (row(id).rule != Rule::kPass && row(id).rule != Rule::kLookup) {
    if (runtime::anything_queued()) [[unlikely]]
      return forward_behind_queue<id>(args...);
  }
  return call_driver<id>(args...);
}

}  // namespace shim
