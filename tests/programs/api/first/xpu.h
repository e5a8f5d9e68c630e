/* SPDX-License-Identifier: Apache-2.0 */
/* cajeta/xpu.h of version 1.0 without its comments, for ever as it is: programs compiled against it
 * must go on running. */
#ifndef CAJETA_XPU_H
#define CAJETA_XPU_H
#include <stddef.h>
#include <stdint.h>
#if defined(__GNUC__)
#define CAJETA_XPU_API __attribute__((visibility("default")))
#else
#define CAJETA_XPU_API
#endif
#ifdef __cplusplus
extern "C" {
#endif
typedef enum cajeta_xpu_result {
  CAJETA_XPU_SUCCESS = 0,
  CAJETA_XPU_ERROR_INVALID_VALUE = 1,
  CAJETA_XPU_ERROR_OUT_OF_MEMORY = 2,
  CAJETA_XPU_ERROR_NOT_INITIALIZED = 3,
  CAJETA_XPU_ERROR_DEINITIALIZED = 4,
  CAJETA_XPU_ERROR_NO_DEVICE = 100,
  CAJETA_XPU_ERROR_INVALID_DEVICE = 101,
  CAJETA_XPU_ERROR_INVALID_IMAGE = 200,
  CAJETA_XPU_ERROR_INVALID_CONTEXT = 201,
  CAJETA_XPU_ERROR_NO_BINARY_FOR_GPU = 209,
  CAJETA_XPU_ERROR_INVALID_PTX = 218,
  CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE = 400,
  CAJETA_XPU_ERROR_NOT_FOUND = 500,
  CAJETA_XPU_ERROR_NOT_READY = 600,
  CAJETA_XPU_ERROR_ILLEGAL_ADDRESS = 700,
  CAJETA_XPU_ERROR_OUT_OF_RESOURCES = 701,
  CAJETA_XPU_ERROR_LAUNCH_TIMEOUT = 702,
  CAJETA_XPU_ERROR_MISALIGNED_ADDRESS = 716,
  CAJETA_XPU_ERROR_LAUNCH_FAILURE = 719,
  CAJETA_XPU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CAJETA_XPU_ERROR_UNSUPPORTED = 801,
  CAJETA_XPU_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CAJETA_XPU_ERROR_UNKNOWN = 999,
  CAJETA_XPU_ERROR_LIBRARY_NOT_FOUND = 10000
} cajeta_xpu_result;
CAJETA_XPU_API uint32_t cajeta_xpu_version(void);
CAJETA_XPU_API const char* cajeta_xpu_error_name(int result);
CAJETA_XPU_API const char* cajeta_xpu_error_message(void);
typedef struct cajeta_xpu_device_object* cajeta_xpu_device;
typedef struct cajeta_xpu_stream_object* cajeta_xpu_stream;
typedef struct cajeta_xpu_event_object* cajeta_xpu_event;
typedef struct cajeta_xpu_buffer_object* cajeta_xpu_buffer;
typedef struct cajeta_xpu_module_object* cajeta_xpu_module;
typedef struct cajeta_xpu_kernel_object* cajeta_xpu_kernel;
CAJETA_XPU_API int cajeta_xpu_device_count(const char* backend, int* count);
CAJETA_XPU_API int cajeta_xpu_device_open(const char* backend, int ordinal,
                                          cajeta_xpu_device* device);
CAJETA_XPU_API int cajeta_xpu_device_synchronize(cajeta_xpu_device device);
CAJETA_XPU_API int cajeta_xpu_device_priority_range(cajeta_xpu_device device, int* least,
                                                    int* greatest);
CAJETA_XPU_API int cajeta_xpu_device_identity(cajeta_xpu_device device, const char** backend,
                                              int* ordinal);
enum { CAJETA_XPU_STREAM_DEFAULT = 0, CAJETA_XPU_STREAM_NON_BLOCKING = 1 };
CAJETA_XPU_API int cajeta_xpu_stream_current(cajeta_xpu_stream* stream);
CAJETA_XPU_API int cajeta_xpu_stream_default(cajeta_xpu_device device, cajeta_xpu_stream* stream);
CAJETA_XPU_API int cajeta_xpu_stream_create(cajeta_xpu_device device, unsigned flags, int priority,
                                            cajeta_xpu_stream* stream);
CAJETA_XPU_API int cajeta_xpu_stream_from_native(cajeta_xpu_device device, uintptr_t native,
                                                 cajeta_xpu_stream* stream);
CAJETA_XPU_API int cajeta_xpu_stream_destroy(cajeta_xpu_stream stream);
CAJETA_XPU_API int cajeta_xpu_stream_device(cajeta_xpu_stream stream, cajeta_xpu_device* device);
CAJETA_XPU_API int cajeta_xpu_stream_native(cajeta_xpu_stream stream, uintptr_t* native);
CAJETA_XPU_API int cajeta_xpu_stream_is_default(cajeta_xpu_stream stream, int* is_default);
CAJETA_XPU_API int cajeta_xpu_stream_properties(cajeta_xpu_stream stream, unsigned* flags,
                                                int* priority);
CAJETA_XPU_API int cajeta_xpu_stream_query_idle(cajeta_xpu_stream stream, int* is_idle);
CAJETA_XPU_API int cajeta_xpu_stream_synchronize(cajeta_xpu_stream stream);
CAJETA_XPU_API int cajeta_xpu_stream_wait_event(cajeta_xpu_stream stream, cajeta_xpu_event event);
CAJETA_XPU_API int cajeta_xpu_stream_set_deferred(cajeta_xpu_stream stream, int deferred);
CAJETA_XPU_API int cajeta_xpu_stream_is_deferred(cajeta_xpu_stream stream, int* is_deferred);
CAJETA_XPU_API int cajeta_xpu_stream_flush(cajeta_xpu_stream stream);
CAJETA_XPU_API int cajeta_xpu_stream_pending_launches(cajeta_xpu_stream stream, uint64_t* launches);
typedef enum cajeta_xpu_defer_stat_kind {
  CAJETA_XPU_DEFER_QUEUED = 0,
  CAJETA_XPU_DEFER_REPLAYED = 1,
  CAJETA_XPU_DEFER_DIRECT = 2,
  CAJETA_XPU_DEFER_GRAPHS_BUILT = 3,
  CAJETA_XPU_DEFER_GRAPH_LAUNCHES = 4,
  CAJETA_XPU_DEFER_PATCHES = 5,
  CAJETA_XPU_DEFER_FLUSHES = 6
} cajeta_xpu_defer_stat_kind;
CAJETA_XPU_API int cajeta_xpu_defer_stat(int which, uint64_t* value);
CAJETA_XPU_API int cajeta_xpu_stream_defer_stat(cajeta_xpu_stream stream, int which,
                                                uint64_t* value);
enum {
  CAJETA_XPU_EVENT_DEFAULT = 0,
  CAJETA_XPU_EVENT_BLOCKING_SYNC = 1,
  CAJETA_XPU_EVENT_DISABLE_TIMING = 2,
  CAJETA_XPU_EVENT_INTERPROCESS = 4
};
CAJETA_XPU_API int cajeta_xpu_event_create(cajeta_xpu_device device, unsigned flags,
                                           cajeta_xpu_event* event);
CAJETA_XPU_API int cajeta_xpu_event_destroy(cajeta_xpu_event event);
CAJETA_XPU_API int cajeta_xpu_event_record(cajeta_xpu_event event, cajeta_xpu_stream stream);
CAJETA_XPU_API int cajeta_xpu_event_query(cajeta_xpu_event event);
CAJETA_XPU_API int cajeta_xpu_event_synchronize(cajeta_xpu_event event);
CAJETA_XPU_API int cajeta_xpu_event_elapsed_ms(cajeta_xpu_event start, cajeta_xpu_event end,
                                               float* milliseconds);
CAJETA_XPU_API int cajeta_xpu_buffer_create(cajeta_xpu_device device, size_t size,
                                            cajeta_xpu_buffer* buffer);
CAJETA_XPU_API int cajeta_xpu_buffer_release(cajeta_xpu_buffer buffer);
CAJETA_XPU_API int cajeta_xpu_buffer_range(cajeta_xpu_buffer buffer, uint64_t* address,
                                           size_t* size);
CAJETA_XPU_API int cajeta_xpu_buffer_is_borrowed(cajeta_xpu_buffer buffer, int* is_borrowed);
CAJETA_XPU_API int cajeta_xpu_buffer_write(cajeta_xpu_buffer buffer, size_t offset,
                                           const void* source, size_t size,
                                           cajeta_xpu_stream stream);
CAJETA_XPU_API int cajeta_xpu_buffer_read(cajeta_xpu_buffer buffer, size_t offset,
                                          void* destination, size_t size, cajeta_xpu_stream stream);
typedef struct cajeta_xpu_launch_shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
} cajeta_xpu_launch_shape;
typedef int (*cajeta_xpu_host_function)(const cajeta_xpu_launch_shape* shape,
                                        void* const* arguments, void* user);
