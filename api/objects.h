// SPDX-License-Identifier: Apache-2.0
// What the handles of cajeta/xpu.h stand for, and how an entry gets from one to the other. Fields
// are written before a handle is published and constant afterwards, unless they say otherwise.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "api/handle_table.h"
#include "cajeta/xpu.h"
#include "runtime/lock.h"

namespace api {

class Backend;

struct Device {
  Backend* backend = nullptr;
  int ordinal = 0;
  void* context = nullptr;  // the backend's
  cajeta_xpu_device handle = nullptr;
  cajeta_xpu_stream default_stream = nullptr;
  std::atomic<std::uint64_t> syncs_begun{0};
  std::atomic<std::uint64_t> syncs_done{0};  // all that began up to this one
};

// A point in the work of one stream.
struct Mark {
  cajeta_xpu_stream stream = nullptr;  // of Stream::line
  std::uint64_t ticket = 0;
};

// Work of another stream that a stream waits for, from this ticket of its own on.
struct Cover {
  Mark mark;
  std::uint64_t since = 0;
};

struct Stream {
  enum class Origin : std::uint8_t { kDefault, kCreated, kAdopted };
  Device* device = nullptr;
  cajeta_xpu_stream handle = nullptr;
  Origin origin = Origin::kDefault;
  std::atomic<std::uintptr_t> native{0};
  std::atomic<void*> context{nullptr};  // the backend's; of an adopted stream it may change
  // Several handles may lead to one stream of the device: whose tickets count.
  Stream* line = nullptr;
  std::atomic<std::uint64_t> launched{0};   // tickets given out
  std::atomic<std::uint64_t> finished{0};   // up to this one a synchronisation has waited
  std::atomic<std::uint64_t> uncounted{0};  // launches by this interface that no queue counts
  // Work of other streams that this one has waited for; the newest of each, as far as there is
  // room.
  static constexpr std::size_t kCovers = 8;
  runtime::QueueLock covers_lock;
  Cover covers[kCovers];
  // cpu: the launches of a stream run one after another; a kernel may launch on its own stream.
  pthread_mutex_t order = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
};

struct Event {
  Device* device = nullptr;
  unsigned flags = 0;
  std::uintptr_t native = 0;
  runtime::QueueLock lock;
  Mark recorded;                  // lock
  std::int64_t recorded_ns = -1;  // lock; cpu
};

struct Buffer {
  Device* device = nullptr;
  std::uint64_t address = 0;
  std::size_t size = 0;
  static constexpr std::size_t kBorrowers = 4;
  runtime::QueueLock lock;
  Mark borrowers[kBorrowers];       // lock
  bool is_widely_borrowed = false;  // lock: by more streams than there is room for
  std::uint64_t wide_since = 0;     // lock: Device::syncs_begun at the time
};

struct Kernel {
  static constexpr std::size_t kUnknown = SIZE_MAX;
  Device* device = nullptr;
  cajeta_xpu_module module = nullptr;
  cajeta_xpu_kernel next = nullptr;                  // of the module; its lock
  void* native = nullptr;                            // cuda
  cajeta_xpu_host_function host_function = nullptr;  // cpu
  void* user = nullptr;                              // cpu
  std::size_t parameter_count = kUnknown;
  // In bytes, of the first ones; a larger kernel's others are not checked.
  static constexpr std::size_t kSizes = 32;
  std::uint32_t parameter_sizes[kSizes] = {};
};

struct Module {
  Device* device = nullptr;
  void* native = nullptr;
  runtime::Mutex lock;
  cajeta_xpu_kernel kernels = nullptr;  // lock
};

// The ids of kinds are part of handles.
extern constinit HandleTable<Device, cajeta_xpu_device, 1> g_devices;
extern constinit HandleTable<Stream, cajeta_xpu_stream, 2> g_streams;
extern constinit HandleTable<Event, cajeta_xpu_event, 3> g_events;
extern constinit HandleTable<Buffer, cajeta_xpu_buffer, 4> g_buffers;
extern constinit HandleTable<Module, cajeta_xpu_module, 5> g_modules;
extern constinit HandleTable<Kernel, cajeta_xpu_kernel, 6> g_kernels;

// devices.cpp: opens it on first use.
int open_device(Backend& backend, int ordinal, Device** device) noexcept;
// streams.cpp. Null when out of memory; not published yet. `line` null: its own.
Stream* make_stream(Device& device, Stream::Origin origin, Stream* line) noexcept;

}  // namespace api
