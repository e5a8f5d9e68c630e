// SPDX-License-Identifier: Apache-2.0
// Runs the steps that concern streams, events, values that streams wait for, and managed memory's
// place.
#include <thread>

#include "tests/fuzz/world.h"

namespace fuzz {
namespace {

// Which of several entries that do the same: the number stays when other steps are left out.
bool is_odd(const Step& s) {
  return s.number % 2 == 1;
}

// A value as an operation of a batch.
CUstreamBatchMemOpParams value_operation(bool is_wait, bool is_wide, CUdeviceptr address,
                                         cuuint32_t value) {
  CUstreamBatchMemOpParams p{};
  if (is_wait) {
    p.operation = is_wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
    p.waitValue.address = address;
    p.waitValue.value64 = value;
    p.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  } else {
    p.operation = is_wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
    p.writeValue.address = address;
    p.writeValue.value64 = value;
  }
  return p;
}

}  // namespace

void Actor::run_stream(const Step& s) {
  const CUstream handle = stream_of(s[0]);
  switch (s.kind) {
    case Kind::k_stream_create:
      create_stream(s);
      break;
    case Kind::k_stream_destroy:
      failed(cuStreamDestroy(handle));
      world_.streams[s[0]].context = -1;
      break;
    case Kind::k_stream_sync:
      failed(s[0] == kPtszStream ? cuStreamSynchronize_ptsz(nullptr) : cuStreamSynchronize(handle));
      break;
    case Kind::k_stream_query: {
      const auto query = s[0] == kPtszStream ? cuStreamQuery_ptsz : cuStreamQuery;
      CUresult result = query(handle);
      while (s[1] != 0 && result == CUDA_ERROR_NOT_READY) {
        std::this_thread::yield();
        result = query(handle);
      }
      failed(result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result);
      break;
    }
    case Kind::k_stream_copy:
      failed(cuStreamCopyAttributes(handle, stream_of(s[1])));
      break;
    default: {
      CUstreamAttrValue value{};
      if (s[1] == 0) {
        value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
        failed(cuStreamSetAttribute(handle, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
      } else {
        value.memSyncDomain =
            s[1] == 1 ? CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT : CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        failed(cuStreamSetAttribute(handle, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
      }
    }
  }
}

void Actor::create_stream(const Step& s) {
  StreamSlot& slot = world_.streams[s[0]];
  const unsigned flags = s[1] == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  slot.context = stack_.back();
  if (s[1] == 2) {
    const CUgreenCtx green = new_green_context(stack_.back());
    failed(cuGreenCtxStreamCreate(&slot.handle, green, flags, s[2]));
  } else if (s[2] == 0) {
    failed(cuStreamCreate(&slot.handle, flags));
  } else {
    failed(cuStreamCreateWithPriority(&slot.handle, flags, s[2]));
  }
}

// It lives as long as the context that it is made from.
CUgreenCtx Actor::new_green_context(int context) {
  const CUdevice device = world_.contexts[context].device;
  CUdevResource all{}, part{};
  unsigned groups = 1;
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  failed(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  failed(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 8));
  failed(cuDevResourceGenerateDesc(&descriptor, &part, 1));
  if (failed(cuGreenCtxCreate(&green, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM)))
    return nullptr;
  world_.add_green(context, green);
  return green;
}

void Actor::destroy_green_contexts(int context) {
  for (const CUgreenCtx green : world_.take_greens(context)) failed(cuGreenCtxDestroy(green));
}

void Actor::run_event(const Step& s) {
  EventSlot& slot = world_.events[s.kind == Kind::k_event_wait ? s[1] : s[0]];
  switch (s.kind) {
    case Kind::k_event_create:
      failed(cuEventCreate(&slot.handle, static_cast<unsigned>(s[1])));
      slot.context = stack_.back();
      break;
    case Kind::k_event_destroy:
      failed(cuEventDestroy(slot.handle));
      slot.context = -1;
      break;
    case Kind::k_event_record:
      record_event(s);
      break;
    case Kind::k_event_wait:
      failed(s[0] == kPtszStream ? cuStreamWaitEvent_ptsz(nullptr, slot.handle, 0)
                                 : cuStreamWaitEvent(stream_of(s[0]), slot.handle, 0));
      break;
    case Kind::k_event_sync:
      failed(cuEventSynchronize(slot.handle));
      break;
    case Kind::k_event_query: {
      CUresult result = cuEventQuery(slot.handle);
      while (s[1] != 0 && result == CUDA_ERROR_NOT_READY) {
        std::this_thread::yield();
        result = cuEventQuery(slot.handle);
      }
      failed(result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result);
      break;
    }
    default: {
      float milliseconds = 0;
      const CUresult result =
          cuEventElapsedTime(&milliseconds, slot.handle, world_.events[s[1]].handle);
      failed(result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result);
    }
  }
}

void Actor::record_event(const Step& s) {
  const CUevent event = world_.events[s[0]].handle;
  const CUstream stream = stream_of(s[1]);
  const bool is_own = s[1] == kPtszStream;
  if (is_odd(s)) {
    failed(is_own ? cuEventRecordWithFlags_ptsz(event, nullptr, CU_EVENT_RECORD_DEFAULT)
                  : cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT));
  } else {
    failed(is_own ? cuEventRecord_ptsz(event, nullptr) : cuEventRecord(event, stream));
  }
}

void Actor::run_context_event(const Step& s) {
  if (s.kind == Kind::k_context_record) {
    failed(cuCtxRecordEvent(world_.contexts[s[1]].handle, world_.events[s[0]].handle));
  } else {
    failed(cuCtxWaitEvent(world_.contexts[s[0]].handle, world_.events[s[1]].handle));
  }
}

void Actor::run_value(const Step& s) {
  BufferSlot& slot = world_.buffers[s[1]];
  const bool is_wait = s.kind == Kind::k_value_wait;
  // The number of a wait's write is certain: the model lets no other one come between.
  if (is_wait && slot.value != s[3]) return saw(-1);  // would wait for ever
  const auto value = static_cast<cuuint32_t>(s[3]);
  CUresult result = CUDA_SUCCESS;
  if (s.kind == Kind::k_value_batch) {
    // Last what others wait for: the rest is done then.
    const CUdeviceptr other = address_of(s[2]);
    result = submit_values(s[0], {value_operation(false, true, other, value / 3),
                                  value_operation(true, false, other, value / 3),
                                  value_operation(false, false, slot.address, value)});
  } else if (s.number % 3 == 0) {
    result = submit_values(s[0], {value_operation(is_wait, s[2] == 64, slot.address, value)});
  } else {
    result = submit_value(s, slot.address, value);
  }
  failed(result);
  if (!is_wait) slot.value = result == CUDA_SUCCESS ? s[3] : 0;
}

CUresult Actor::submit_value(const Step& s, CUdeviceptr address, cuuint32_t value) {
  const CUstream stream = stream_of(s[0]);
  const bool is_own = s[0] == kPtszStream, is_wide = s[2] == 64;
  if (s.kind == Kind::k_value_wait) {
    constexpr unsigned kEqual = CU_STREAM_WAIT_VALUE_EQ;
    if (is_wide) {
      return is_own ? cuStreamWaitValue64_v2_ptsz(nullptr, address, value, kEqual)
                    : cuStreamWaitValue64(stream, address, value, kEqual);
    }
    return is_own ? cuStreamWaitValue32_v2_ptsz(nullptr, address, value, kEqual)
                  : cuStreamWaitValue32(stream, address, value, kEqual);
  }
  if (is_wide) {
    return is_own ? cuStreamWriteValue64_v2_ptsz(nullptr, address, value, 0)
                  : cuStreamWriteValue64(stream, address, value, 0);
  }
  return is_own ? cuStreamWriteValue32_v2_ptsz(nullptr, address, value, 0)
                : cuStreamWriteValue32(stream, address, value, 0);
}

CUresult Actor::submit_values(int stream, std::vector<CUstreamBatchMemOpParams> list) {
  const auto count = static_cast<unsigned>(list.size());
  return stream == kPtszStream ? cuStreamBatchMemOp_v2_ptsz(nullptr, count, list.data(), 0)
                               : cuStreamBatchMemOp(stream_of(stream), count, list.data(), 0);
}

// Where managed memory lies, and what the driver is told of its use.
void Actor::run_place(const Step& s) {
  const CUdeviceptr at = address_of(s[0]);
  constexpr std::size_t kBytes = kWords * sizeof(unsigned);
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  place.id = world_.contexts[world_.buffers[s[0]].context].device;
  if (s.kind == Kind::k_prefetch) {
    if (s[1] != 0) place = {CU_MEM_LOCATION_TYPE_HOST, 0};
    failed(s[2] == kPtszStream ? cuMemPrefetchAsync_v2_ptsz(at, kBytes, place, 0, nullptr)
                               : cuMemPrefetchAsync(at, kBytes, place, 0, stream_of(s[2])));
    return;
  }
  static constexpr CUmem_advise kAdvice[] = {
      CU_MEM_ADVISE_SET_READ_MOSTLY, CU_MEM_ADVISE_UNSET_READ_MOSTLY,
      CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_MEM_ADVISE_SET_ACCESSED_BY};
  failed(cuMemAdvise(at, kBytes, kAdvice[s[1]], place));
}

}  // namespace fuzz
