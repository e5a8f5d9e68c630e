// SPDX-License-Identifier: Apache-2.0
// RTLD_NEXT means "after the library that asks", also through our dlsym. Linked to scope_first,
// scope_second, libcuda, in this order; both old and new symbol versions of dlsym are bound.
#include <cuda.h>

#include "tests/programs/doors/door_check.h"

extern "C" {
const char* scope_name();
void* first_next(const char* name);
void* second_next(const char* name);
#if defined(__x86_64__)
void* old_dlsym(void* handle, const char* name);
__asm__(".symver old_dlsym, dlsym@GLIBC_2.2.5");
#endif
}

int main() {
  using doors::check;
  using Name = const char* (*)();
  check(std::strcmp(scope_name(), "first") == 0, "link order");
  auto next = reinterpret_cast<Name>(first_next("scope_name"));
  check(next != nullptr && std::strcmp(next(), "second") == 0,
        "the next after the first is the second");
  check(second_next("scope_name") == nullptr, "there is none after the second");
  check(dlsym(RTLD_NEXT, "scope_name") == reinterpret_cast<void*>(&scope_name),
        "the next after the program");
  // libcuda comes after all three; a raw driver entry must never be handed out.
  check(doors::is_answered(first_next("cuInit")), "cuInit after the first");
  check(doors::is_answered(second_next("cuInit")), "cuInit after the second");
  check(doors::is_answered(dlsym(RTLD_NEXT, "cuInit")), "cuInit after the program");
  check(second_next("cuNoSuchEntry") == nullptr, "no such entry");
#if defined(__x86_64__)
  check(old_dlsym(RTLD_DEFAULT, "cuLaunchKernel") == reinterpret_cast<void*>(&cuLaunchKernel),
        "dlsym@GLIBC_2.2.5");
#endif
  check(cuInit(0) == CUDA_SUCCESS, "cuInit");
  return doors::finish();
}
