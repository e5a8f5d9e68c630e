// SPDX-License-Identifier: Apache-2.0
// The kinds that entries are grouped by in reports and in CAJETA_XPU_DRIVER_SITES, from their
// names. Pure constants: no state, any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/entry.h"

namespace runtime {

enum class CallKind : std::uint8_t { kSync, kCopy, kQuery, kAlloc, kOther, kCount };

constexpr const char* name(CallKind kind) {
  constexpr const char* kNames[] = {"sync", "copy", "query", "alloc", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

constexpr CallKind kind_of(const runtime::EntryRow& row) {
  const std::string_view api = row.api;
  const auto has = [api](std::string_view part) { return api.find(part) != api.npos; };
  if (has("Synchronize")) return CallKind::kSync;
  if (has("Memcpy") || has("Memset")) return CallKind::kCopy;
  if (has("Query") || has("ElapsedTime")) return CallKind::kQuery;
  if (has("Alloc") || has("MemFree") || has("MemHost") || has("Create") || has("Destroy") ||
      has("Unload") || has("MemPoolTrim")) {
    return CallKind::kAlloc;
  }
  return CallKind::kOther;
}

}  // namespace runtime
