// SPDX-License-Identifier: Apache-2.0
// The C++ half of unknown_entry_<cpu>.S, whose thunks save the argument registers and call
// shim_unknown_entry_called().
#include "shim/unknown_entry.h"

#include <string_view>

#include "runtime/deferral.h"
#include "runtime/log.h"
#include "runtime/unknown_code.h"
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
[[gnu::noinline]] void prepare_call(std::size_t slot) noexcept {
  const ErrnoKeeper keeper;
  if (is_mutant(Mutant::kUnknownEntryFlushDropped)) return;
  runtime::flush_all(EntryId::cuGetProcAddress_v2);
  runtime::unknown_code_runs(runtime::is_tame_entry(slot));
}

// A newer form of a known entry does more of the same, and the same flush is enough, if what the
// known one changes is not remembered by us.
bool is_tame(const char* name) noexcept {
  std::string_view api = name;
  if (const std::size_t flavour = api.rfind("_pt"); flavour != api.npos)
    api = api.substr(0, flavour);
  if (const std::size_t version = api.rfind("_v"); version != api.npos)
    api = api.substr(0, version);
  for (const runtime::EntryRow& known : runtime::kEntryTable) {
    if (api != known.api) continue;
    switch (known.entry_class) {
      case EntryClass::kPass:
      case EntryClass::kStreamOrdered:
      case EntryClass::kGraphObject:
      case EntryClass::kNullStreamSync:
      case EntryClass::kEventObserve:
      case EntryClass::kLaunch:
      case EntryClass::kLaunchDirect:
      case EntryClass::kLookup:
        return true;
      default:
        return false;
    }
  }
  return false;
}

}  // namespace

void* unknown_entry_thunk(void* address, const char* name) noexcept {
  const std::size_t slot = runtime::unknown_entry_slot(address, name, is_tame(name));
  if (slot < runtime::kMaxUnknownEntries) {
    return const_cast<char*>(shim_unknown_thunks + slot * kThunkBytes);
  }
  runtime::stop_queueing("the program uses too many driver entries that are not known");
  return nullptr;
}

}  // namespace shim

void* shim_unknown_entry_called(std::size_t slot) noexcept {
  if (shim::is_active() || shim::is_profiled()) shim::prepare_call(slot);
  return runtime::count_unknown_call(slot);
}
