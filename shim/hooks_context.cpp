// SPDX-License-Identifier: Apache-2.0
// Calls that make, end or switch contexts. A thread's remembered context and queue are dropped
// after a switch, unless the driver says that the context is the same; recordings die while the
// driver can still free them.
#include <unistd.h>

#include <atomic>

#include "profiler/trace/device_timer.h"
#include "runtime/deadline.h"
#include "runtime/deferral.h"
#include "runtime/driver_scope.h"
#include "shim/hooks.h"

namespace shim {
namespace {

template <EntryId id, typename... Args>
CUresult switch_context(Args... args) noexcept {
  CUresult result = forward_with_rule<id>(args...);
  const ErrnoKeeper keeper;
  runtime::context_switched();
  return result;
}

// While it can still be made current.
void let_context_die(runtime::ContextState& context) noexcept {
  if (profiler::times_launches()) profiler::end_device_times(context);
  runtime::context_dies(context);
}

// Its recordings go while it can still be made current, and it is forgotten before the driver has
// freed its handle: another thread may get the value again.
runtime::LivingContext end_what_is_in(runtime::ContextState* context) noexcept {
  if (context == nullptr) return {};
  let_context_die(*context);
  return runtime::context_gone(*context);
}

template <EntryId id>
CUresult end_context(CUcontext context) noexcept {
  if (is_mutant(Mutant::kContextEndUnnoticed)) return runtime::slot_of<id>()(context);
  if (context == nullptr) return forward_with_rule<id>(context);
  runtime::ContextState* state = runtime::context_state(context);
  before<id>(context);
  if (state == nullptr) return forward_with_rule<id>(context);
  const runtime::LivingContext living = end_what_is_in(state);
  CUresult result = forward_with_rule<id>(context);
  if (result != CUDA_SUCCESS) runtime::context_lives_on(*state, living);
  runtime::forget_thread_context();
  return result;
}

bool is_primary_active(CUdevice device) noexcept {
  unsigned flags = 0;
  int active = 0;
  return runtime::real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
         active != 0;
}

// The primary context of the device, if there is one now.
runtime::ContextState* primary_context(CUdevice device) noexcept {
  const runtime::ReentryGuard guard;
  if (!is_primary_active(device)) return nullptr;
  CUcontext context = nullptr;
  if (runtime::real.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return nullptr;
  runtime::real.cuDevicePrimaryCtxRelease_v2(device);
  return runtime::context_state(context);
}

runtime::ContextState* green_context(CUgreenCtx green) noexcept {
  CUcontext context = nullptr;
  if (runtime::real.cuCtxFromGreenCtx(&context, green) != CUDA_SUCCESS || context == nullptr) {
    return nullptr;
  }
  return runtime::context_state(context);
}

bool device_of(const runtime::ContextState& context, CUdevice* device) noexcept {
  const runtime::DriverScope scope(&context);
  return runtime::real.cuCtxGetDevice(device) == CUDA_SUCCESS;
}

// How often the program has retained the primary context of each device and not released it. A
// lower bound: what others retain behind our back keeps it too. Machines have up to 16 devices; of
// more than this many nothing is counted.
constexpr CUdevice kCountedDevices = 64;
constinit std::atomic<int> g_primary_holds[kCountedDevices]{};

bool is_counted(CUdevice device) noexcept {
  return device >= 0 && device < kCountedDevices;
}
void note_retained(CUdevice device) noexcept {
  if (is_counted(device)) g_primary_holds[device].fetch_add(1);
}
// Counted ahead of the call, and also when it fails: too low a count is a safe one. How many are
// left.
int note_released(CUdevice device) noexcept {
  if (!is_counted(device)) return 0;
  const int left = g_primary_holds[device].fetch_sub(1) - 1;
  if (left < 0) g_primary_holds[device].fetch_add(1);
  return left;
}
bool is_held(CUdevice device) noexcept {
  return is_counted(device) && g_primary_holds[device].load() > 0;
}

// Reset ends what is in the context at once, and the same handle stays.
template <EntryId id>
CUresult end_primary_context(CUdevice device, bool is_reset) noexcept {
  if (is_mutant(Mutant::kPrimaryResetUnnoticed)) return runtime::slot_of<id>()(device);
  before<id>(device);
  runtime::ContextState* state = primary_context(device);
  if (state == nullptr) return forward_with_rule<id>(device);
  const runtime::LivingContext living = end_what_is_in(state);
  CUresult result = forward_with_rule<id>(device);
  const bool is_gone = result == CUDA_SUCCESS && (is_reset || !is_primary_active(device));
  if (!is_gone) runtime::context_lives_on(*state, living);
  runtime::forget_thread_context();
  return result;
}

// Release ends the context with its last reference. While the program has others nothing in it
// goes.
template <EntryId id>
CUresult release_primary_context(CUdevice device) noexcept {
  if (note_released(device) > 0 && !is_mutant(Mutant::kPrimaryResetUnnoticed)) {
    return forward_with_rule<id>(device);
  }
  return end_primary_context<id>(device, false);
}

}  // namespace

CUresult Hooks::cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) noexcept {
  return switch_context<EntryId::cuCtxCreate>(context, flags, device);
}
CUresult Hooks::cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) noexcept {
  return switch_context<EntryId::cuCtxCreate_v2>(context, flags, device);
}
CUresult Hooks::cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                               unsigned flags, CUdevice device) noexcept {
  return switch_context<EntryId::cuCtxCreate_v3>(context, affinity, count, flags, device);
}
CUresult Hooks::cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                               CUdevice device) noexcept {
  return switch_context<EntryId::cuCtxCreate_v4>(context, params, flags, device);
}

