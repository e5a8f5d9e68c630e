// SPDX-License-Identifier: Apache-2.0
// Another library that interposes dlsym, as profilers do: counts the calls and passes them to the
// next definition. At unload it writes the count to the file that INTERPOSER_COUNT names.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {
std::atomic<unsigned> g_calls{0};

struct Report {
  ~Report() {
    const char* path = std::getenv("INTERPOSER_COUNT");
    std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    std::fprintf(file, "%u\n", g_calls.load());
    std::fclose(file);
  }
} g_report;
}  // namespace

extern "C" [[gnu::visibility("default")]] void* dlsym(void* handle, const char* name) {
  using Function = void* (*)(void*, const char*);
  void* next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (next == nullptr) next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  ++g_calls;
  return reinterpret_cast<Function>(next)(handle, name);
}
