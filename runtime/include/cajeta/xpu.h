/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of cajeta-xpu, version 1.0: devices, streams whose launches may be deferred,
   events, memory, modules and kernels, on CUDA or on the CPU. libcajeta_xpu.so may be preloaded,
   linked, or absent: then include cajeta/xpu_loader.h, which finds it at run time and says clearly
   when it is not there. Plain C99.

   All functions return a cajeta_xpu_result unless they say otherwise, write their outputs only on
   success, and accept any handle: one that is stale, foreign or null is an error, never a crash. No
   function throws, ends the process or changes errno. "Threads: any" means that any thread may call
   it at any time, also on the same objects; a call that races the destruction of its own object
   gets an error. Names and numbers are never changed or reused; later versions add functions under
   new symbol versions. */
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

/* ---- Results ---- */

/** What a call returns. Up to 999 these are the numbers of the CUDA driver (CUresult in cuda.h);
 * one that is not named here is passed on as the driver gave it, and cajeta_xpu_error_name() still
 * knows it. From 10000 they are our own. */
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
  CAJETA_XPU_ERROR_LIBRARY_NOT_FOUND = 10000 /* xpu_loader.h: libcajeta_xpu.so is not there */
} cajeta_xpu_result;

/** The version of this interface that the library implements: 10000 * major + minor.
   @errors none; this is not a cajeta_xpu_result.
   @threads any.
   @cuda none. */
CAJETA_XPU_API uint32_t cajeta_xpu_version(void);

/** The name of a result, as "CAJETA_XPU_ERROR_NOT_READY", or as the driver spells one that is not
   named here. Never null; "unrecognized error code" for numbers that nobody knows. The text is
   valid for ever.
   @errors none.
   @threads any.
   @cuda cuGetErrorName (driver API, error handling). */
CAJETA_XPU_API const char* cajeta_xpu_error_name(int result);

/** One line about the last call of this thread that failed: which call, and what was wrong. Empty
   before the first failure. Valid until this thread's next failure.
   @errors none.
   @threads each has its own.
   @cuda none. */
CAJETA_XPU_API const char* cajeta_xpu_error_message(void);

/* ---- Handles ---- */

/** Opaque. 0 is no object. A destroyed object's value is not given to another one in this process.
 */
typedef struct cajeta_xpu_device_object* cajeta_xpu_device;
typedef struct cajeta_xpu_stream_object* cajeta_xpu_stream;
typedef struct cajeta_xpu_event_object* cajeta_xpu_event;
typedef struct cajeta_xpu_buffer_object* cajeta_xpu_buffer;
typedef struct cajeta_xpu_module_object* cajeta_xpu_module;
typedef struct cajeta_xpu_kernel_object* cajeta_xpu_kernel;

/* ---- Devices ---- */

/** How many devices a backend has: "cuda" (0 when there is no driver) or "cpu" (1).
   @errors INVALID_VALUE for a backend that does not exist or a null pointer.
   @threads any.
   @cuda cuDeviceGetCount (device management); initialises the driver (cuInit). */
CAJETA_XPU_API int cajeta_xpu_device_count(const char* backend, int* count);

/** Opens a device; the same device always gives the same handle. Devices are never closed. On CUDA
   it stands for the device's primary context, which is retained until the process ends.
   @errors INVALID_VALUE for an unknown backend, NO_DEVICE without a driver, INVALID_DEVICE for an
   ordinal out of range.
   @threads any.
   @cuda cuDevicePrimaryCtxRetain (primary context management), shared with the runtime library. */
CAJETA_XPU_API int cajeta_xpu_device_open(const char* backend, int ordinal,
                                          cajeta_xpu_device* device);

/** Waits until all work of the device, of all streams, is done; submits what is queued first. Ends
   all borrowing.
   @errors INVALID_RESOURCE_HANDLE; what work submitted earlier has met.
   @threads any; the caller waits.
   @cuda cuCtxSynchronize (context management). */
