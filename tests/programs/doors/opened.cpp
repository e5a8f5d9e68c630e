// SPDX-License-Identifier: Apache-2.0
// The door of dlopen and dlsym: every row of the table is answered by the shim, everything else as
// if it were not there. Built with each sanitizer too, whose runtimes call dlsym before main.
#include <unistd.h>

#include <initializer_list>

#include "runtime/entry.h"
#include "tests/programs/doors/door_check.h"

namespace {

using doors::check;

void check_rows(void* driver) {
  for (const runtime::EntryRow& row : runtime::kEntryTable) {
    check(doors::is_answered(dlsym(driver, row.symbol)), "wrapper for", row.symbol);
  }
}

// dlvsym is not hooked: it says what libc has.
void check_other_names() {
  for (const char* name : {"getenv", "malloc", "strlen"}) {
    check(dlsym(RTLD_DEFAULT, name) != nullptr, "found", name);
    check(dlsym(RTLD_DEFAULT, name) == dlsym(RTLD_DEFAULT, name), "stable", name);
    check(!doors::lives_in(dlsym(RTLD_DEFAULT, name), "cajeta_xpu"), "foreign", name);
  }
  check(reinterpret_cast<pid_t (*)()>(dlsym(RTLD_DEFAULT, "getppid"))() == getppid(), "callable");
}

void check_missing(void* handle, const char* name) {
  dlerror();
  check(dlsym(handle, name) == nullptr, "missing", name);
  const char* error = dlerror();
  check(error != nullptr && std::strstr(error, name) != nullptr, "dlerror names", name);
}

void check_missing_names(void* driver) {
  for (const char* name :
       {"cu", "cuB", "cuNoSuchEntry", "cudaMalloc", "cublasCreate_v2", "c", "CuInit", "no_such"}) {
    check_missing(driver, name);
    check_missing(RTLD_DEFAULT, name);
    check_missing(RTLD_NEXT, name);
  }
}

// A handle is good as long as the program holds it, however often it opened and closed.
void check_reopened(void* driver) {
  void* again = dlopen("libcuda.so.1", RTLD_LAZY);
  check(again == driver, "one handle");
  void* before = dlsym(again, "cuInit");
  check(dlclose(again) == 0, "dlclose");
  check(dlsym(driver, "cuInit") == before, "stable after dlclose");
  check(dlclose(driver) == 0, "last dlclose");
  void* once_more = doors::open_driver();
  auto* init = reinterpret_cast<int (*)(unsigned)>(dlsym(once_more, "cuInit"));
  check(init != nullptr && init(0) == 0, "cuInit after reopening");
}

}  // namespace

int main() {
  // Nothing has loaded a driver: the shim must not pretend there is one.
  check_missing(RTLD_DEFAULT, "cuInit");
  check_missing(RTLD_NEXT, "cuInit");
  void* driver = doors::open_driver();
  check_rows(driver);
  check_other_names();
  check_missing_names(driver);
  // RTLD_LOCAL: still not in the global scope.
  check_missing(RTLD_DEFAULT, "cuInit");
  check_missing(RTLD_NEXT, "cuInit");
  check(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == driver, "made global");
  check(doors::is_answered(dlsym(RTLD_DEFAULT, "cuInit")), "global", "cuInit");
  check(doors::is_answered(dlsym(dlopen(nullptr, RTLD_NOW), "cuInit")), "main program", "cuInit");
  check_reopened(driver);
  return doors::finish();
}
