// SPDX-License-Identifier: Apache-2.0
// A driver without the entries for OpenGL, EGL and VDPAU, as under WSL: look-ups find nothing, as
// without the library, and a call that the linker bound to the library's export is refused. Without
// the library such a program would not have started.
#include <initializer_list>

#include "runtime/driver.h"
#include "tests/programs/doors/door_check.h"

using doors::check;
using runtime::EntryId;

extern "C" {
CUresult cuGLInit();
CUresult cuEGLStreamProducerPresentFrame(runtime::interop::Handle*, runtime::interop::Frame,
                                         CUstream*);
}

namespace {

void check_missing(void* handle, const char* name) {
  dlerror();
  check(dlsym(handle, name) == nullptr, "missing", name);
  const char* error = dlerror();
  check(error != nullptr && std::strstr(error, name) != nullptr, "dlerror names", name);
}

void check_not_offered(void* driver, const runtime::EntryRow& row) {
  using Query = PFN_cuGetProcAddress_v12000;
  auto* query = reinterpret_cast<Query>(dlsym(driver, "cuGetProcAddress_v2"));
  void* found = &found;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const cuuint64_t flags =
      row.per_thread_default() ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0;
  check(query(row.api, &found, 13000, flags, &status) == CUDA_SUCCESS, "asked for", row.api);
  check(found == nullptr, "not offered", row.api);
  check(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "status of", row.api);
}

void check_calls() {
  check(cuGLInit() == CUDA_ERROR_NOT_FOUND, "refused", "cuGLInit");
  CUstream stream = nullptr;
  check(cuEGLStreamProducerPresentFrame(nullptr, {}, &stream) == CUDA_ERROR_NOT_FOUND, "refused",
        "cuEGLStreamProducerPresentFrame");
}

}  // namespace

int main(int argc, char** argv) {
  void* driver = doors::open_driver();
  for (const char* name : {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure)
#define INTEROP_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) #symbol,
#include "runtime/driver_entries.def"
       }) {
    check_missing(driver, name);
    check_missing(RTLD_DEFAULT, name);
  }
  for (EntryId id : {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure)
#define INTEROP_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) EntryId::symbol,
#include "runtime/driver_entries.def"
       }) {
    check_not_offered(driver, runtime::row(id));
  }
  if (argc < 2 || std::strcmp(argv[1], "bare") != 0) check_calls();
  return doors::finish();
}
