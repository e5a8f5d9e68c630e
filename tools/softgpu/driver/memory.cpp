// SPDX-License-Identifier: Apache-2.0
// The table of live allocations and the region that device addresses come from. A leaf lock guards
// both: kernels take their snapshots without the driver lock. Never calls anything that locks.

#include "tools/softgpu/driver/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/engine.h"

namespace softgpu {

struct Backing {
  Backing(std::byte* memory, std::size_t length) : bytes(memory), size(length) {}
  Backing(const Backing&) = delete;
  ~Backing() {
    if (size > 0) munmap(bytes, size);
  }

  std::byte* const bytes;
  const std::size_t size;  // 0: the client's own memory
};

namespace {

constexpr std::size_t kPage = 4096;
// Where device addresses start when the place is free: the same in every run, so that a log with
// raw addresses of two runs can be compared.
constexpr std::uint64_t kPreferredRegion = 0x0000'2000'0000'0000ull;
// The thread sanitizer keeps its shadow at that place and ends the process when a large mapping
// does not fit into what it leaves to the program (1.5 TiB in all).
#if defined(__SANITIZE_THREAD__)
#define SOFTGPU_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SOFTGPU_HAS_TSAN 1
#endif
#endif
#if defined(SOFTGPU_HAS_TSAN)
constexpr bool kHasPreferredPlace = false;
constexpr std::uint64_t kLargestRegion = 1ull << 36;
#else
constexpr bool kHasPreferredPlace = true;
constexpr std::uint64_t kLargestRegion = 1ull << 40;
#endif
// Unused bytes after every allocation, so that a small overrun hits nothing.
constexpr std::size_t kGuard = 256;
constexpr std::byte kFreshByte{0xa5};
// Larger allocations are left zero: filling them costs more than it finds.
constexpr std::size_t kMaxFilled = std::size_t{16} << 20;
// Device allocations from kLarge on start a page of the GPU, as clients have come to expect: taichi
// counts on a page of 4 KiB.
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kLargeAlign = std::size_t{2} << 20;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::shared_ptr<Backing> map_backing(std::size_t size, bool is_prefilled) {
  const std::size_t length = round_up(size, kPage);
  void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail(CUDA_ERROR_OUT_OF_MEMORY);
  auto* const bytes = static_cast<std::byte*>(memory);
  if (is_prefilled && size <= kMaxFilled) {
    std::memset(bytes, static_cast<int>(kFreshByte), size);
  }
  return std::make_shared<Backing>(bytes, length);
}

// Address space that nothing may touch: a host that follows a device pointer faults.
struct Region {
  std::uint64_t base = 0;
  std::uint64_t size = 0;

  Region() {
    for (std::uint64_t wanted = kLargestRegion; wanted >= 1ull << 32; wanted >>= 2) {
      if (kHasPreferredPlace && try_reserve(kPreferredRegion, wanted)) return;
      if (try_reserve(0, wanted)) return;
    }
  }
  bool try_reserve(std::uint64_t at, std::uint64_t wanted) {
    const int fixed = at != 0 ? MAP_FIXED_NOREPLACE : 0;
    void* const place = mmap(reinterpret_cast<void*>(at), wanted, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (place == MAP_FAILED) return false;
    base = reinterpret_cast<std::uint64_t>(place);
    size = wanted;
    return true;
  }
};

// Keeps the backings of its ranges alive.
struct OwningTable {
  ptx::RangeTable table;
  std::vector<std::shared_ptr<Backing>> owners;
};

class Memory final : public ptx::GlobalMemory {
 public:
  static Memory& get() {
    static Memory* const memory = new Memory();
    return *memory;
  }

  std::shared_ptr<const ptx::RangeTable> snapshot() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (snapshot_ == nullptr) snapshot_ = build();
    return {snapshot_, &snapshot_->table};
  }

  void insert(const std::shared_ptr<Allocation>& allocation, std::size_t align) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (allocation->base == 0) allocation->base = find_place(allocation->size, align);
    if (allocation->kind == MemoryKind::kRegistered && overlaps(*allocation)) {
      fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    allocation->buffer_id = ++buffers_;
    allocation->ordinal =
        allocation->kind == MemoryKind::kInternal ? (1ull << 63) + ++internals_ : ++ordinals_;
    live_.emplace(allocation->base, allocation);
    snapshot_ = nullptr;
  }

  bool erase(std::uint64_t base) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (live_.erase(base) == 0) return false;
    snapshot_ = nullptr;
    return true;
  }

  std::shared_ptr<Allocation> find(std::uint64_t address, std::size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto next = live_.upper_bound(address);
    if (next == live_.begin()) return nullptr;
    const std::shared_ptr<Allocation>& found = std::prev(next)->second;
    const std::uint64_t offset = address - found->base;
    if (offset >= found->size || size > found->size - offset) return nullptr;
    return found;
  }

  std::vector<std::shared_ptr<Allocation>> owned_by(const Context& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Allocation>> owned;
    for (const auto& [base, allocation] : live_) {
      if (allocation->context == &context) owned.push_back(allocation);
    }
    return owned;
  }

  std::size_t in_use(CUdevice device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::size_t total = own_[device];
    for (const auto& [base, allocation] : live_) {
      if (allocation->device == device && !allocation->is_host()) total += allocation->size;
    }
    return total;
  }

  void add_own(CUdevice device, std::size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    own_[device] += size;
  }
  void remove_own(CUdevice device, std::size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    own_[device] -= size;
  }

  bool is_device_address(std::uint64_t address) const {
    return address - region_.base < region_.size;
  }

