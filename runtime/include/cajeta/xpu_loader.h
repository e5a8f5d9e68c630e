/* SPDX-License-Identifier: Apache-2.0 */
/* Finds libcajeta_xpu.so at run time, for programs that must work where it is absent: nothing of
   the library needs to be linked. Header only; C99 with GNU or Clang, C++11. Uses dlopen (-ldl on
   old systems).

     struct cajeta_xpu_api xpu;
     char why[256];
     if (cajeta_xpu_load(&xpu, why, sizeof why) != CAJETA_XPU_SUCCESS) { fputs(why, stderr); ... }
     xpu.device_open("cuda", 0, &device);

   The member of a function is its name without cajeta_xpu_. */
#ifndef CAJETA_XPU_LOADER_H
#define CAJETA_XPU_LOADER_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cajeta/xpu.h"

/* Every function of xpu.h; tests/lint holds this list against it. */
/* clang-format off */
#define CAJETA_XPU_FUNCTIONS(X) \
  X(version) \
  X(error_name) \
  X(error_message) \
  X(device_count) \
  X(device_open) \
  X(device_synchronize) \
  X(device_priority_range) \
  X(device_identity) \
  X(stream_current) \
  X(stream_default) \
  X(stream_create) \
  X(stream_from_native) \
  X(stream_destroy) \
  X(stream_device) \
  X(stream_native) \
  X(stream_is_default) \
  X(stream_properties) \
  X(stream_query_idle) \
  X(stream_synchronize) \
  X(stream_wait_event) \
  X(stream_set_deferred) \
  X(stream_is_deferred) \
  X(stream_flush) \
  X(stream_pending_launches) \
  X(defer_stat) \
  X(stream_defer_stat) \
  X(event_create) \
  X(event_destroy) \
  X(event_record) \
  X(event_query) \
  X(event_synchronize) \
  X(event_elapsed_ms) \
  X(buffer_create) \
  X(buffer_release) \
  X(buffer_range) \
  X(buffer_is_borrowed) \
  X(buffer_write) \
  X(buffer_read) \
  X(module_load) \
  X(module_from_functions) \
  X(module_unload) \
  X(module_kernel) \
  X(launch) \
  X(launch_cooperative) \
  X(max_active_blocks) \
  X(max_potential_block_size)
/* clang-format on */

struct cajeta_xpu_api {
#define CAJETA_XPU_MEMBER(name) __typeof__(&cajeta_xpu_##name) name;
  CAJETA_XPU_FUNCTIONS(CAJETA_XPU_MEMBER)
#undef CAJETA_XPU_MEMBER
};

/* The library in this process, or else the file that CAJETA_XPU_LIBRARY names, or else
   libcajeta_xpu.so where the loader looks. Null: none, and `why` says so. */
static inline void* cajeta_xpu_find_library(char* why, size_t size) {
  const char* named = getenv("CAJETA_XPU_LIBRARY");
  const char* file = named != NULL && *named != '\0' ? named : "libcajeta_xpu.so";
  void* library;
  if (dlsym(RTLD_DEFAULT, "cajeta_xpu_version") != NULL) return dlopen(NULL, RTLD_NOW);
  library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL && size != 0) {
    const char* reason = dlerror();
    snprintf(why, size,
             "libcajeta_xpu.so is not there: preload it (LD_PRELOAD), link it, or name it in "
             "CAJETA_XPU_LIBRARY (%s)",
             reason != NULL ? reason : "not found");
  }
  return library;
}

/* Fills in `api`. LIBRARY_NOT_FOUND: no library; NOT_FOUND: one that is older than this header.
   Then `why`, of `size` bytes, has one line that says what is missing. The library stays loaded.
   Any thread. */
static inline int cajeta_xpu_load(struct cajeta_xpu_api* api, char* why, size_t size) {
  void* library = cajeta_xpu_find_library(why, size);
  void* found;
  if (library == NULL) return CAJETA_XPU_ERROR_LIBRARY_NOT_FOUND;
#define CAJETA_XPU_FIND(name)                                                                      \
  found = dlsym(library, "cajeta_xpu_" #name);                                                     \
  if (found == NULL) {                                                                             \
    if (size != 0) snprintf(why, size, "libcajeta_xpu.so is too old: it lacks cajeta_xpu_" #name); \
    return CAJETA_XPU_ERROR_NOT_FOUND;                                                             \
  }                                                                                                \
  memcpy(&api->name, &found, sizeof found);
  CAJETA_XPU_FUNCTIONS(CAJETA_XPU_FIND)
#undef CAJETA_XPU_FIND
  return CAJETA_XPU_SUCCESS;
}

#endif
