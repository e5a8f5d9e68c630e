// SPDX-License-Identifier: Apache-2.0
// Only in a build with -Dmutants=true.
#include "runtime/mutants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

namespace runtime {
namespace {

constexpr const char* kNames[] = {
#define CAJETA_MUTANT(name, what, hint) #name,
    CAJETA_MUTANTS(CAJETA_MUTANT)
#undef CAJETA_MUTANT
};

constexpr int kUnread = -2, kNone = -1;

int read_mutant() noexcept {
  const char* wanted = getenv("CAJETA_XPU_MUTANT");
  if (wanted == nullptr || *wanted == '\0') return kNone;
  int index = 0;
  for (const char* name : kNames) {
    if (strcmp(name + 1, wanted) == 0) return index;
    ++index;
  }
  fprintf(stderr, "cajeta-xpu: CAJETA_XPU_MUTANT=%s: no such mutant (see runtime/mutants.h)\n",
          wanted);
  abort();
}

}  // namespace

bool is_mutant(Mutant mutant) noexcept {
  static constinit std::atomic<int> active{kUnread};
  int value = active.load(std::memory_order_relaxed);
  if (value == kUnread) active.store(value = read_mutant(), std::memory_order_relaxed);
  return value == static_cast<int>(mutant);
}

}  // namespace runtime
