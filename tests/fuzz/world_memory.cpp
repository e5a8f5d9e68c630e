// SPDX-License-Identifier: Apache-2.0
// Runs the steps that allocate, fill, copy and read memory.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "tests/fuzz/world.h"

namespace fuzz {
namespace {

constexpr std::size_t kBytes = kWords * sizeof(unsigned);
constexpr std::size_t kRow = 16;  // bytes of a row of the copies with rows

bool is_host_side(int memory) {
  return memory == kPinnedMemory || memory == kPageableMemory || memory == kRegisteredMemory;
}

// One end of a copy as the descriptors of copies with rows want it.
struct End {
  CUmemorytype type;
  void* host;
  CUdeviceptr device;
  CUarray array;
};

End end_of(const BufferSlot& slot) {
  if (is_host_side(slot.memory)) return {CU_MEMORYTYPE_HOST, slot.words, 0, nullptr};
  if (is_array(slot.memory)) return {CU_MEMORYTYPE_ARRAY, nullptr, 0, slot.array};
  return {CU_MEMORYTYPE_DEVICE, nullptr, slot.address, nullptr};
}

// 3D and 3D peer copies share their field names.
template <typename Parameters>
Parameters rows_of(const BufferSlot& to, const BufferSlot& from, int offset, int words,
                   int slices) {
  Parameters p{};
  const End target = end_of(to), source = end_of(from);
  p.srcMemoryType = source.type;
  p.srcHost = source.host;
  p.srcDevice = source.device;
  p.srcArray = source.array;
  p.dstMemoryType = target.type;
  p.dstHost = target.host;
  p.dstDevice = target.device;
  p.dstArray = target.array;
  p.srcPitch = p.dstPitch = kRow;
  p.srcY = p.dstY = static_cast<std::size_t>(offset) / 4;
  p.WidthInBytes = kRow;
  p.Height = static_cast<std::size_t>(words) / 4 / static_cast<std::size_t>(slices);
  p.Depth = static_cast<std::size_t>(slices);
  return p;
}

template <typename Parameters>
Parameters slices_of(const BufferSlot& to, const BufferSlot& from, int offset, int words) {
  constexpr int kSlices = 2;
  if (is_array(to.memory) || is_array(from.memory)) {  // which has one
    return rows_of<Parameters>(to, from, offset, words, 1);
  }
  auto p = rows_of<Parameters>(to, from, 0, words, kSlices);
  p.srcHeight = p.dstHeight = p.Height;
  // The offset goes into the addresses: it need not be a whole number of slices.
  const std::size_t bytes = static_cast<std::size_t>(offset) * sizeof(unsigned);
  if (p.srcHost != nullptr) p.srcHost = static_cast<const char*>(p.srcHost) + bytes;
  if (p.dstHost != nullptr) p.dstHost = static_cast<char*>(p.dstHost) + bytes;
  if (p.srcDevice != 0) p.srcDevice += bytes;
  if (p.dstDevice != 0) p.dstDevice += bytes;
  return p;
}

}  // namespace

CUDA_MEMCPY3D whole_copy(const BufferSlot& to, const BufferSlot& from) {
  auto p = rows_of<CUDA_MEMCPY3D>(to, from, 0, kWords, 1);
  if (to.memory == kGridMemory || from.memory == kGridMemory) return p;
  p.WidthInBytes = kBytes;
  p.Height = 1;
  return p;
}

void Actor::read_array(const BufferSlot& slot, unsigned* words) {
  if (slot.memory == kLineMemory) {
    failed(cuMemcpyAtoH(words, slot.array, 0, kBytes));
    return;
  }
  CUDA_MEMCPY2D p{};
  p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  p.srcArray = slot.array;
  p.dstMemoryType = CU_MEMORYTYPE_HOST;
  p.dstHost = words;
  p.dstPitch = p.WidthInBytes = kRow;
  p.Height = kBytes / kRow;
  failed(cuMemcpy2D(&p));
}

void Actor::alloc(BufferSlot& slot, int memory) {
  slot.memory = memory;
  slot.address = 0;
  slot.array = nullptr;
  slot.words = nullptr;
  void* host = nullptr;
  switch (memory) {
    case kDeviceMemory:
      failed(cuMemAlloc(&slot.address, kBytes));
      break;
    case kPinnedMemory:
      if (!failed(cuMemHostAlloc(&host, kBytes, CU_MEMHOSTALLOC_DEVICEMAP))) {
        failed(cuMemHostGetDevicePointer(&slot.address, host, 0));
      }
      slot.words = static_cast<unsigned*>(host);
      break;
    case kManagedMemory:
      failed(cuMemAllocManaged(&slot.address, kBytes, CU_MEM_ATTACH_GLOBAL));
      slot.words = reinterpret_cast<unsigned*>(slot.address);
      break;
    case kGridMemory:
    case kLineMemory: {
      const bool is_line = memory == kLineMemory;
      const CUDA_ARRAY_DESCRIPTOR shape{is_line ? kWords : 4U, is_line ? 0 : kBytes / kRow,
                                        CU_AD_FORMAT_UNSIGNED_INT32, 1};
      failed(cuArrayCreate(&slot.array, &shape));
      break;
    }
    default:
      slot.words = world_.new_host_memory().data();
      slot.address = reinterpret_cast<CUdeviceptr>(slot.words);
      if (memory == kRegisteredMemory) failed(cuMemHostRegister(slot.words, kBytes, 0));
  }
  if (slot.array != nullptr) {
    BufferSlot zeros;
    zeros.memory = kPageableMemory;
    unsigned words[kWords] = {};
    zeros.words = words;
    const CUDA_MEMCPY3D fill = whole_copy(slot, zeros);
    failed(cuMemcpy3D(&fill));
    failed(cuStreamSynchronize(nullptr));
  }
  if (slot.address == 0 || memory == kPageableMemory) return;
  failed(cuMemsetD32(slot.address, 0x01010101U * static_cast<unsigned>(memory + 1), kWords));
  failed(cuStreamSynchronize(nullptr));
}

void Actor::free_buffer(BufferSlot& slot) {
  if (slot.address != 0) {
    switch (slot.memory) {
      case kPinnedMemory:
        failed(cuMemFreeHost(slot.words));
        break;
      case kRegisteredMemory:
        failed(cuMemHostUnregister(slot.words));
        break;
      case kPageableMemory:
        break;
      default:
        failed(cuMemFree(slot.address));
    }
  }
  if (slot.array != nullptr) failed(cuArrayDestroy(slot.array));
  slot.address = 0;
  slot.array = nullptr;
  slot.words = nullptr;
  slot.context = -1;
}

void Actor::run_memory(const Step& s) {
  if (s.kind == Kind::k_memory_info) {
    std::size_t free_bytes = 0, total = 0;
    failed(cuMemGetInfo(&free_bytes, &total));
    saw(free_bytes <= total ? 1 : 0);
    return;
  }
  BufferSlot& slot = world_.buffers[s[0]];
  switch (s.kind) {
    case Kind::k_alloc:
      alloc(slot, s[1]);
      slot.context = s[1] == kPageableMemory ? -1 : stack_.back();
      break;
    case Kind::k_free:
      free_buffer(slot);
      break;
    case Kind::k_alloc_async: {
      const bool is_own = s[1] == kPtszStream;
      const CUstream stream = is_own ? CU_STREAM_PER_THREAD : stream_of(s[1]);
      slot.memory = kDeviceMemory;
      slot.array = nullptr;
      slot.words = nullptr;
      slot.address = 0;
      CUmemoryPool pool = nullptr;
      if (s[2] != 0)
        failed(cuDeviceGetDefaultMemPool(&pool, world_.contexts[stack_.back()].device));
      const bool is_refused =
          failed(pool != nullptr ? cuMemAllocFromPoolAsync(&slot.address, kBytes, pool, stream)
                 : is_own        ? cuMemAllocAsync_ptsz(&slot.address, kBytes, nullptr)
                                 : cuMemAllocAsync(&slot.address, kBytes, stream));
      if (!is_refused) failed(cuMemsetD32Async(slot.address, 0x07070707U, kWords, stream));
      slot.context = stack_.back();
      break;
    }
    case Kind::k_free_async:
      failed(s[1] == kPtszStream ? cuMemFreeAsync_ptsz(slot.address, nullptr)
                                 : cuMemFreeAsync(slot.address, stream_of(s[1])));
      slot.address = 0;
      slot.context = -1;
      break;
    case Kind::k_host_write:
      for (unsigned i = 0; slot.words != nullptr && i < kWords; ++i) {
        slot.words[i] = static_cast<unsigned>(s[1]) * (i + 3);
      }
      break;
    case Kind::k_host_read:
      if (slot.words != nullptr) saw_hash(slot.words);
      break;
    default: {
      unsigned words[kWords] = {};
      if (slot.array != nullptr) {
        read_array(slot, words);
      } else {
        failed(cuMemcpyDtoH(words, slot.address, kBytes));
      }
      saw_hash(words);
    }
  }
}

void Actor::run_memset(const Step& s) {
  const CUdeviceptr at = address_of(s[2]);
  const auto value = static_cast<unsigned>(s[3]);
  const auto narrow = static_cast<unsigned char>(value);
  const auto half = static_cast<unsigned short>(value);
  if (s[4] == kPtszStream) {
    failed(s[1] != 0 ? cuMemsetD32Async_ptsz(at, value, kWords, nullptr)
                     : cuMemsetD32_v2_ptds(at, value, kWords));
    return;
  }
  const CUstream stream = stream_of(s[4]);
  const bool is_async = s[1] != 0;
  switch (s[0]) {
    case kD8:
      failed(is_async ? cuMemsetD8Async(at, narrow, kBytes, stream)
                      : cuMemsetD8(at, narrow, kBytes));
      break;
    case kD16:
      failed(is_async ? cuMemsetD16Async(at, half, 2 * kWords, stream)
                      : cuMemsetD16(at, half, 2 * kWords));
      break;
    case kD32:
      failed(is_async ? cuMemsetD32Async(at, value, kWords, stream)
                      : cuMemsetD32(at, value, kWords));
      break;
    case k2DD8:
      failed(is_async ? cuMemsetD2D8Async(at, 32, narrow, 9, 8, stream)
                      : cuMemsetD2D8(at, 32, narrow, 9, 8));
      break;
    case k2DD16:
      failed(is_async ? cuMemsetD2D16Async(at, 32, half, 7, 8, stream)
                      : cuMemsetD2D16(at, 32, half, 7, 8));
      break;
    default:
      failed(is_async ? cuMemsetD2D32Async(at, 32, value, 3, 8, stream)
                      : cuMemsetD2D32(at, 32, value, 3, 8));
  }
}

// The 1D copies with an array on at least one side.
void Actor::run_line_copy(const Step& s) {
  const BufferSlot &to = world_.buffers[s[1]], &from = world_.buffers[s[2]];
  const bool is_own = s[5] == kPtszStream;
  const CUstream stream = stream_of(s[5]);
  const std::size_t skip = static_cast<std::size_t>(s[3]) * sizeof(unsigned);
  const std::size_t bytes = static_cast<std::size_t>(s[4]) * sizeof(unsigned);
  switch (s[0]) {
    case kHtoD:
      failed(
          (is_own ? cuMemcpyHtoA_v2_ptds : cuMemcpyHtoA)(to.array, skip, from.words + s[3], bytes));
      break;
    case kHtoDAsync:
      failed((is_own ? cuMemcpyHtoAAsync_v2_ptsz : cuMemcpyHtoAAsync)(
          to.array, skip, from.words + s[3], bytes, stream));
      break;
    case kDtoH:
      failed(
          (is_own ? cuMemcpyAtoH_v2_ptds : cuMemcpyAtoH)(to.words + s[3], from.array, skip, bytes));
      break;
    case kDtoHAsync:
      failed((is_own ? cuMemcpyAtoHAsync_v2_ptsz : cuMemcpyAtoHAsync)(to.words + s[3], from.array,
                                                                      skip, bytes, stream));
      break;
    default:
      if (to.array == nullptr) {
        failed((is_own ? cuMemcpyAtoD_v2_ptds : cuMemcpyAtoD)(to.address + skip, from.array, skip,
                                                              bytes));
      } else if (from.array == nullptr) {
        failed((is_own ? cuMemcpyDtoA_v2_ptds : cuMemcpyDtoA)(to.array, skip, from.address + skip,
                                                              bytes));
      } else {
        failed((is_own ? cuMemcpyAtoA_v2_ptds : cuMemcpyAtoA)(to.array, skip, from.array, skip,
                                                              bytes));
      }
  }
}

// order to from other_to other_from stream; by the entries of CUDA 13 or of 12.8.
void Actor::run_copy_batch(const Step& s) {
  const bool is_own = s[5] == kPtszStream;
  const CUstream stream = stream_of(s[5]);
  CUdeviceptr to[] = {address_of(s[1]), address_of(s[3])};
  CUdeviceptr from[] = {address_of(s[2]), address_of(s[4])};
  std::size_t sizes[] = {kBytes, kBytes / 2}, firsts[] = {0};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = static_cast<CUmemcpySrcAccessOrder>(s[0]);
  if (s.number % 2 == 0) {
    failed((is_own ? cuMemcpyBatchAsync_v2_ptsz : cuMemcpyBatchAsync)(
        to, from, sizes, 2, &attributes, firsts, 1, stream));
  } else {
    std::size_t fail_index = 0;
    failed((is_own ? cuMemcpyBatchAsync_ptsz : older_batch)(to, from, sizes, 2, &attributes, firsts,
                                                            1, &fail_index, stream));
  }
  std::fill(std::begin(to), std::end(to), 0);  // the call has read them
  std::fill(std::begin(from), std::end(from), 0);
}

// how to from offset words stream
void Actor::run_copy(const Step& s) {
  const BufferSlot &to = world_.buffers[s[1]], &from = world_.buffers[s[2]];
  if (to.memory == kLineMemory || from.memory == kLineMemory) return run_line_copy(s);
  const bool is_per_thread = s[5] == kPtszStream;
  const CUstream stream = stream_of(s[5]);  // 0 where the entry's name says which one that is
  const std::size_t skip = static_cast<std::size_t>(s[3]) * sizeof(unsigned);
  const std::size_t bytes = static_cast<std::size_t>(s[4]) * sizeof(unsigned);
  const CUdeviceptr target = to.address + skip, source = from.address + skip;
  void* const host_target = to.words == nullptr ? nullptr : to.words + s[3];
  const void* const host_source = from.words == nullptr ? nullptr : from.words + s[3];
  const auto context_of = [this](const BufferSlot& slot) {
    return slot.context < 0 ? nullptr : world_.contexts[slot.context].handle;
  };
  CUDA_MEMCPY2D flat{};
  {
    const auto wide = rows_of<CUDA_MEMCPY3D>(to, from, s[3], s[4], 1);
    flat.srcMemoryType = wide.srcMemoryType;
    flat.srcHost = wide.srcHost;
    flat.srcDevice = wide.srcDevice;
    flat.srcArray = wide.srcArray;
    flat.dstMemoryType = wide.dstMemoryType;
    flat.dstHost = wide.dstHost;
    flat.dstDevice = wide.dstDevice;
    flat.dstArray = wide.dstArray;
    flat.srcPitch = flat.dstPitch = kRow;
    flat.srcY = flat.dstY = wide.srcY;
    flat.WidthInBytes = kRow;
    flat.Height = wide.Height;
  }
  const auto deep = slices_of<CUDA_MEMCPY3D>(to, from, s[3], s[4]);
  auto peer = slices_of<CUDA_MEMCPY3D_PEER>(to, from, s[3], s[4]);
  peer.srcContext = context_of(from);
  peer.dstContext = context_of(to);
  switch (s[0]) {
    case kHtoD:
      failed(is_per_thread ? cuMemcpyHtoD_v2_ptds(target, host_source, bytes)
                           : cuMemcpyHtoD(target, host_source, bytes));
      break;
    case kHtoDAsync:
      failed((is_per_thread ? cuMemcpyHtoDAsync_v2_ptsz : cuMemcpyHtoDAsync)(target, host_source,
                                                                             bytes, stream));
      break;
    case kDtoH:
      failed(is_per_thread ? cuMemcpyDtoH_v2_ptds(host_target, source, bytes)
                           : cuMemcpyDtoH(host_target, source, bytes));
      break;
    case kDtoHAsync:
      failed((is_per_thread ? cuMemcpyDtoHAsync_v2_ptsz : cuMemcpyDtoHAsync)(host_target, source,
                                                                             bytes, stream));
      break;
    case kDtoD:
      failed(is_per_thread ? cuMemcpyDtoD_v2_ptds(target, source, bytes)
                           : cuMemcpyDtoD(target, source, bytes));
      break;
    case kDtoDAsync:
      failed((is_per_thread ? cuMemcpyDtoDAsync_v2_ptsz : cuMemcpyDtoDAsync)(target, source, bytes,
                                                                             stream));
      break;
    case kGeneric:
      failed(is_per_thread ? cuMemcpy_ptds(target, source, bytes)
                           : cuMemcpy(target, source, bytes));
      break;
    case kGenericAsync:
      failed((is_per_thread ? cuMemcpyAsync_ptsz : cuMemcpyAsync)(target, source, bytes, stream));
      break;
    case kPeer:
      failed((is_per_thread ? cuMemcpyPeer_ptds : cuMemcpyPeer)(target, context_of(to), source,
                                                                context_of(from), bytes));
      break;
    case kPeerAsync:
      failed((is_per_thread ? cuMemcpyPeerAsync_ptsz : cuMemcpyPeerAsync)(
          target, context_of(to), source, context_of(from), bytes, stream));
      break;
    case k2D:
      if (s.number % 2 == 1) {
        failed((is_per_thread ? cuMemcpy2DUnaligned_v2_ptds : cuMemcpy2DUnaligned)(&flat));
      } else {
        failed((is_per_thread ? cuMemcpy2D_v2_ptds : cuMemcpy2D)(&flat));
      }
      break;
    case k2DAsync:
      failed((is_per_thread ? cuMemcpy2DAsync_v2_ptsz : cuMemcpy2DAsync)(&flat, stream));
      break;
    case k3D:
      failed((is_per_thread ? cuMemcpy3D_v2_ptds : cuMemcpy3D)(&deep));
      break;
    case k3DAsync:
      failed((is_per_thread ? cuMemcpy3DAsync_v2_ptsz : cuMemcpy3DAsync)(&deep, stream));
      break;
    case k3DPeer:
      failed((is_per_thread ? cuMemcpy3DPeer_ptds : cuMemcpy3DPeer)(&peer));
      break;
    default:
      failed((is_per_thread ? cuMemcpy3DPeerAsync_ptsz : cuMemcpy3DPeerAsync)(&peer, stream));
  }
}

void Actor::run_bad_copy(const Step& s) {
  const CUdeviceptr at = address_of(s[1]);
  unsigned words[4] = {};
  switch (s[0]) {
    case 0:
      failed(cuMemcpyDtoH(words, at + kBytes, 1 << 30));
      break;
    case 1:
      failed(cuMemcpyHtoD(at + kBytes, words, sizeof words));
      break;
    case 2:
      failed(cuMemsetD32(at + 1, 5, 4));
      break;
    case 3:
      failed(cuMemcpyDtoDAsync(at, at + kBytes, 64, nullptr));
      break;
    case 4:
      failed(cuMemcpyAtoD(at, nullptr, 0, 16));
      break;
    case 5: {
      CUdeviceptr to[] = {at, at}, from[] = {at + 128, at + kBytes};
      std::size_t sizes[] = {16, 16}, firsts[] = {0}, fail_index = 0;
      CUmemcpyAttributes attributes{};
      attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
      failed(older_batch(to, from, sizes, 2, &attributes, firsts, 1, &fail_index,
                         CU_STREAM_PER_THREAD));
      saw(fail_index);
      break;
    }
    default:
      failed(cuMemsetD8(at, 5, std::size_t{1} << 32));
  }
}

}  // namespace fuzz
