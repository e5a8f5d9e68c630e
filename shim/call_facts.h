// SPDX-License-Identifier: Apache-2.0
// What the arguments of a copy, a memset or an allocation of host memory say: how many bytes, and
// whose host memory. From the arguments alone, never from the driver. Any thread, while the profile
// is on. Not told: the bytes of cuMemcpy3DBatchAsync and of batches of over kCountedCopies.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "profiler/call_stats.h"
#include "profiler/host_memory.h"
#include "runtime/driver.h"
#include "shim/argument.h"

namespace shim {

using profiler::CallFacts;
using profiler::HostSide;

// Whether `id` is the entry that cuGetProcAddress knows as `api`, or its asynchronous twin.
constexpr bool is_api(runtime::EntryId id, std::string_view api) {
  std::string_view name = runtime::row(id).api;
  if (name == api) return true;
  constexpr std::string_view kAsync = "Async";
  return name.ends_with(kAsync) && name.substr(0, name.size() - kAsync.size()) == api;
}

// The number of a pointer or of a CUdeviceptr.
template <typename Pointer>
std::uintptr_t address_of(Pointer pointer) noexcept {
  if constexpr (std::is_pointer_v<Pointer>) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  } else {
    return pointer;
  }
}

template <typename Pointer>
HostSide side_of(Pointer pointer) noexcept {
  return profiler::host_side_of(address_of(pointer));
}

// A unified address may be device memory: only memory known as locked says something.
inline HostSide unified_side(CUdeviceptr one, CUdeviceptr other) noexcept {
  const bool is_locked = side_of(one) == HostSide::kLocked || side_of(other) == HostSide::kLocked;
  return is_locked ? HostSide::kLocked : HostSide::kUnknown;
}

template <typename Copy>
CallFacts facts_of_copy(const Copy* copy, std::uint64_t depth) noexcept {
  CallFacts facts;
  facts.bytes = std::uint64_t{copy->WidthInBytes} * copy->Height * depth;
  if (copy->dstMemoryType == CU_MEMORYTYPE_HOST) {
    facts.host = side_of(copy->dstHost);
  } else if (copy->srcMemoryType == CU_MEMORYTYPE_HOST) {
    facts.host = side_of(copy->srcHost);
  } else if (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED ||
             copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED) {
    facts.host = HostSide::kUnknown;
  }
  return facts;
}

inline CallFacts facts_of_bytes(std::uint64_t bytes, HostSide host = HostSide::kNone) noexcept {
  CallFacts facts;
  facts.bytes = bytes;
  facts.host = host;
  return facts;
}

// Batches of more copies are not added up: it would take as long as a call.
inline constexpr size_t kCountedCopies = 4096;

inline std::uint64_t sum_of(const size_t* sizes, size_t count) noexcept {
  if (sizes == nullptr || count > kCountedCopies) return 0;
  std::uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += sizes[i];
  return sum;
}

// Read ahead of the call: afterwards the program's structures may have changed.
template <runtime::EntryId id, typename... Args>
CallFacts facts_of([[maybe_unused]] Args... args) noexcept {
  if constexpr (is_api(id, "cuMemcpyDtoH")) {
    return facts_of_bytes(argument<2>(args...), side_of(argument<0>(args...)));
  } else if constexpr (is_api(id, "cuMemcpyHtoD")) {
    return facts_of_bytes(argument<2>(args...), side_of(argument<1>(args...)));
  } else if constexpr (is_api(id, "cuMemcpyDtoD")) {
    return facts_of_bytes(argument<2>(args...));
  } else if constexpr (is_api(id, "cuMemcpy")) {
    return facts_of_bytes(argument<2>(args...),
                          unified_side(argument<0>(args...), argument<1>(args...)));
  } else if constexpr (is_api(id, "cuMemcpyAtoH")) {
    return facts_of_bytes(argument<3>(args...), side_of(argument<0>(args...)));
  } else if constexpr (is_api(id, "cuMemcpyHtoA")) {
    return facts_of_bytes(argument<3>(args...), side_of(argument<2>(args...)));
  } else if constexpr (is_api(id, "cuMemcpyAtoD") || is_api(id, "cuMemcpyDtoA")) {
    return facts_of_bytes(argument<3>(args...));
  } else if constexpr (is_api(id, "cuMemcpyAtoA") || is_api(id, "cuMemcpyPeer")) {
    return facts_of_bytes(argument<4>(args...));
  } else if constexpr (is_api(id, "cuMemcpy2D") || is_api(id, "cuMemcpy2DUnaligned")) {
    const auto* copy = argument<0>(args...);
    return copy != nullptr ? facts_of_copy(copy, 1) : CallFacts{};
  } else if constexpr (is_api(id, "cuMemcpy3D") || is_api(id, "cuMemcpy3DPeer")) {
    const auto* copy = argument<0>(args...);
    return copy != nullptr ? facts_of_copy(copy, copy->Depth) : CallFacts{};
  } else if constexpr (is_api(id, "cuMemcpyBatch")) {
    return facts_of_bytes(sum_of(argument<2>(args...), argument<3>(args...)), HostSide::kUnknown);
  } else if constexpr (is_api(id, "cuMemsetD8")) {
    return facts_of_bytes(argument<2>(args...));
  } else if constexpr (is_api(id, "cuMemsetD16")) {
    return facts_of_bytes(std::uint64_t{2} * argument<2>(args...));
  } else if constexpr (is_api(id, "cuMemsetD32")) {
    return facts_of_bytes(std::uint64_t{4} * argument<2>(args...));
  } else if constexpr (is_api(id, "cuMemsetD2D8") || is_api(id, "cuMemsetD2D16") ||
                       is_api(id, "cuMemsetD2D32")) {
    constexpr unsigned kWidth = is_api(id, "cuMemsetD2D8")    ? 1
                                : is_api(id, "cuMemsetD2D16") ? 2
                                                              : 4;
    return facts_of_bytes(std::uint64_t{kWidth} * argument<3>(args...) * argument<4>(args...));
  } else {
    return {};
  }
}

// After a call that succeeded: which host memory is page-locked or managed from now on.
template <runtime::EntryId id, typename... Args>
void follow_host_memory([[maybe_unused]] Args... args) noexcept {
  if constexpr (is_api(id, "cuMemHostAlloc") || is_api(id, "cuMemAllocHost") ||
                is_api(id, "cuMemAllocManaged")) {
    const auto* made = argument<0>(args...);
    if (made == nullptr) return;
    profiler::note_locked_memory(address_of(*made), argument<1>(args...));
  } else if constexpr (is_api(id, "cuMemHostRegister")) {
    profiler::note_locked_memory(address_of(argument<0>(args...)), argument<1>(args...));
  } else if constexpr (is_api(id, "cuMemFreeHost") || is_api(id, "cuMemHostUnregister") ||
                       is_api(id, "cuMemFree")) {
    profiler::forget_locked_memory(address_of(argument<0>(args...)));
  }
}

}  // namespace shim