CAJETA_XPU_API int cajeta_xpu_device_synchronize(cajeta_xpu_device device);

/** The legal priorities of streams: `greatest` is the number of the highest priority, the smaller
   one.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda cuCtxGetStreamPriorityRange (context management); both 0 where there are none, as on the
   cpu. */
CAJETA_XPU_API int cajeta_xpu_device_priority_range(cajeta_xpu_device device, int* least,
                                                    int* greatest);

/** The name of the device's backend and its ordinal there; the text is valid for ever.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_device_identity(cajeta_xpu_device device, const char** backend,
                                              int* ordinal);

/* ---- Streams ---- */

/** Flags of streams, as CU_STREAM_DEFAULT and CU_STREAM_NON_BLOCKING. A non-blocking stream does
 * not wait for the default stream, nor the default stream for it. */
enum { CAJETA_XPU_STREAM_DEFAULT = 0, CAJETA_XPU_STREAM_NON_BLOCKING = 1 };

/** The calling thread's stream: the default stream of the first CUDA device, or of the CPU where
   there is none. Its native handle is 0. The same thread always gets the same handle; other threads
   get others, which all lead to the legacy default stream of CUDA.
   @errors OUT_OF_MEMORY; what opening the device meets.
   @threads any.
   @cuda the legacy default stream (stream synchronization behavior). */
CAJETA_XPU_API int cajeta_xpu_stream_current(cajeta_xpu_stream* stream);

/** The default stream of a device: always valid, the same handle each time, never destroyed. Native
   handle 0.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda the legacy default stream, which waits for all blocking streams and holds them back. */
CAJETA_XPU_API int cajeta_xpu_stream_default(cajeta_xpu_device device, cajeta_xpu_stream* stream);

/** A new stream, which cajeta_xpu_stream_destroy() ends. A priority out of range is moved into it.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for unknown flags or null, OUT_OF_MEMORY.
   @threads any.
   @cuda cuStreamCreateWithPriority (stream management). */
CAJETA_XPU_API int cajeta_xpu_stream_create(cajeta_xpu_device device, unsigned flags, int priority,
                                            cajeta_xpu_stream* stream);

/** Adopts a stream that somebody else made: a CUstream or cudaStream_t as a number, such as torch's
   cuda_stream. It is never destroyed by us. The same number on the same device gives the same
   handle. 1 and 2 are CUDA's names of the legacy and of the per-thread default stream; launches on
   the latter are never queued.
   @errors INVALID_VALUE for 0 and for a stream of another device, UNSUPPORTED on a backend that
   cannot adopt (cpu), INVALID_RESOURCE_HANDLE for what the driver does not know (a real driver may
   not survive being asked).
   @threads any.
   @cuda cuStreamGetCtx (stream management). */
CAJETA_XPU_API int cajeta_xpu_stream_from_native(cajeta_xpu_device device, uintptr_t native,
                                                 cajeta_xpu_stream* stream);

/** Ends a stream that cajeta_xpu_stream_create() made; what it still holds is submitted first and
   runs to its end. Does nothing, successfully, for default and adopted streams and for one that is
   destroyed already.
   @errors INVALID_RESOURCE_HANDLE for what never was a stream; the failure of submitted work.
   @threads any.
   @cuda cuStreamDestroy (stream management). */
CAJETA_XPU_API int cajeta_xpu_stream_destroy(cajeta_xpu_stream stream);

/** The device that the stream belongs to.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_stream_device(cajeta_xpu_stream stream, cajeta_xpu_device* device);

/** The stream's CUstream as a number; 0 for default streams. On the cpu a number of no meaning.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda CUstream is cudaStream_t. */
CAJETA_XPU_API int cajeta_xpu_stream_native(cajeta_xpu_stream stream, uintptr_t* native);

/** 1 for a default stream, else 0.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_stream_is_default(cajeta_xpu_stream stream, int* is_default);

/** The stream's flags and its priority, as the backend has them.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda cuStreamGetFlags, cuStreamGetPriority (stream management). */
CAJETA_XPU_API int cajeta_xpu_stream_properties(cajeta_xpu_stream stream, unsigned* flags,
                                                int* priority);

