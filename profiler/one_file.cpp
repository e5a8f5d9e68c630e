// SPDX-License-Identifier: Apache-2.0
// Never instrumented: sanitizer runtimes, linked beside it, come through here before they have
// started.
#include "profiler/one_file.h"

#include <link.h>

#include <cstddef>

extern "C" {
using PhdrCallback = int (*)(dl_phdr_info*, std::size_t, void*);
int __real_dl_iterate_phdr(PhdrCallback callback, void* data);
int __wrap_dl_iterate_phdr(PhdrCallback callback, void* data);
}

namespace profiler {
namespace {
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_shows_one_file = false;
}  // namespace

OneFile::OneFile() noexcept {
  t_shows_one_file = true;
}
OneFile::~OneFile() {
  t_shows_one_file = false;
}

}  // namespace profiler

extern "C" int __wrap_dl_iterate_phdr(PhdrCallback callback, void* data) {
  if (!profiler::t_shows_one_file) return __real_dl_iterate_phdr(callback, data);
  dl_phdr_info info{};
  info.dlpi_name = "";
  return callback(&info, sizeof info, data);
}
