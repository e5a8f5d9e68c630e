/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a kernel 100 times on a deferred stream, from C. The library is found at run time:
   cc axpy.c -Iruntime/include -ldl && LD_PRELOAD=libcajeta_xpu.so ./a.out */
#include <stdio.h>

#include "cajeta/xpu_loader.h"

static const char kPtx[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry axpy(.param .u64 y, .param .f32 a) {\n"
    "  .reg .u64 %p; .reg .u32 %i; .reg .f32 %f<3>; .reg .u64 %o;\n"
    "  ld.param.u64 %p, [y]; ld.param.f32 %f0, [a];\n"
    "  mov.u32 %i, %tid.x; mul.wide.u32 %o, %i, 4; add.u64 %p, %p, %o;\n"
    "  ld.global.f32 %f1, [%p]; add.f32 %f2, %f1, %f0; st.global.f32 [%p], %f2; ret;\n}\n";

static struct cajeta_xpu_api xpu;

static int failed(int code) {
  if (code != CAJETA_XPU_SUCCESS)
    fprintf(stderr, "%s: %s\n", xpu.error_name(code), xpu.error_message());
  return code != CAJETA_XPU_SUCCESS;
}

int main(void) {
  char why[512];
  float y[32] = {0}, a = 0.5f;
  uint64_t pending = 0, replayed = 0;
  const cajeta_xpu_launch_shape shape = {{1, 1, 1}, {32, 1, 1}, 0};
  cajeta_xpu_device device;
  cajeta_xpu_stream stream;
  cajeta_xpu_buffer buffer;
  cajeta_xpu_module module;
  cajeta_xpu_kernel kernel;
  if (cajeta_xpu_load(&xpu, why, sizeof why) != CAJETA_XPU_SUCCESS)
    return fprintf(stderr, "%s\n", why), 1;
  if (failed(xpu.device_open("cuda", 0, &device)) ||
      failed(xpu.module_load(device, kPtx, &module)) ||
      failed(xpu.module_kernel(module, "axpy", &kernel)) ||
      failed(xpu.buffer_create(device, sizeof y, &buffer)) ||
      failed(xpu.stream_create(device, CAJETA_XPU_STREAM_NON_BLOCKING, 0, &stream)) ||
      failed(xpu.buffer_write(buffer, 0, y, sizeof y, stream)) ||
      failed(xpu.stream_set_deferred(stream, 1)))
    return 1;
  for (int i = 0; i < 100; ++i) {
    const cajeta_xpu_argument arguments[] = {{NULL, 0, buffer}, {&a, sizeof a, NULL}};
    if (failed(xpu.launch(stream, kernel, &shape, arguments, 2))) return 1;
    if (i % 10 == 9 && failed(xpu.stream_synchronize(stream))) return 1;
    if (i == 98 && failed(xpu.stream_pending_launches(stream, &pending))) return 1;
  }
  if (failed(xpu.buffer_read(buffer, 0, y, sizeof y, stream)) ||
      failed(xpu.stream_defer_stat(stream, CAJETA_XPU_DEFER_REPLAYED, &replayed)))
    return 1;
  printf("y[31] = %g, %d pending before the last, %d replayed\n", y[31], (int)pending,
         (int)replayed);
  return failed(xpu.buffer_release(buffer)) || failed(xpu.stream_destroy(stream)) ||
         failed(xpu.module_unload(module));
}
