// SPDX-License-Identifier: Apache-2.0
// Counts what no correct program does, whatever the driver answers: CAJETA_SOFTGPU_MISUSE says
// whether each kind is also reported once per entry, or ends the process; the counters file has the
// numbers. Any thread.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace softgpu {

struct Context;
struct ModuleObject;

enum class Misuse : std::uint8_t {
  kHandle,        // destroyed, or never one of ours
  kContext,       // none current, a destroyed one, or the one of somebody else
  kAccess,        // a kernel touched what is not live, is not its own, or is not aligned
  kFault,         // any other fault of a kernel: divergent barriers and shuffles, traps
  kHostFunction,  // a driver call inside a host function
  kCapture,       // a call that a capture forbids, or a capture that could not be ended
  kFree,          // freed twice, or never allocated
  kPendingWork,   // memory, code or a context that goes while work of its context is pending
  kStaleGraph,    // an executable graph whose code or context goes
  kLeak,          // alive when the process ends; graphs are not counted here
  kCount
};
inline constexpr std::size_t kMisuseCount = static_cast<std::size_t>(Misuse::kCount);
const char* name(Misuse kind);

// In the call that runs on this thread.
void note_misuse(Misuse kind);
// What a failing call, or a fault of a kernel, says about its client.
void note_failure(CUresult code);
void note_fault(CUresult code);

// Memory, code or a context that is about to go. Driver lock held.
void note_pending_work(const Context& context);

// Executable graphs that still launch code of a module that goes. Driver lock held.
void note_stale_graphs(const ModuleObject& module);

// Counts what is alive when the process ends by exit().
void watch_for_leaks();

}  // namespace softgpu