/** 1 when all work of the stream was done at the moment of asking. A hint, not a barrier: it orders
   nothing and ends no borrowing. What is queued is submitted, so asking again and again gets there.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null; what submitted work has met.
   @threads any.
   @cuda cuStreamQuery (stream management), whose CUDA_ERROR_NOT_READY is 0 here. */
CAJETA_XPU_API int cajeta_xpu_stream_query_idle(cajeta_xpu_stream stream, int* is_idle);

/** Waits until all work of the stream is done; submits what is queued first. Ends the borrowing of
   its launches, and of those behind events that it waited for.
   @errors INVALID_RESOURCE_HANDLE; what submitted work has met.
   @threads any; the caller waits.
   @cuda cuStreamSynchronize (stream management). */
CAJETA_XPU_API int cajeta_xpu_stream_synchronize(cajeta_xpu_stream stream);

/** Work given to the stream from here on waits for what the event recorded last. An event that was
   never recorded is waited for by nobody. The host does not wait.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE when one is of another backend; the failure of
   submitted work.
   @threads any.
   @cuda cuStreamWaitEvent (stream management); across devices too. */
CAJETA_XPU_API int cajeta_xpu_stream_wait_event(cajeta_xpu_stream stream, cajeta_xpu_event event);

/* ---- Deferral ---- */

/** Switches deferral on (1) or off (0) for this stream and all launches on it, however they are
   made. On: launches wait in a queue until something could observe them, and repeated sequences are
   replayed as graphs. Off: what is queued is submitted first. Accepted without effect: on the cpu,
   on per-thread default streams, under CAJETA_XPU_DEFER=0, CUDA_LAUNCH_BLOCKING=1 and
   CAJETA_XPU_DISABLE=1, in a forked child. All handles of the legacy default stream switch the same
   queue.
   @errors INVALID_RESOURCE_HANDLE; UNSUPPORTED for on, when the library was loaded after the
   driver's names were bound (neither preloaded nor linked first), since the program's own calls
   then pass it by; the failure of submitted work.
   @threads any.
   @cuda docs/semantics.md says which driver calls submit a queue. */
CAJETA_XPU_API int cajeta_xpu_stream_set_deferred(cajeta_xpu_stream stream, int deferred);

/** 1 when launches on the stream may be queued, because it or CAJETA_XPU_DEFER=all asked for it and
   nothing forbids it; else 0.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_stream_is_deferred(cajeta_xpu_stream stream, int* is_deferred);

/** Submits what is queued on the stream, without waiting for it.
   @errors INVALID_RESOURCE_HANDLE; the failure of submitted work.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_stream_flush(cajeta_xpu_stream stream);

/** How many launches are queued on the stream and not yet submitted. 0 where nothing is deferred.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any; submits nothing.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_stream_pending_launches(cajeta_xpu_stream stream, uint64_t* launches);

/** What deferral did. At any quiet moment launches = REPLAYED + DIRECT + pending. */
typedef enum cajeta_xpu_defer_stat_kind {
  CAJETA_XPU_DEFER_QUEUED = 0,         /* launches put in a queue */
  CAJETA_XPU_DEFER_REPLAYED = 1,       /* launches submitted inside a graph */
  CAJETA_XPU_DEFER_DIRECT = 2,         /* launches submitted one by one, queued before or not */
  CAJETA_XPU_DEFER_GRAPHS_BUILT = 3,   /* graphs */
  CAJETA_XPU_DEFER_GRAPH_LAUNCHES = 4, /* launches of graphs */
  CAJETA_XPU_DEFER_PATCHES = 5,        /* graph nodes whose values were changed */
  CAJETA_XPU_DEFER_FLUSHES = 6         /* submissions of a queue that held something */
} cajeta_xpu_defer_stat_kind;

