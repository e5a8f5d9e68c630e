/* SPDX-License-Identifier: Apache-2.0 */
/* A program compiled against the first header and linked to the library: it needs every function of
   version 1.0, and uses their types and numbers as they were. Prints "done", or ends with the line
   that went wrong. */
#include <stdio.h>
#include <string.h>

#include "tests/programs/api/first/xpu.h"

typedef void (*AnyFunction)(void);

static const AnyFunction kAll[] = {
    (AnyFunction)cajeta_xpu_version,
    (AnyFunction)cajeta_xpu_error_name,
    (AnyFunction)cajeta_xpu_error_message,
    (AnyFunction)cajeta_xpu_device_count,
    (AnyFunction)cajeta_xpu_device_open,
    (AnyFunction)cajeta_xpu_device_synchronize,
    (AnyFunction)cajeta_xpu_device_priority_range,
    (AnyFunction)cajeta_xpu_device_identity,
    (AnyFunction)cajeta_xpu_stream_current,
    (AnyFunction)cajeta_xpu_stream_default,
    (AnyFunction)cajeta_xpu_stream_create,
    (AnyFunction)cajeta_xpu_stream_from_native,
    (AnyFunction)cajeta_xpu_stream_destroy,
    (AnyFunction)cajeta_xpu_stream_device,
    (AnyFunction)cajeta_xpu_stream_native,
    (AnyFunction)cajeta_xpu_stream_is_default,
    (AnyFunction)cajeta_xpu_stream_properties,
    (AnyFunction)cajeta_xpu_stream_query_idle,
    (AnyFunction)cajeta_xpu_stream_synchronize,
    (AnyFunction)cajeta_xpu_stream_wait_event,
    (AnyFunction)cajeta_xpu_stream_set_deferred,
    (AnyFunction)cajeta_xpu_stream_is_deferred,
    (AnyFunction)cajeta_xpu_stream_flush,
    (AnyFunction)cajeta_xpu_stream_pending_launches,
    (AnyFunction)cajeta_xpu_defer_stat,
    (AnyFunction)cajeta_xpu_stream_defer_stat,
    (AnyFunction)cajeta_xpu_event_create,
    (AnyFunction)cajeta_xpu_event_destroy,
    (AnyFunction)cajeta_xpu_event_record,
    (AnyFunction)cajeta_xpu_event_query,
    (AnyFunction)cajeta_xpu_event_synchronize,
    (AnyFunction)cajeta_xpu_event_elapsed_ms,
    (AnyFunction)cajeta_xpu_buffer_create,
    (AnyFunction)cajeta_xpu_buffer_release,
    (AnyFunction)cajeta_xpu_buffer_range,
    (AnyFunction)cajeta_xpu_buffer_is_borrowed,
    (AnyFunction)cajeta_xpu_buffer_write,
    (AnyFunction)cajeta_xpu_buffer_read,
    (AnyFunction)cajeta_xpu_module_load,
    (AnyFunction)cajeta_xpu_module_from_functions,
    (AnyFunction)cajeta_xpu_module_unload,
    (AnyFunction)cajeta_xpu_module_kernel,
    (AnyFunction)cajeta_xpu_launch,
    (AnyFunction)cajeta_xpu_launch_cooperative,
    (AnyFunction)cajeta_xpu_max_active_blocks,
    (AnyFunction)cajeta_xpu_max_potential_block_size,
};

#define REQUIRE(claim) \
  if (!(claim)) return printf("line %d: %s\n", __LINE__, #claim), __LINE__ % 255 + 1

static int add(const cajeta_xpu_launch_shape* shape, void* const* arguments, void* user) {
  unsigned* x;
  unsigned n;
  memcpy(&x, arguments[0], sizeof x);
  memcpy(&n, arguments[1], sizeof n);
  *x += n * shape->grid[1] * shape->block[2] + shape->shared_bytes;
  return *(int*)user;
}

int main(void) {
  int result = CAJETA_XPU_SUCCESS, one = 0;
  unsigned value = 0, n = 3;
  uint64_t direct = 0;
  const cajeta_xpu_host_kernel functions[] = {{"other", add, NULL}, {"add", add, &result}};
  const cajeta_xpu_launch_shape shape = {{1, 2, 1}, {1, 1, 4}, 5};
  cajeta_xpu_device device;
  cajeta_xpu_stream stream;
  cajeta_xpu_buffer buffer;
  cajeta_xpu_module module;
  cajeta_xpu_kernel kernel;
  cajeta_xpu_argument arguments[2] = {{NULL, 0, NULL}, {&n, sizeof n, NULL}};
  for (size_t i = 0; i < sizeof kAll / sizeof *kAll; ++i) REQUIRE(kAll[i] != NULL);
  REQUIRE(cajeta_xpu_version() >= 10000 && cajeta_xpu_version() < 20000);
  REQUIRE(cajeta_xpu_device_count("cuda", &one) == CAJETA_XPU_SUCCESS && one == 1);
  REQUIRE(cajeta_xpu_device_open("cpu", 0, &device) == CAJETA_XPU_SUCCESS);
  REQUIRE(cajeta_xpu_stream_create(device, CAJETA_XPU_STREAM_NON_BLOCKING, 0, &stream) == 0);
  REQUIRE(cajeta_xpu_buffer_create(device, sizeof value, &buffer) == 0);
  REQUIRE(cajeta_xpu_buffer_write(buffer, 0, &value, sizeof value, stream) == 0);
  REQUIRE(cajeta_xpu_module_from_functions(device, functions, 2, &module) == 0);
  REQUIRE(cajeta_xpu_module_kernel(module, "add", &kernel) == 0);
  REQUIRE(cajeta_xpu_stream_set_deferred(stream, 1) == 0);
  arguments[0].buffer = buffer;
  REQUIRE(cajeta_xpu_launch(stream, kernel, &shape, arguments, 2) == 0);
  REQUIRE(cajeta_xpu_buffer_read(buffer, 0, &value, sizeof value, stream) == 0 && value == 29);
  result = CAJETA_XPU_ERROR_LAUNCH_TIMEOUT;
  REQUIRE(cajeta_xpu_launch(stream, kernel, &shape, arguments, 2) ==
          CAJETA_XPU_ERROR_LAUNCH_TIMEOUT);
  REQUIRE(strcmp(cajeta_xpu_error_name(702), "CAJETA_XPU_ERROR_LAUNCH_TIMEOUT") == 0);
  REQUIRE(cajeta_xpu_stream_defer_stat(stream, CAJETA_XPU_DEFER_DIRECT, &direct) == 0 &&
          direct == 2);
  REQUIRE(cajeta_xpu_stream_query_idle(NULL, &one) == CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE);
  return printf("done\n"), 0;
}
