// SPDX-License-Identifier: Apache-2.0
// The C++ half of unknown_entry_<cpu>.S, whose thunks save the argument registers and call
// shim_unknown_entry_called().
#include "shim/unknown_entry.h"

#include "runtime/deferral.h"
#include "runtime/log.h"
#include "runtime/unknown_entries.h"
#include "shim/forward.h"

extern "C" {
// kMaxUnknownEntries thunks, kThunkBytes apart.
[[gnu::visibility("hidden")]] extern const char shim_unknown_thunks[];
// Runs before the entry; returns the address to jump to.
[[gnu::visibility("hidden")]] void* shim_unknown_entry_called(std::size_t slot) noexcept;
}

namespace shim {

namespace {

constexpr std::size_t kThunkBytes = 16;

// The jump carries no failure of the submitted work back: a later call tells it.
[[gnu::noinline]] void submit_ahead() noexcept {
  const ErrnoKeeper keeper;
  if (is_mutant(Mutant::kUnknownEntryFlushDropped)) return;
  runtime::flush_all(EntryId::cuGetProcAddress_v2);
}

}  // namespace

void* unknown_entry_thunk(void* address, const char* name) noexcept {
  const std::size_t slot = runtime::unknown_entry_slot(address, name);
  if (slot < runtime::kMaxUnknownEntries) {
    return const_cast<char*>(shim_unknown_thunks + slot * kThunkBytes);
  }
  runtime::stop_queueing("the program uses too many driver entries that are not known");
  return nullptr;
}

}  // namespace shim

void* shim_unknown_entry_called(std::size_t slot) noexcept {
  if (shim::is_active() && runtime::anything_queued()) shim::submit_ahead();
  return runtime::count_unknown_call(slot);
}
