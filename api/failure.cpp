// SPDX-License-Identifier: Apache-2.0
#include "api/failure.h"

#include <cstdarg>
#include <cstdio>

#include "runtime/driver.h"
#include "runtime/reentry.h"

namespace api {
namespace {

// 160 bytes: initial-exec thread-locals come out of a small reserve when the library is opened by
// dlopen.
[[gnu::tls_model("initial-exec")]] constinit thread_local char t_message[160] = {};

struct Name {
  int code;
  const char* name;
};
#define NAMED(code) \
  { code, #code }
constexpr Name kNames[] = {
    NAMED(CAJETA_XPU_SUCCESS),
    NAMED(CAJETA_XPU_ERROR_INVALID_VALUE),
    NAMED(CAJETA_XPU_ERROR_OUT_OF_MEMORY),
    NAMED(CAJETA_XPU_ERROR_NOT_INITIALIZED),
    NAMED(CAJETA_XPU_ERROR_DEINITIALIZED),
    NAMED(CAJETA_XPU_ERROR_NO_DEVICE),
    NAMED(CAJETA_XPU_ERROR_INVALID_DEVICE),
    NAMED(CAJETA_XPU_ERROR_INVALID_IMAGE),
    NAMED(CAJETA_XPU_ERROR_INVALID_CONTEXT),
    NAMED(CAJETA_XPU_ERROR_NO_BINARY_FOR_GPU),
    NAMED(CAJETA_XPU_ERROR_INVALID_PTX),
    NAMED(CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE),
    NAMED(CAJETA_XPU_ERROR_NOT_FOUND),
    NAMED(CAJETA_XPU_ERROR_NOT_READY),
    NAMED(CAJETA_XPU_ERROR_ILLEGAL_ADDRESS),
    NAMED(CAJETA_XPU_ERROR_OUT_OF_RESOURCES),
    NAMED(CAJETA_XPU_ERROR_LAUNCH_TIMEOUT),
    NAMED(CAJETA_XPU_ERROR_MISALIGNED_ADDRESS),
    NAMED(CAJETA_XPU_ERROR_LAUNCH_FAILURE),
    NAMED(CAJETA_XPU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    NAMED(CAJETA_XPU_ERROR_UNSUPPORTED),
    NAMED(CAJETA_XPU_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    NAMED(CAJETA_XPU_ERROR_UNKNOWN),
    NAMED(CAJETA_XPU_ERROR_LIBRARY_NOT_FOUND),
};
#undef NAMED

const char* name_of(int code) noexcept {
  for (const Name& known : kNames) {
    if (known.code == code) return known.name;
  }
  constexpr const char* kUnknown = "unrecognized error code";
  // Other numbers are no values of the enumeration, whose last is CUDA_ERROR_UNKNOWN.
  if (code < 0 || code > CUDA_ERROR_UNKNOWN) return kUnknown;
  const api::ErrnoKeeper keeper;
  const runtime::ReentryGuard guard;
  const char* name = nullptr;
  // A failed look-up writes null.
  if (runtime::real.cuGetErrorName(static_cast<CUresult>(code), &name) != CUDA_SUCCESS) {
    name = nullptr;
  }
  return name != nullptr ? name : kUnknown;
}

}  // namespace

int fail(int code, const char* format, ...) noexcept {
  const api::ErrnoKeeper keeper;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(t_message, sizeof t_message, format, arguments);
  va_end(arguments);
  return code;
}

int fail_handle(const char* call, const char* kind) noexcept {
  return fail(CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE, "%s: not a %s, or one that has ended", call,
              kind);
}

int told(int result, const char* call) noexcept {
  if (result == CAJETA_XPU_SUCCESS) return CAJETA_XPU_SUCCESS;
  return fail(result, "%s: %s", call, name_of(result));
}

}  // namespace api

extern "C" {

const char* cajeta_xpu_error_name(int result) {
  return api::name_of(result);
}

const char* cajeta_xpu_error_message(void) {
  return api::t_message;
}

}  // extern "C"
