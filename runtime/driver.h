// SPDX-License-Identifier: Apache-2.0
// The real driver: one typed slot per row of driver_entries.def. A slot starts as a resolver of its
// own type that finds libcuda's entry on the first call, so it is never null and needs no
// constructor. Any thread; takes no lock. A symbol the installed driver lacks answers
// CUDA_ERROR_NOT_FOUND.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cudaTypedefs.h>

#include <atomic>

#include "runtime/entry.h"
#include "runtime/interop_entries.h"

// Prototypes of the profiler entries. Their header is not among those of every toolkit (the PyPI
// wheels lack it); CUoutput_mode, an enum of its own, is passed as an int.
using PFN_cuProfilerInitialize_v4000 = CUresult(CUDAAPI*)(const char* config, const char* output,
                                                          int mode);
using PFN_cuProfilerStart_v4000 = CUresult(CUDAAPI*)();
using PFN_cuProfilerStop_v4000 = CUresult(CUDAAPI*)();

namespace runtime {

// The prototype of each entry, from cudaTypedefs.h or interop_entries.h:
// EntryTraits<EntryId::cuInit>::Function is PFN_cuInit_v2000.
template <EntryId id>
struct EntryTraits;
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  template <>                                                                   \
  struct EntryTraits<EntryId::symbol> {                                         \
    using Function = PFN_##api##_v##since##flavour;                             \
  };
#include "runtime/driver_entries.def"

// Address of the driver's own entry, or null when this driver has no such symbol. The first call
// opens libcuda.so.1 (RTLD_NODELETE). Never returns an address inside this library.
void* driver_symbol(EntryId id) noexcept;

// True when libcuda.so.1 is in this process, whoever loaded it. Does not load it.
bool driver_is_loaded() noexcept;

// Where the program itself is in dlsym(): a driver that is there stays from now on.
void note_driver_in_lookup() noexcept;

// True when `address` lies in libcuda.so.1.
bool is_in_driver(const void* address) noexcept;

// True when `address` lies in the object this code was linked into.
bool is_own_address(const void* address) noexcept;

// Makes `real` call `address` for the entry: for what cuGetProcAddress hands out and dlsym does
// not.
void set_driver_symbol(EntryId id, void* address) noexcept;

template <EntryId id, typename Function = typename EntryTraits<id>::Function>
class Slot;

template <EntryId id, typename Result, typename... Args>
class Slot<id, Result(CUDAAPI*)(Args...)> {
 public:
  using Function = Result(CUDAAPI*)(Args...);

  Result operator()(Args... args) const noexcept {
    return function_.load(std::memory_order_relaxed)(args...);
  }
  // Relaxed suffices: the value is a code address, and nothing else is published with it.
  Function get() const noexcept { return function_.load(std::memory_order_relaxed); }
  void set(Function function) const noexcept {
    function_.store(function, std::memory_order_relaxed);
  }

 private:
  static Result CUDAAPI first_call(Args... args) noexcept;
  mutable std::atomic<Function> function_{&first_call};
};

struct Driver {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  Slot<EntryId::symbol> symbol;
#include "runtime/driver_entries.def"
};

// The one instance. Tests of runtime and graphs put their doubles into its slots.
extern constinit const Driver real [[gnu::visibility("hidden")]];

// The slot of an entry known only by id.
template <EntryId id>
const Slot<id>& slot_of() noexcept;
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  template <>                                                                   \
  inline const Slot<EntryId::symbol>& slot_of<EntryId::symbol>() noexcept {     \
    return real.symbol;                                                         \
  }
#include "runtime/driver_entries.def"

template <EntryId id, typename Result, typename... Args>
Result CUDAAPI Slot<id, Result(CUDAAPI*)(Args...)>::first_call(Args... args) noexcept {
  auto function = reinterpret_cast<Function>(driver_symbol(id));
  if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
  slot_of<id>().set(function);
  return function(args...);
}

}  // namespace runtime
