// SPDX-License-Identifier: Apache-2.0
// Every name of the table as a weak function that answers CUDA_ERROR_NOT_SUPPORTED and says so
// once. Whoever implements an entry defines the same symbol strongly. cuda.h is not included: the
// prototypes would not match, and need not, as a stub looks at no argument.

extern "C" __attribute__((visibility("hidden"))) int softgpu_not_implemented(
    unsigned index) noexcept;

namespace {
enum Row : unsigned {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) k_##symbol,
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
};
}  // namespace

extern "C" {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  __attribute__((weak, visibility("default"))) int symbol() noexcept {          \
    return softgpu_not_implemented(k_##symbol);                                 \
  }
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
}
