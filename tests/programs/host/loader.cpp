// SPDX-License-Identifier: Apache-2.0
// Loads a plugin whose constructor waits for a worker that calls CUDA: the loader's lock is held
// all the while. How: "used" starts CUDA first, "first" leaves even that to the worker, and
// "queried" hands the worker entries that cuGetProcAddress gave.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "tests/programs/host/loader_plugin.h"

namespace {

LoaderTable g_table;

int run_main(const char* how, const char* plugin) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto query =
      reinterpret_cast<decltype(&cuGetProcAddress_v2)>(dlsym(driver, "cuGetProcAddress_v2"));
  if (init == nullptr || query == nullptr) return 1;
  if (std::strcmp(how, "first") != 0 && init(0) != CUDA_SUCCESS) return 2;
  if (std::strcmp(how, "queried") == 0) {
    for (std::size_t i = 0; i < kLoaderEntries; ++i) {
      CUdriverProcAddressQueryResult status;
      query(kLoaderNames[i], &g_table.entries[i], 12000, 0, &status);
      if (g_table.entries[i] == nullptr) return 3;
    }
  }
  void* loaded = dlopen(plugin, RTLD_LAZY);
  if (loaded == nullptr) std::printf("%s\n", dlerror());
  std::printf("%s\n", loaded != nullptr ? "loaded" : "not loaded");
  return loaded == nullptr;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] LoaderTable* loader_table() {
  return &g_table;
}

int main(int, char** argv) {
  return run_main(argv[1], argv[2]);
}