CUresult Hooks::cuGLCtxCreate(CUcontext* context, unsigned flags, CUdevice device) noexcept {
  return switch_context<EntryId::cuGLCtxCreate>(context, flags, device);
}
CUresult Hooks::cuGLCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) noexcept {
  return switch_context<EntryId::cuGLCtxCreate_v2>(context, flags, device);
}
CUresult Hooks::cuVDPAUCtxCreate(CUcontext* context, unsigned flags, CUdevice device,
                                 runtime::interop::Name vdp_device,
                                 runtime::interop::Handle get_proc_address) noexcept {
  return switch_context<EntryId::cuVDPAUCtxCreate>(context, flags, device, vdp_device,
                                                   get_proc_address);
}
CUresult Hooks::cuVDPAUCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device,
                                    runtime::interop::Name vdp_device,
                                    runtime::interop::Handle get_proc_address) noexcept {
  return switch_context<EntryId::cuVDPAUCtxCreate_v2>(context, flags, device, vdp_device,
                                                      get_proc_address);
}

CUresult Hooks::cuCtxDestroy(CUcontext context) noexcept {
  return end_context<EntryId::cuCtxDestroy>(context);
}
CUresult Hooks::cuCtxDestroy_v2(CUcontext context) noexcept {
  return end_context<EntryId::cuCtxDestroy_v2>(context);
}
CUresult Hooks::cuCtxDetach(CUcontext context) noexcept {
  return end_context<EntryId::cuCtxDetach>(context);
}

CUresult Hooks::cuCtxPushCurrent(CUcontext context) noexcept {
  return switch_context<EntryId::cuCtxPushCurrent>(context);
}
CUresult Hooks::cuCtxPushCurrent_v2(CUcontext context) noexcept {
  return switch_context<EntryId::cuCtxPushCurrent_v2>(context);
}
CUresult Hooks::cuCtxPopCurrent(CUcontext* context) noexcept {
  return switch_context<EntryId::cuCtxPopCurrent>(context);
}
CUresult Hooks::cuCtxPopCurrent_v2(CUcontext* context) noexcept {
  return switch_context<EntryId::cuCtxPopCurrent_v2>(context);
}
CUresult Hooks::cuCtxSetCurrent(CUcontext context) noexcept {
  return switch_context<EntryId::cuCtxSetCurrent>(context);
}

CUresult Hooks::cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) noexcept {
  CUresult result = forward_with_rule<EntryId::cuDevicePrimaryCtxRetain>(context, device);
  if (result == CUDA_SUCCESS) note_retained(device);
  return result;
}
CUresult Hooks::cuDevicePrimaryCtxRelease(CUdevice device) noexcept {
  return release_primary_context<EntryId::cuDevicePrimaryCtxRelease>(device);
}
CUresult Hooks::cuDevicePrimaryCtxRelease_v2(CUdevice device) noexcept {
  return release_primary_context<EntryId::cuDevicePrimaryCtxRelease_v2>(device);
}
CUresult Hooks::cuDevicePrimaryCtxReset(CUdevice device) noexcept {
  return end_primary_context<EntryId::cuDevicePrimaryCtxReset>(device, true);
}
CUresult Hooks::cuDevicePrimaryCtxReset_v2(CUdevice device) noexcept {
  return end_primary_context<EntryId::cuDevicePrimaryCtxReset_v2>(device, true);
}

CUresult Hooks::cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) noexcept {
  CUresult result = forward_with_rule<EntryId::cuCtxFromGreenCtx>(context, green);
  if (result != CUDA_SUCCESS || context == nullptr) return result;
  if (runtime::ContextState* state = runtime::context_state(*context)) state->direct_only = true;
  return result;
}

// It may hold the last reference to its primary context, which then goes with it.
CUresult Hooks::cuGreenCtxDestroy(CUgreenCtx green) noexcept {
  before<EntryId::cuGreenCtxDestroy>(green);
  CUdevice device = 0;
  runtime::ContextState* state = green_context(green);
  runtime::ContextState* primary =
      state != nullptr && device_of(*state, &device) && !is_held(device) ? primary_context(device)
                                                                         : nullptr;
  const runtime::LivingContext living = end_what_is_in(state),
                               primary_living = end_what_is_in(primary);
  CUresult result = forward_with_rule<EntryId::cuGreenCtxDestroy>(green);
  if (result != CUDA_SUCCESS && state != nullptr) runtime::context_lives_on(*state, living);
  if (primary != nullptr && (result != CUDA_SUCCESS || is_primary_active(device))) {
    runtime::context_lives_on(*primary, primary_living);
  }
  runtime::forget_thread_context();
  return result;
}

CUresult Hooks::cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) noexcept {
  if (pid != getpid()) return forward_with_rule<EntryId::cuCheckpointProcessLock>(pid, args);
  runtime::Deadline::process_is_being_locked();
  const CUresult result = forward_with_rule<EntryId::cuCheckpointProcessLock>(pid, args);
  runtime::Deadline::process_was_locked(result == CUDA_SUCCESS);
  return result;
}

}  // namespace shim
