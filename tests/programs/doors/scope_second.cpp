// SPDX-License-Identifier: Apache-2.0
// The second of two libraries that define `scope_name`.
#include <dlfcn.h>

#define SCOPE_EXPORT extern "C" [[gnu::visibility("default")]]

SCOPE_EXPORT const char* scope_name();
const char* scope_name() {
  return "second";
}

SCOPE_EXPORT void* second_next(const char* name);
void* second_next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  __asm__ volatile("" : "+r"(found));
  return found;
}