/** A counter of the whole process: of all streams, also of launches that the program made without
   this interface. Under CAJETA_XPU_DISABLE=1 and in a forked child nothing is counted.
   @errors INVALID_VALUE for a counter that does not exist or null.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_defer_stat(int which, uint64_t* value);

/** The same counter of one stream: of all launches made through this interface, and of the
   program's own launches on it from when the process first defers.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for a counter that does not exist or null.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_stream_defer_stat(cajeta_xpu_stream stream, int which,
                                                uint64_t* value);

/* ---- Events ---- */

/** Flags of events, as CU_EVENT_DEFAULT, _BLOCKING_SYNC, _DISABLE_TIMING and _INTERPROCESS. */
enum {
  CAJETA_XPU_EVENT_DEFAULT = 0,
  CAJETA_XPU_EVENT_BLOCKING_SYNC = 1,  /* waiting threads sleep */
  CAJETA_XPU_EVENT_DISABLE_TIMING = 2, /* no elapsed time, cheaper */
  CAJETA_XPU_EVENT_INTERPROCESS = 4    /* with DISABLE_TIMING only; not on the cpu */
};

/** A new event.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for unknown flags, for INTERPROCESS without
   DISABLE_TIMING, or null, UNSUPPORTED for INTERPROCESS on the cpu, OUT_OF_MEMORY.
   @threads any.
   @cuda cuEventCreate (event management). */
CAJETA_XPU_API int cajeta_xpu_event_create(cajeta_xpu_device device, unsigned flags,
                                           cajeta_xpu_event* event);

/** Ends an event; does nothing, successfully, when it is destroyed already. Work that waits for it
   still does.
   @errors INVALID_RESOURCE_HANDLE for what never was an event.
   @threads any.
   @cuda cuEventDestroy (event management). */
CAJETA_XPU_API int cajeta_xpu_event_destroy(cajeta_xpu_event event);

/** The event now stands for all work given to the stream so far; what is queued there is submitted
   first.
   @errors INVALID_RESOURCE_HANDLE, also for a stream of another device; the failure of submitted
   work.
   @threads any.
   @cuda cuEventRecord (event management). */
CAJETA_XPU_API int cajeta_xpu_event_record(cajeta_xpu_event event, cajeta_xpu_stream stream);

/** SUCCESS when the recorded work is done, or none was recorded; NOT_READY when it is not.
   @errors NOT_READY, INVALID_RESOURCE_HANDLE; what submitted work has met.
   @threads any.
   @cuda cuEventQuery (event management). */
CAJETA_XPU_API int cajeta_xpu_event_query(cajeta_xpu_event event);

/** Waits until the recorded work is done. Ends the borrowing of the launches that it covers.
   @errors INVALID_RESOURCE_HANDLE; what submitted work has met.
   @threads any; the caller waits.
   @cuda cuEventSynchronize (event management). */
CAJETA_XPU_API int cajeta_xpu_event_synchronize(cajeta_xpu_event event);

/** Milliseconds between two recorded events, with a resolution of about half a microsecond on CUDA.
   @errors INVALID_RESOURCE_HANDLE for one that was never recorded or has DISABLE_TIMING, NOT_READY
   while one is not done, INVALID_VALUE for null or events of two backends.
   @threads any.
   @cuda cuEventElapsedTime (event management). */
CAJETA_XPU_API int cajeta_xpu_event_elapsed_ms(cajeta_xpu_event start, cajeta_xpu_event end,
                                               float* milliseconds);

/* ---- Memory ---- */

/** Device memory of `size` bytes, uninitialised, aligned to 256 bytes.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for size 0 or null, OUT_OF_MEMORY.
   @threads any.
   @cuda cuMemAlloc (memory management). */
CAJETA_XPU_API int cajeta_xpu_buffer_create(cajeta_xpu_device device, size_t size,
                                            cajeta_xpu_buffer* buffer);

