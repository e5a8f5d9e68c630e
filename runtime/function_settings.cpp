// SPDX-License-Identifier: Apache-2.0
#include "runtime/function_settings.h"

#include "runtime/mutants.h"
#include "runtime/mutex.h"

namespace runtime {
namespace {

// Programs set a few attributes of some hundred functions; 32 KiB of static memory.
constexpr std::size_t kSettings = 1024;

constinit Mutex g_mutex;
constinit FunctionSetting g_settings[kSettings]{};  // guarded by g_mutex; null function: free
constinit std::uint64_t g_changes = 0;              // guarded by g_mutex

bool is_same_place(const FunctionSetting& one, const FunctionSetting& other) noexcept {
  return one.function == other.function && one.attribute == other.attribute &&
         one.device == other.device;
}

FunctionSetting& place_of(const FunctionSetting& setting) noexcept {
  auto bits = reinterpret_cast<std::uintptr_t>(setting.function) >> 4;
  bits += static_cast<std::uintptr_t>(setting.attribute) * 31 +
          static_cast<std::uintptr_t>(setting.device) * 1021;
  return g_settings[(bits * 0x9E3779B97F4A7C15ull >> 40) % kSettings];
}

void forget_all() noexcept {
  for (FunctionSetting& setting : g_settings) setting = {};
}

}  // namespace

bool is_set(const FunctionSetting& setting) noexcept {
  const MutexGuard guard(g_mutex);
  const FunctionSetting& kept = place_of(setting);
  return is_same_place(kept, setting) && kept.value == setting.value;
}

std::uint64_t setting_changes() noexcept {
  const MutexGuard guard(g_mutex);
  return g_changes;
}

std::uint64_t begin_setting(const FunctionSetting& setting, bool has_aliases) noexcept {
  const MutexGuard guard(g_mutex);
  FunctionSetting& kept = place_of(setting);
  if (is_same_place(kept, setting)) kept = {};
  if (has_aliases && !is_mutant(Mutant::kSettingKept)) forget_all();
  return ++g_changes;
}

void note_setting(const FunctionSetting& setting, std::uint64_t changes) noexcept {
  const MutexGuard guard(g_mutex);
  if (g_changes == changes) place_of(setting) = setting;
}

void forget_settings() noexcept {
  const MutexGuard guard(g_mutex);
  forget_all();
  ++g_changes;
}

}  // namespace runtime