 private:
  std::shared_ptr<const OwningTable> build() const {
    auto built = std::make_shared<OwningTable>();
    built->table.ranges.reserve(live_.size());
    for (const auto& [base, allocation] : live_) {
      built->table.ranges.push_back({base, allocation->size, allocation->bytes, allocation->ordinal,
                                     allocation->is_writable});
      built->owners.push_back(allocation->backing);
    }
    return built;
  }

  // Onwards from the last one; freed places are used again only after the region was used up once.
  std::uint64_t find_place(std::size_t size, std::size_t align) {
    if (region_.size == 0) fail(CUDA_ERROR_OUT_OF_MEMORY);
    const std::uint64_t end = region_.base + region_.size;
    if (cursor_ == 0) cursor_ = region_.base + kPage;  // address 0 + small offsets stay invalid
    for (int pass = 0; pass < 2; ++pass) {
      std::uint64_t place = round_up(cursor_, align);
      auto next = live_.lower_bound(place);
      if (next != live_.begin()) {
        const Allocation& previous = *std::prev(next)->second;
        place = std::max(place, round_up(previous.base + previous.size + kGuard, align));
      }
      while (place + size + kGuard <= end) {
        next = live_.lower_bound(place);
        if (next == live_.end() || next->first >= place + size + kGuard) {
          cursor_ = place + size + kGuard;
          return place;
        }
        place = round_up(next->first + next->second->size + kGuard, align);
      }
      cursor_ = region_.base + kPage;
    }
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }

  bool overlaps(const Allocation& allocation) const {
    const auto next = live_.lower_bound(allocation.base);
    if (next != live_.end() && next->first < allocation.base + allocation.size) return true;
    if (next == live_.begin()) return false;
    const Allocation& previous = *std::prev(next)->second;
    return previous.base + previous.size > allocation.base;
  }

  std::mutex mutex_;
  const Region region_;
  std::uint64_t cursor_ = 0;
  std::uint64_t ordinals_ = 0, internals_ = 0, buffers_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Allocation>> live_;  // by base
  std::shared_ptr<const OwningTable> snapshot_;                // null: rebuild
  std::map<CUdevice, std::size_t> own_;                        // bytes of DriverMemory
};

void require_room(CUdevice device, std::size_t size) {
  const std::size_t total = total_memory(device);
  if (size > total) fail(CUDA_ERROR_OUT_OF_MEMORY);
  if (Memory::get().in_use(device) <= total - size) return;
  wait_for_all();  // what was freed in stream order
  if (Memory::get().in_use(device) > total - size) fail(CUDA_ERROR_OUT_OF_MEMORY);
}

bool is_host_visible(MemoryKind kind) {
  return kind == MemoryKind::kManaged || kind == MemoryKind::kPinned;
}

}  // namespace

std::shared_ptr<Allocation> allocate(Context& context, std::size_t size, MemoryKind kind,
                                     unsigned flags, std::size_t align) {
  if (size == 0) fail(CUDA_ERROR_INVALID_VALUE);
  auto allocation = std::make_shared<Allocation>();
  allocation->size = size;
  allocation->kind = kind;
  allocation->context = &context;
  allocation->device = context.device;
  allocation->flags = flags;
  allocation->is_writable = kind != MemoryKind::kConstant;
  if (!allocation->is_host()) require_room(context.device, size);
  allocation->backing = map_backing(size, !is_host_visible(kind));
  allocation->bytes = allocation->backing->bytes;
  if (is_host_visible(kind)) allocation->base = reinterpret_cast<std::uint64_t>(allocation->bytes);
  const std::size_t natural = !is_host_visible(kind) && size >= kLarge ? kLargeAlign : 256;
  Memory::get().insert(allocation, std::max(align, natural));
  return allocation;
}

std::shared_ptr<Allocation> register_host(Context& context, void* memory, std::size_t size,
                                          unsigned flags) {
  auto allocation = std::make_shared<Allocation>();
  allocation->base = reinterpret_cast<std::uint64_t>(memory);
  allocation->size = size;
  allocation->bytes = static_cast<std::byte*>(memory);
  allocation->kind = MemoryKind::kRegistered;
  allocation->context = &context;
  allocation->device = context.device;
  allocation->flags = flags;
  allocation->backing = std::make_shared<Backing>(allocation->bytes, 0);
  Memory::get().insert(allocation, 1);
  return allocation;
}

bool release(std::uint64_t base) {
  return Memory::get().erase(base);
}

std::shared_ptr<const Allocation> find_allocation(std::uint64_t address, std::size_t size) {
  return Memory::get().find(address, size);
}

std::shared_ptr<Allocation> find_allocation_mutable(std::uint64_t address) {
  return Memory::get().find(address, 1);
}

bool is_device_address(std::uint64_t address) {
  return Memory::get().is_device_address(address);
}

bool write_memory(std::uint64_t address, const void* source, std::size_t size) {
  const auto allocation = find_allocation(address, size);
  if (allocation == nullptr) return false;
  std::memcpy(allocation->bytes + (address - allocation->base), source, size);
  return true;
}

bool read_memory(std::uint64_t address, void* destination, std::size_t size) {
  const auto allocation = find_allocation(address, size);
  if (allocation == nullptr) return false;
  std::memcpy(destination, allocation->bytes + (address - allocation->base), size);
  return true;
}

ptx::GlobalMemory& global_memory() {
  return Memory::get();
}

DriverMemory::DriverMemory(CUdevice device, std::size_t size) : device_(device), size_(size) {
  require_room(device, size);
  Memory::get().add_own(device, size);
}

DriverMemory::~DriverMemory() {
  Memory::get().remove_own(device_, size_);
}

std::size_t bytes_in_use(CUdevice device) {
  return Memory::get().in_use(device);
}

void release_all(Context& context) {
  for (const auto& allocation : Memory::get().owned_by(context)) release(allocation->base);
}

}  // namespace softgpu