/** Gives the memory back; does nothing, successfully, when that has happened already. A buffer
   passed to a launch is borrowed until the next synchronisation ordered after the launch; releasing
   a borrowed buffer submits the queues that borrow it first, and the memory goes when their work is
   done.
   @errors INVALID_RESOURCE_HANDLE for what never was a buffer; the failure of submitted work.
   @threads any.
   @cuda cuMemFree (memory management), which waits for the work that uses the memory. */
CAJETA_XPU_API int cajeta_xpu_buffer_release(cajeta_xpu_buffer buffer);

/** The buffer's address on its device, and its size in bytes. Either pointer may be null.
   @errors INVALID_RESOURCE_HANDLE.
   @threads any.
   @cuda a CUdeviceptr; on the cpu a host address. */
CAJETA_XPU_API int cajeta_xpu_buffer_range(cajeta_xpu_buffer buffer, uint64_t* address,
                                           size_t* size);

/** 1 while a launch borrows the buffer, else 0. It may stay 1 longer than it must: when more than 4
   streams borrow it at once until a device synchronisation, and when the launch is ordered before a
   synchronisation by more than one event.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_buffer_is_borrowed(cajeta_xpu_buffer buffer, int* is_borrowed);

/** Copies `size` bytes from the host into the buffer, behind all work of the stream; returns when
   they are there. What is queued on the stream is submitted first; as a synchronisation it ends
   borrowing.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for a range outside the buffer, null, or a stream
   of another device; what submitted work has met.
   @threads any; the caller waits.
   @cuda cuMemcpyHtoDAsync and cuStreamSynchronize (memory management). */
CAJETA_XPU_API int cajeta_xpu_buffer_write(cajeta_xpu_buffer buffer, size_t offset,
                                           const void* source, size_t size,
                                           cajeta_xpu_stream stream);

/** Copies `size` bytes from the buffer to the host, behind all work of the stream; returns when
   they are there.
   @errors as cajeta_xpu_buffer_write().
   @threads any; the caller waits.
   @cuda cuMemcpyDtoHAsync and cuStreamSynchronize (memory management). */
CAJETA_XPU_API int cajeta_xpu_buffer_read(cajeta_xpu_buffer buffer, size_t offset,
                                          void* destination, size_t size, cajeta_xpu_stream stream);

/* ---- Modules and kernels ---- */

/** Threads of a launch: blocks in the grid, threads in a block, and bytes of dynamic shared memory
 * * per block. */
typedef struct cajeta_xpu_launch_shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
} cajeta_xpu_launch_shape;

/** A kernel of the cpu backend: runs the whole grid. `arguments` has one pointer per argument, a
 * buffer's being to its address; all of it is gone when the function returns. What it returns, the
 * launch returns. It must not throw. It may launch, also on its own stream. */
typedef int (*cajeta_xpu_host_function)(const cajeta_xpu_launch_shape* shape,
                                        void* const* arguments, void* user);

/** An entry of a module for the cpu backend. */
typedef struct cajeta_xpu_host_kernel {
  const char* name;
  cajeta_xpu_host_function function;
  void* user; /* passed to the function */
} cajeta_xpu_host_kernel;

/** Loads device code: PTX (text that ends with a zero byte), a cubin or a fatbin. The image may go
   afterwards.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null, INVALID_IMAGE, INVALID_PTX,
   NO_BINARY_FOR_GPU, UNSUPPORTED on the cpu, OUT_OF_MEMORY.
   @threads any.
   @cuda cuLibraryLoadData (library management), so a driver of CUDA 12.0 or later. */
CAJETA_XPU_API int cajeta_xpu_module_load(cajeta_xpu_device device, const void* image,
                                          cajeta_xpu_module* module);

/** A module of the cpu backend from host functions; names are copied, the functions must stay.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null, an empty list or a nameless entry,
   UNSUPPORTED on other backends, OUT_OF_MEMORY.
   @threads any.
   @cuda none. */
