// SPDX-License-Identifier: Apache-2.0
// The ways a program reaches the driver, chosen at compile time: DOOR_LINK (symbols bound by the
// linker), DOOR_DLSYM (dlopen and dlsym) or DOOR_PROC_ADDRESS (cuGetProcAddress, itself from
// dlsym). `cu.cuLaunchKernel(...)` calls through the one table; the macros of cuda.h pick the
// version. open_door() fills the table, once, before any call.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

// clang-format off
#define DOOR_ENTRIES(X)                                                                       \
  X(cuInit) X(cuGetErrorName) X(cuDeviceGet) X(cuDeviceGetName)                               \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent)                 \
  X(cuMemAlloc) X(cuMemFree) X(cuMemAllocHost) X(cuMemFreeHost) X(cuMemcpyHtoD)               \
  X(cuMemcpyDtoHAsync) X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction)           \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuLaunchKernel)
// clang-format on

struct Door {
#define DOOR_MEMBER(name) decltype(&::name) name;
  DOOR_ENTRIES(DOOR_MEMBER)
#undef DOOR_MEMBER
};

#define DOOR_TEXT(name) DOOR_TEXT_OF(name)
#define DOOR_TEXT_OF(name) #name

inline void* door_symbol(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* symbol = library != nullptr ? dlsym(library, name) : nullptr;
  if (symbol == nullptr) {
    std::fprintf(stderr, "cannot find %s: %s\n", name, dlerror());
    std::exit(1);
  }
  return symbol;
}

inline void* door_proc_address(const char* name) {
  static auto get =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(door_symbol(DOOR_TEXT(cuGetProcAddress)));
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (get(name, &function, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||
      function == nullptr) {
    std::fprintf(stderr, "cuGetProcAddress does not know %s (status %d)\n", name,
                 static_cast<int>(status));
    std::exit(1);
  }
  return function;
}

inline Door open_door() {
  Door door{};
#if defined(DOOR_LINK)
#define DOOR_OPEN(name) door.name = &::name;
#elif defined(DOOR_DLSYM)
#define DOOR_OPEN(name) \
  door.name = reinterpret_cast<decltype(door.name)>(door_symbol(DOOR_TEXT(name)));
#elif defined(DOOR_PROC_ADDRESS)
#define DOOR_OPEN(name) door.name = reinterpret_cast<decltype(door.name)>(door_proc_address(#name));
#else
#error "define DOOR_LINK, DOOR_DLSYM or DOOR_PROC_ADDRESS"
#endif
  DOOR_ENTRIES(DOOR_OPEN)
#undef DOOR_OPEN
  return door;
}