typedef struct cajeta_xpu_host_kernel {
  const char* name;
  cajeta_xpu_host_function function;
  void* user;
} cajeta_xpu_host_kernel;
CAJETA_XPU_API int cajeta_xpu_module_load(cajeta_xpu_device device, const void* image,
                                          cajeta_xpu_module* module);
CAJETA_XPU_API int cajeta_xpu_module_from_functions(cajeta_xpu_device device,
                                                    const cajeta_xpu_host_kernel* kernels,
                                                    size_t count, cajeta_xpu_module* module);
CAJETA_XPU_API int cajeta_xpu_module_unload(cajeta_xpu_module module);
CAJETA_XPU_API int cajeta_xpu_module_kernel(cajeta_xpu_module module, const char* name,
                                            cajeta_xpu_kernel* kernel);
typedef struct cajeta_xpu_argument {
  const void* data;
  size_t size;
  cajeta_xpu_buffer buffer;
} cajeta_xpu_argument;
CAJETA_XPU_API int cajeta_xpu_launch(cajeta_xpu_stream stream, cajeta_xpu_kernel kernel,
                                     const cajeta_xpu_launch_shape* shape,
                                     const cajeta_xpu_argument* arguments, size_t count);
CAJETA_XPU_API int cajeta_xpu_launch_cooperative(cajeta_xpu_stream stream, cajeta_xpu_kernel kernel,
                                                 const cajeta_xpu_launch_shape* shape,
                                                 const cajeta_xpu_argument* arguments,
                                                 size_t count);
CAJETA_XPU_API int cajeta_xpu_max_active_blocks(cajeta_xpu_kernel kernel, int block_size,
                                                size_t shared_bytes, int* blocks);
CAJETA_XPU_API int cajeta_xpu_max_potential_block_size(cajeta_xpu_kernel kernel,
                                                       size_t shared_bytes, int block_limit,
                                                       int* grid_size, int* block_size);
#ifdef __cplusplus
}
#endif
#endif
