// SPDX-License-Identifier: Apache-2.0
// The first of two libraries that define `scope_name`; asks for the next one as an interposer does.
#include <dlfcn.h>

#define SCOPE_EXPORT extern "C" [[gnu::visibility("default")]]

SCOPE_EXPORT const char* scope_name();
const char* scope_name() {
  return "first";
}

SCOPE_EXPORT void* first_next(const char* name);
void* first_next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  // Not a tail call: the return address is what libc takes for the caller.
  __asm__ volatile("" : "+r"(found));
  return found;
}
