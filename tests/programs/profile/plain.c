/* SPDX-License-Identifier: Apache-2.0
   A host in C that loads a library, has it wait, and unloads it: plain PLUGIN. */
#include <dlfcn.h>

#include "tests/programs/profile/check.h"

enum { kReads = 12 };

static void read_back(CUdeviceptr memory) {
  int word = 0;
  CHECK(cuMemcpyDtoH(&word, memory, sizeof word)); /* SITE read_back */
}

int main(int count, char** arguments) {
  CUdevice device = 0;
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemAlloc(&memory, sizeof(int)));
  for (int i = 0; i < kReads; ++i) read_back(memory);
  if (count > 1) {
    void* plugin = dlopen(arguments[1], RTLD_NOW);
    if (plugin == NULL) return fprintf(stderr, "%s\n", dlerror()), 3;
    void (*wait)(void);
    *(void**)&wait = dlsym(plugin, "plugin_wait");
    if (wait == NULL) return 3;
    wait();
    dlclose(plugin);
  }
  return 0;
}
