// SPDX-License-Identifier: Apache-2.0
// Memory: device address ranges with their own backing (the addresses lie in a reserved region that
// the host cannot touch), pinned, registered and managed memory (address == backing). Freed device
// addresses are not used again until the region is exhausted, so that a stale pointer faults. Own
// leaf lock inside: any thread, driver lock or not, except where said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/ptx/memory.h"

namespace softgpu {

enum class MemoryKind {
  kDevice,      // cuMemAlloc
  kPool,        // cuMemAllocAsync
  kManaged,     // cuMemAllocManaged, .managed variables
  kPinned,      // cuMemHostAlloc
  kRegistered,  // cuMemHostRegister
  kVariable,    // module-scope .global
  kConstant,    // module-scope .const: kernels cannot write it
  kArray,       // of a CUDA array: no client knows its address
  kInternal,    // device heap, cooperative workspaces: not visible to cuMemFree, takes no ordinal
};

// Owns the bytes of one allocation; kept alive by range-table snapshots of running kernels.
struct Backing;

struct Allocation {
  std::uint64_t base = 0;  // device address
  std::size_t size = 0;    // bytes asked for
  std::byte* bytes = nullptr;
  std::uint64_t ordinal = 0;  // allocation order, process-wide: same program, same ordinals
  MemoryKind kind = MemoryKind::kDevice;
  Context* context = nullptr;
  CUdevice device = 0;
  unsigned flags = 0;  // of the call that made it
  CUmemoryPool pool = nullptr;
  bool is_writable = true;
  bool sync_memops = false;
  bool is_freed_in_order = false;  // cuMemFreeAsync was called, its operation has not run yet
  std::uint64_t buffer_id = 0;
  std::shared_ptr<Backing> backing;

  bool is_host() const { return kind == MemoryKind::kPinned || kind == MemoryKind::kRegistered; }
};

// Fails with OUT_OF_MEMORY, or INVALID_VALUE for size 0. Driver lock held.
std::shared_ptr<Allocation> allocate(Context& context, std::size_t size, MemoryKind kind,
                                     unsigned flags = 0, std::size_t align = 256);
// Makes [memory, memory + size) of the client's visible to the device. Fails with
// HOST_MEMORY_ALREADY_REGISTERED.
std::shared_ptr<Allocation> register_host(Context& context, void* memory, std::size_t size,
                                          unsigned flags);
// Takes the range out of the table; the caller has made sure that nothing uses it. False: not the
// start of a live allocation. Driver lock held.
bool release(std::uint64_t base);
// Its bytes no longer count as used by its pool, if it has one (pool.cpp). Driver lock held.
void leave_pool(const Allocation& allocation);

// The live allocation holding [address, address + size), or null.
std::shared_ptr<const Allocation> find_allocation(std::uint64_t address, std::size_t size = 1);
// Same, for changing its fields; driver lock held.
std::shared_ptr<Allocation> find_allocation_mutable(std::uint64_t address);

// Lies in the region of device addresses, live or not: the host must not touch it.
bool is_device_address(std::uint64_t address);

// Moves bytes between host memory and device addresses at once, outside any stream. False: not a
// live range.
bool write_memory(std::uint64_t address, const void* source, std::size_t size);
bool read_memory(std::uint64_t address, void* destination, std::size_t size);

// What kernels translate addresses by.
ptx::GlobalMemory& global_memory();

// Bytes in use on a device, for cuMemGetInfo.
std::size_t bytes_in_use(CUdevice device);

// Device memory that the driver itself takes, for as long as this lives. Throws OUT_OF_MEMORY.
class DriverMemory {
 public:
  DriverMemory(CUdevice device, std::size_t size);
  ~DriverMemory();
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;

 private:
  const CUdevice device_;
  const std::size_t size_;
};

// Frees what a destroyed or reset context owned.
void release_all(Context& context);

}  // namespace softgpu
