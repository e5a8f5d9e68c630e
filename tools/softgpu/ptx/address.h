// SPDX-License-Identifier: Apache-2.0
// Turns the address operand of a memory instruction into host pointers, lane by lane, with bounds
// and alignment checks. Lives for one execution of one instruction, on the thread that steps the
// grid.
#pragma once

#include <cstdint>

#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

// Offsets in shared, local and parameter space fit in 32 bits, and their registers may be that
// narrow: the upper half of such a lane means nothing.
inline constexpr bool is_narrow(Space space) {
  return space == Space::kShared || space == Space::kLocal || space == Space::kParam;
}

template <Space kSpace, AccessKind kKind>
class Access {
 public:
  Access(Exec& x, const Op& op, unsigned bytes)
      : x_(x),
        cache_(x.grid->caches[(reinterpret_cast<std::uintptr_t>(&op) / sizeof(Op)) % kRangeCaches]),
        bytes_(bytes),
        offset_(op.displacement) {
    if (op.base == Base::kRow) {
      row_ = &x.src(op.a);
    } else if (op.base == Base::kFrame) {
      offset_ += x.frame->local_base;
    } else {
      offset_ += x.grid->entry.function->dynamic_shared_offset;
    }
  }

  std::uint64_t address(unsigned lane) const {
    const std::uint64_t sum = (row_ != nullptr ? row_->lane[lane] : 0) + offset_;
    return is_narrow(kSpace) ? static_cast<std::uint32_t>(sum) : sum;
  }

  // Call it before the accesses: a load may replace its own addresses.
  [[gnu::always_inline]] void note(Mask mask) const {
    if constexpr (!is_narrow(kSpace)) {
      if (x_.grid->config.footprint != nullptr) [[unlikely]]
        note_lanes(mask);
    }
  }

  // Null after a fault, which is then recorded.
  [[gnu::always_inline]] std::byte* at(unsigned lane) {
    const std::uint64_t where = address(lane);
    if constexpr (kSpace == Space::kShared) {
      if (inside(where, x_.grid->shared_bytes)) return x_.cta->shared_start + where;
    } else if constexpr (kSpace == Space::kLocal) {
      if (inside(where, x_.warp->local_stride)) return local(lane, where);
    } else if constexpr (kSpace == Space::kParam) {
      if (inside(where, x_.grid->config.parameters.size())) return parameter(where);
    } else {
      const std::uint64_t offset = where - cache_.base;
      if (inside(offset, cache_.size) && (where & (bytes_ - 1)) == 0 &&
          (kKind == AccessKind::kLoad || cache_.writable)) {
        global_ = true;
        return cache_.backing + offset;
      }
    }
    return slow(lane, where);
  }
  // Whether the last at() of a generic address met global memory.
  bool is_global() const { return kSpace == Space::kGlobal || global_; }

 private:
  bool inside(std::uint64_t offset, std::uint64_t size) const {
    const bool fits = offset < size && size - offset >= bytes_;
    return is_narrow(kSpace) ? fits && (offset & (bytes_ - 1)) == 0 : fits;
  }
  std::byte* local(unsigned lane, std::uint64_t offset) const {
    return x_.warp->local.data() + std::size_t{lane} * x_.warp->local_stride + offset;
  }
  std::byte* parameter(std::uint64_t offset) const {
    return kKind == AccessKind::kLoad ? x_.grid->config.parameters.data() + offset : nullptr;
  }
  static bool in_window(std::uint64_t address, std::uint64_t window) {
    return address - window < kWindowSize;
  }
  bool within(std::uint64_t offset, std::uint64_t size) const {
    return offset < size && size - offset >= bytes_;
  }

  // Shared, local and parameter windows are in no range, nor are addresses that will fault.
  [[gnu::noinline]] void note_lanes(Mask mask) const {
    for (; mask != 0; mask &= mask - 1) {
      const std::uint64_t where = address(static_cast<unsigned>(std::countr_zero(mask)));
      const Range* const range = x_.grid->ranges->find(where, bytes_);
      if (range == nullptr || range->id > kLastOrdinal) continue;
      x_.grid->config.footprint->add(kKind, range->id, where - range->base, bytes_);
    }
  }

  [[gnu::noinline]] std::byte* slow(unsigned lane, std::uint64_t where) {
    if ((where & (bytes_ - 1)) != 0) return fault(Fault::kMisalignedAddress, lane, where);
    global_ = false;
    std::byte* found = nullptr;
    if constexpr (kSpace == Space::kGeneric) found = windowed(lane, where);
    if constexpr (!is_narrow(kSpace)) {
      if (found == nullptr) found = ranged(where);
    }
    if (found == nullptr) return fault(Fault::kIllegalAddress, lane, where);
    return found;
  }
  std::byte* windowed(unsigned lane, std::uint64_t where) const {
    if (in_window(where, kSharedWindow)) {
      const std::uint64_t offset = where - kSharedWindow;
      return within(offset, x_.grid->shared_bytes) ? x_.cta->shared_start + offset : nullptr;
    }
    if (in_window(where, kLocalWindow)) {
      const std::uint64_t offset = where - kLocalWindow;
      return within(offset, x_.warp->local_stride) ? local(lane, offset) : nullptr;
    }
    if (in_window(where, kParamWindow)) {
      const std::uint64_t offset = where - kParamWindow;
      return within(offset, x_.grid->config.parameters.size()) ? parameter(offset) : nullptr;
    }
    return nullptr;
  }
  std::byte* ranged(std::uint64_t where) {
    if (within(where - kGridWorkspace, kGridWorkspaceBytes)) {
      global_ = true;
      return x_.grid->workspace + (where - kGridWorkspace);
    }
    const Range* range = x_.grid->ranges->find(where, bytes_);
    if (range == nullptr || (kKind != AccessKind::kLoad && !range->writable)) return nullptr;
    cache_ = {range->base, range->size, range->backing, range->writable};
    global_ = true;
    return range->backing + (where - range->base);
  }
  std::byte* fault(Fault kind, unsigned lane, std::uint64_t where) {
    char text[96];
    std::snprintf(text, sizeof text, "%s address 0x%llx (%u-byte %s)",
                  kind == Fault::kMisalignedAddress ? "misaligned" : "illegal",
                  static_cast<unsigned long long>(where), bytes_,
                  kKind == AccessKind::kLoad    ? "load"
                  : kKind == AccessKind::kStore ? "store"
                                                : "atomic");
    x_.fail(kind, lane, text);
    return nullptr;
  }

  Exec& x_;
  RangeCache& cache_;
  const Row* row_ = nullptr;
  unsigned bytes_;
  std::uint64_t offset_;
  bool global_ = false;
};

// Reads and writes of 1, 2, 4 or 8 bytes are single host accesses: hosts and other kernels may poll
// the same memory.
template <class T>
inline T read_memory(const std::byte* from, int order) {
  return __atomic_load_n(reinterpret_cast<const typename Words<T>::type*>(from), order);
}
template <class T>
inline void write_memory(std::byte* to, T value, int order) {
  __atomic_store_n(reinterpret_cast<typename Words<T>::type*>(to), value, order);
}

// Copies a NUL-terminated string a lane points to with a generic address; false after a fault.
bool read_string(Exec& x, unsigned lane, std::uint64_t address, std::string* text);
// One value through a generic address; false after a fault.
bool read_generic(Exec& x, unsigned lane, std::uint64_t address, unsigned bytes, void* to);

}  // namespace softgpu::ptx
