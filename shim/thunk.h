// SPDX-License-Identifier: Apache-2.0
// The one generic wrapper. Thunk<id>::call has the prototype of the entry, deduced from the table;
// it forwards when the shim is passive, else runs the entry's hook if there is one, else the row's
// rule. Any thread; never throws. A kPass row without a hook is argument pushes and one indirect
// jump. With the profile on every call takes the cold way, so that it costs nothing when off.
#pragma once

#include "shim/door_hooks.h"
#include "shim/forward.h"
#include "shim/hooks.h"
#include "shim/profiled_call.h"

namespace shim {

// HookOf<id, H>: the static function of H named like the entry, when H has one.
template <EntryId id, typename H>
struct HookOf {
  static constexpr bool exists() { return false; }
};
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  template <typename H>                                                         \
  requires requires {                                                           \
    &H::symbol;                                                                 \
  }                                                                             \
  struct HookOf<EntryId::symbol, H> {                                           \
    static constexpr bool exists() { return true; }                             \
    static constexpr auto function() { return &H::symbol; }                     \
  };
#include "runtime/driver_entries.def"

template <EntryId id>
constexpr bool has_hook() {
  return HookOf<id, DoorHooks>::exists() || HookOf<id, Hooks>::exists();
}

template <EntryId id, typename Function = typename runtime::EntryTraits<id>::Function>
struct Thunk;

template <EntryId id, typename Result, typename... Args>
struct Thunk<id, Result(CUDAAPI*)(Args...)> {
  static_assert(row(id).rule != Rule::kLaunch || has_hook<id>(), "a Launch row needs a hook");
  static_assert(row(id).rule != Rule::kLookup || has_hook<id>(), "a Lookup row needs a hook");

  static Result CUDAAPI call(Args... args) noexcept {
    if constexpr (!has_hook<id>() && row(id).rule == Rule::kPass && !is_timed(id)) {
      return call_driver<id>(args...);
    } else {
      if (!is_active()) [[unlikely]]
        return call_inactive(args...);
      return handle(args...);
    }
  }

 private:
  [[gnu::always_inline]] static Result handle(Args... args) noexcept {
    if constexpr (HookOf<id, DoorHooks>::exists()) {
      return HookOf<id, DoorHooks>::function()(args...);
    } else if constexpr (HookOf<id, Hooks>::exists()) {
      return HookOf<id, Hooks>::function()(args...);
    } else {
      return forward_with_rule<id>(args...);
    }
  }

  [[gnu::noinline]] static Result call_inactive(Args... args) noexcept {
    if (!is_profiled() && !wake(id)) return runtime::slot_of<id>()(args...);
    if constexpr (is_timed(id) || is_launch(id)) {
      if (is_profiled()) {
        return profile_call<id>([](Args... inner) noexcept { return handle(inner...); }, args...);
      }
    }
    return handle(args...);
  }
};

}  // namespace shim
