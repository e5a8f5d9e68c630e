// SPDX-License-Identifier: Apache-2.0
// What counts as misuse, its names, and how it is told.

#include "tools/softgpu/driver/misuse.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <variant>

#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/counters.h"
#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/graph.h"
#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/module_objects.h"
#include "tools/softgpu/driver/options.h"

namespace softgpu {
namespace {

void tell(Misuse kind, const char* entry) {
  say("misuse in %s: %s", entry, name(kind));
}

void note(Misuse kind, std::size_t place, const char* entry) {
  count_misuse(kind);
  if (options().misuse == MisusePolicy::kIgnore) return;
  static std::atomic<bool> is_told[kMisuseCount][kEntryCount + 1];
  if (!is_told[static_cast<std::size_t>(kind)][place].exchange(true)) tell(kind, entry);
  if (options().misuse == MisusePolicy::kAbort) std::abort();
}

// Contexts made by the client, and what it loaded. Streams and memory go with their context.
std::size_t count_left() {
  std::size_t left = libraries().all().size();
  for (const auto& context : contexts().all()) {
    if (context->is_alive && !context->is_primary) ++left;
  }
  return left;
}

}  // namespace

const char* name(Misuse kind) {
  constexpr const char* kNames[kMisuseCount] = {
      "dead or foreign handle",
      "wrong context",
      "bad access",
      "kernel fault",
      "call in a host function",
      "broken capture",
      "bad free",
      "gone with work pending",
      "stale graph",
      "leak",
  };
  return kNames[static_cast<std::size_t>(kind)];
}

void note_misuse(Misuse kind) {
  const std::optional<EntryId> entry = Call::current();
  if (entry.has_value()) {
    note(kind, static_cast<std::size_t>(*entry), row(*entry).symbol);
  } else {
    note(kind, kEntryCount, "device work");
  }
}

void note_failure(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_HANDLE:
      return note_misuse(Misuse::kHandle);
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      // Programs ask this way whether they have a context.
      if (Call::current() == EntryId::cuCtxGetDevice) return;
      return note_misuse(Misuse::kContext);
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
    case CUDA_ERROR_CAPTURED_EVENT:
      return note_misuse(Misuse::kCapture);
    default:
      return;
  }
}

void note_fault(CUresult code) {
  const bool is_access =
      code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_MISALIGNED_ADDRESS;
  note(is_access ? Misuse::kAccess : Misuse::kFault, kEntryCount, "device work");
}

void note_pending_work(const Context& context) {
  if (!Engine::get().pending(&context).empty()) note_misuse(Misuse::kPendingWork);
}

void note_stale_graphs(const ModuleObject& module) {
  if (!Call::current().has_value()) return;  // nobody asks
  for (const auto& exec : graph_execs().all()) {
    const bool is_stale =
        std::any_of(exec->order.begin(), exec->order.end(), [&](const ExecStep& step) {
          const auto* const kernel = std::get_if<KernelWork>(&step.node->work);
          return kernel != nullptr && kernel->function->module == &module;
        });
    if (is_stale) note_misuse(Misuse::kStaleGraph);
  }
}

void watch_for_leaks() {
  std::atexit([] {
    // Another thread may be inside the driver for good.
    const std::unique_lock<std::mutex> lock(driver_mutex(), std::try_to_lock);
    if (!lock.owns_lock() || !is_initialized()) return;
    for (std::size_t left = count_left(); left > 0; --left) {
      note(Misuse::kLeak, kEntryCount, "exit");
    }
  });
}

}  // namespace softgpu
