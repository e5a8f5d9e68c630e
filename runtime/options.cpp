// SPDX-License-Identifier: Apache-2.0
// The table of settings and its parsers.
#include "runtime/options.h"

#include <strings.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "runtime/log.h"

namespace runtime {
namespace {

bool parse_switch(const char* text, bool* value) noexcept {
  for (const char* on : {"1", "on", "yes", "true"}) {
    if (strcasecmp(text, on) == 0) return *value = true, true;
  }
  for (const char* off : {"0", "off", "no", "false", ""}) {
    if (strcasecmp(text, off) == 0) return *value = false, true;
  }
  return false;
}

// Digits with an optional K, M or G (binary) behind them.
bool parse_number(const char* text, std::uint64_t most, std::uint64_t* value) noexcept {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  std::uint64_t number = std::strtoull(text, &end, 10);
  int shift = 0;
  if (*end == 'K' || *end == 'k') shift = 10;
  if (*end == 'M' || *end == 'm') shift = 20;
  if (*end == 'G' || *end == 'g') shift = 30;
  if (shift != 0) ++end;
  if (*end != '\0' || number > (most >> shift)) return false;
  *value = number << shift;
  return true;
}

bool parse_defer(const char* text, Options* options) noexcept {
  struct Name {
    const char* text;
    DeferMode mode;
  };
  constexpr Name kNames[] = {
      {"all", DeferMode::kAll},   {"1", DeferMode::kAll},      {"0", DeferMode::kNever},
      {"off", DeferMode::kNever}, {"none", DeferMode::kNever}, {"", DeferMode::kUnset},
  };
  for (const Name& name : kNames) {
    if (strcasecmp(text, name.text) == 0) return options->defer = name.mode, true;
  }
  return false;
}

bool parse_deadline(const char* text, Options* options) noexcept {
  std::uint64_t value = 0;
  // One hour at most: a longer wait would be a hang for a program that polls mapped memory.
  if (!parse_number(text, 3'600'000'000ull, &value) || value == 0) return false;
  return options->deadline_us = value, true;
}

bool parse_graph_bytes(const char* text, Options* options) noexcept {
  return parse_number(text, 1ull << 40, &options->graph_bytes);
}

struct Setting {
  const char* name;
  const char* legal;
  bool (*parse)(const char* text, Options* options) noexcept;
};

constexpr Setting kSettings[] = {
    {"CAJETA_XPU_DEFER", "all (or 1), 0 (or off, none)", parse_defer},
    {"CAJETA_XPU_DEFER_DEADLINE_US", "1 to 3600000000 microseconds", parse_deadline},
    {"CAJETA_XPU_GRAPH_BYTES", "0 to 1024G bytes, K, M and G allowed", parse_graph_bytes},
    {"CAJETA_XPU_DISABLE", "0, 1",
     [](const char* text, Options* options) noexcept {
       return parse_switch(text, &options->disabled);
     }},
    {"CAJETA_XPU_DRIVER_PROFILE", "0, 1",
     [](const char* text, Options* options) noexcept {
       return parse_switch(text, &options->driver_profile);
     }},
    {"CAJETA_XPU_REPORT", "a path, or stderr",
     [](const char* text, Options* options) noexcept {
       options->report = *text == '\0' || strcasecmp(text, "stderr") == 0 ? nullptr : text;
       return true;
     }},
    {"CAJETA_XPU_LOG_LOOKUPS", "a path, or stderr",
     [](const char* text, Options* options) noexcept {
       options->log_lookups = *text == '\0' ? nullptr : text;
       return true;
     }},
};

}  // namespace

Options read_options() noexcept {
  Options options;
  for (const Setting& setting : kSettings) {
    const char* text = std::getenv(setting.name);
    if (text == nullptr || setting.parse(text, &options)) continue;
    warn("%s=%.64s is not understood and is ignored; legal values: %s", setting.name, text,
         setting.legal);
  }
  // The driver's own variable: any non-zero number makes launches synchronous.
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  options.launch_blocking = blocking != nullptr && std::atoi(blocking) != 0;
  return options;
}

}  // namespace runtime