CAJETA_XPU_API int cajeta_xpu_module_from_functions(cajeta_xpu_device device,
                                                    const cajeta_xpu_host_kernel* kernels,
                                                    size_t count, cajeta_xpu_module* module);

/** Unloads the module; its kernels' handles become stale. What is queued is submitted first. Does
   nothing, successfully, when that has happened already. On CUDA launches that have not run must
   not need it any more: synchronise first.
   @errors INVALID_RESOURCE_HANDLE for what never was a module; the failure of submitted work.
   @threads any.
   @cuda cuLibraryUnload (library management). */
CAJETA_XPU_API int cajeta_xpu_module_unload(cajeta_xpu_module module);

/** The kernel of this name; the same one gives the same handle. It lives as long as its module.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null, NOT_FOUND, OUT_OF_MEMORY.
   @threads any.
   @cuda cuLibraryGetKernel (library management). */
CAJETA_XPU_API int cajeta_xpu_module_kernel(cajeta_xpu_module module, const char* name,
                                            cajeta_xpu_kernel* kernel);

/** One argument of a launch: a buffer, or else `size` bytes at `data`, copied before the call *
 * returns. */
typedef struct cajeta_xpu_argument {
  const void* data;
  size_t size;              /* bytes; 0: not checked against the kernel's parameter */
  cajeta_xpu_buffer buffer; /* not 0: its address is passed, and the launch borrows it */
} cajeta_xpu_argument;

/** Launches the kernel on the stream: the launches of one stream run in the order of the calls. It
   takes the way of the program's own launches, so it is queued where the stream is deferred.
   Allocates nothing. At most 1024 arguments.
   @errors INVALID_RESOURCE_HANDLE (also for a released buffer), INVALID_VALUE for a wrong shape,
   number or size of arguments, or an object of another device, OUT_OF_RESOURCES, LAUNCH_FAILURE,
   LAUNCH_TIMEOUT and what else the driver says; what submitted work has met.
   @threads any.
   @cuda cuLaunchKernel (execution control). */
CAJETA_XPU_API int cajeta_xpu_launch(cajeta_xpu_stream stream, cajeta_xpu_kernel kernel,
                                     const cajeta_xpu_launch_shape* shape,
                                     const cajeta_xpu_argument* arguments, size_t count);

/** As cajeta_xpu_launch(), with all blocks on the device at once, so that they may wait for each
   other.
   @errors also COOPERATIVE_LAUNCH_TOO_LARGE; UNSUPPORTED by devices that cannot.
   @threads any.
   @cuda cuLaunchCooperativeKernel (execution control). */
CAJETA_XPU_API int cajeta_xpu_launch_cooperative(cajeta_xpu_stream stream, cajeta_xpu_kernel kernel,
                                                 const cajeta_xpu_launch_shape* shape,
                                                 const cajeta_xpu_argument* arguments,
                                                 size_t count);

/** How many blocks of `block_size` threads and `shared_bytes` of dynamic shared memory each a
   multiprocessor holds at once; 1 on the cpu.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for a block size of 0 or less or null.
   @threads any.
   @cuda cuOccupancyMaxActiveBlocksPerMultiprocessor (occupancy). */
CAJETA_XPU_API int cajeta_xpu_max_active_blocks(cajeta_xpu_kernel kernel, int block_size,
                                                size_t shared_bytes, int* blocks);

/** The block size, of at most `block_limit` threads (0: no limit of yours), with which the most
   threads run at once, and the smallest grid that then fills the device. On the cpu a grid of 1 and
   a block of 1.
   @errors INVALID_RESOURCE_HANDLE, INVALID_VALUE for null or a negative limit.
   @threads any.
   @cuda cuOccupancyMaxPotentialBlockSize (occupancy). */
CAJETA_XPU_API int cajeta_xpu_max_potential_block_size(cajeta_xpu_kernel kernel,
                                                       size_t shared_bytes, int block_limit,
                                                       int* grid_size, int* block_size);

#ifdef __cplusplus
}
#endif

#endif
