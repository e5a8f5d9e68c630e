// SPDX-License-Identifier: Apache-2.0
// Against dlsym() and dladdr(), which know the same by the loader's own means.
#include "runtime/loaded_image.h"

#include <dlfcn.h>

#include "runtime/real_clock.h"
#include "tests/unit/catch.h"

using runtime::find_first_symbol;
using runtime::find_image_called;
using runtime::LoadedImage;

TEST_CASE("symbols of the program's libraries") {
  for (const char* name : {"malloc", "_exit", "pthread_create", "environ", "_dl_find_object"}) {
    INFO(name);
    CHECK(find_first_symbol(name) == dlsym(RTLD_DEFAULT, name));
  }
  CHECK(find_first_symbol("no_such_symbol_anywhere") == nullptr);
  // Undefined here, and defined in libc: the definition counts.
  LoadedImage image;
  REQUIRE(find_first_symbol("pthread_create", &image) != nullptr);
  CHECK(image.has(dlsym(RTLD_DEFAULT, "pthread_create")));
  CHECK(image.is_permanent);
}

TEST_CASE("what code must resolve, and what threads have, is not found") {
  LoadedImage libc;
  REQUIRE(find_image_called("libc.so.6", &libc));
  CHECK(find_symbol(libc, "errno") == nullptr);
#if defined(__x86_64__)
  CHECK(find_symbol(libc, "memcpy") == nullptr);  // ifunc
#endif
}

TEST_CASE("every symbol of a library is the one that the loader finds") {
  LoadedImage libm;
  if (!find_image_called("libm.so.6", &libm)) {
    REQUIRE(dlopen("libm.so.6", RTLD_NOW) != nullptr);
    REQUIRE(find_image_called("libm.so.6", &libm));
  }
  void* handle = dlopen("libm.so.6", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  for (const char* name : {"cbrt", "lgamma", "frexp", "signgam", "nextafter", "erf"}) {
    INFO(name);
    CHECK(find_symbol(libm, name) == dlsym(handle, name));
  }
  dlclose(handle);
}

TEST_CASE("a library that came later is found, and not permanent") {
  LoadedImage image;
  const char* name = "libanl.so.1";  // part of every glibc, and wanted by nobody
  if (find_image_called(name, &image)) return;
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return;
  REQUIRE(find_image_called(name, &image));
  CHECK_FALSE(image.is_permanent);
  dlclose(handle);
  CHECK_FALSE(find_image_called(name, &image));
}

TEST_CASE("the program's own object is itself") {
  LoadedImage image;
  REQUIRE(runtime::find_own_image(&image));
  CHECK(image.has(reinterpret_cast<const void*>(&runtime::find_own_image)));
  CHECK(image.is_permanent);
}

TEST_CASE("the system's clocks go on") {
  const timespec first = runtime::read_real_clock(CLOCK_MONOTONIC);
  timespec between{};
  REQUIRE(clock_gettime(CLOCK_MONOTONIC, &between) == 0);
  const timespec last = runtime::read_real_clock(CLOCK_MONOTONIC);
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  CHECK(ns(first) <= ns(between));
  CHECK(ns(between) <= ns(last));
}
