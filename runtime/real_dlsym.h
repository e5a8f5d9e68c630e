// SPDX-License-Identifier: Apache-2.0
// Finds libc's own dlsym behind the one the preload library exports. Always inlined and never
// instrumented: the dlsym door runs it while a sanitizer runtime is still starting.
#pragma once

#include <dlfcn.h>

namespace runtime {

using DlsymFunction = void* (*)(void*, const char*);

// The next dlsym after the calling library. 2.34 moved it from libdl to libc; before that it
// carried the version of its architecture's first glibc. Null only on a libc that is not glibc.
[[gnu::always_inline]] inline DlsymFunction find_real_dlsym() noexcept {
  void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return reinterpret_cast<DlsymFunction>(found);
}

}  // namespace runtime
