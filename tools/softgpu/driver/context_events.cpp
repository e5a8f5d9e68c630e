// SPDX-License-Identifier: Apache-2.0
// Events that concern a whole context. Their operations belong to no stream: they have a sequence
// of their own, under a stream number that no stream has. Driver lock held.

#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/green_context.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/stream.h"

namespace softgpu {
namespace {

// Streams count up from 1, per-thread ones are above 1 << 31.
constexpr std::uint64_t kContextItself = (1ull << 31) - 1;

std::shared_ptr<Operation> make(Context& context, const Work& work) {
  return make_operation(work, context, context.ordinal << 32 | kContextItself, context.sequence++);
}

void run(const std::shared_ptr<Operation>& operation) {
  Engine& engine = Engine::get();
  engine.add(operation);
  engine.added({operation});  // may drop the lock
}

// From now on a trace finds the work of destroyed streams behind the record.
void replace_retired(const Context& context, const std::shared_ptr<Operation>& record) {
  for (const auto& one : contexts().all()) {
    if (covers(context, *one) && !one->retired.empty()) one->retired.assign(1, record);
  }
}

}  // namespace

CUresult record_in_context(Context& context, CUevent handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  require_usable(context);
  if (event->context != &owner_of(context)) {
    note_misuse(Misuse::kContext);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  check(capture_forbids_context_sync(&context));
  const std::shared_ptr<Operation> record = make(context, EventRecordWork{event});
  record->dependencies = context_tails(context);
  replace_retired(context, record);
  run(record);
  return CUDA_SUCCESS;
}

CUresult wait_in_context(Context& context, CUevent handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  require_usable(context);
  check(capture_forbids_context_sync(&context));
  if (event->capture.sequence != nullptr) {
    capture_forbids_event_sync(*event);  // invalidates the capture
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  const std::shared_ptr<Operation> wait = make(context, EventWaitWork{event});
  add_context_waits(context, &wait->dependencies);  // so that the last one stands for all
  context.last_wait = wait;
  run(wait);
  return CUDA_SUCCESS;
}

}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuCtxRecordEvent(CUcontext context, CUevent event) {
  return call(EntryId::cuCtxRecordEvent, [&]() -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return softgpu::record_in_context(softgpu::exact_context_of(context), event);
  });
}

CUresult CUDAAPI cuCtxWaitEvent(CUcontext context, CUevent event) {
  return call(EntryId::cuCtxWaitEvent, [&]() -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return softgpu::wait_in_context(softgpu::exact_context_of(context), event);
  });
}

}  // extern "C"
