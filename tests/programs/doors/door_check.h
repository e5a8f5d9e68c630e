// SPDX-License-Identifier: Apache-2.0
// For the door programs: checks that print what failed and go on, and where an address lives. A
// program ends with `return finish();`. CAJETA_TEST_ANSWER names the library that must answer:
// cajeta_xpu (default) or libcuda.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace doors {

inline int g_failures = 0;
inline int g_checks = 0;

inline bool check(bool holds, const char* what, const char* detail = "") {
  ++g_checks;
  if (!holds) {
    ++g_failures;
    std::fprintf(stderr, "failed: %s %s\n", what, detail);
  }
  return holds;
}

inline int finish() {
  std::printf("%d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 && g_checks > 0 ? 0 : 1;
}

// File name of the object that holds `address`; "" for none.
inline const char* object_of(const void* address) {
  Dl_info info;
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash != nullptr ? slash + 1 : info.dli_fname;
}

inline bool lives_in(const void* address, const char* library) {
  return std::strstr(object_of(address), library) != nullptr;
}

inline const char* expected_library() {
  const char* name = std::getenv("CAJETA_TEST_ANSWER");
  return name != nullptr ? name : "cajeta_xpu";
}

inline bool is_answered(const void* address) {
  return lives_in(address, expected_library());
}

inline void* open_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  return driver;
}

}  // namespace doors
