// SPDX-License-Identifier: Apache-2.0
// The table of settings, its parsers, and the one reading.
#include "runtime/options.h"

#include <signal.h>
#include <strings.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <string_view>

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

// Digits and a unit; 0 may go without one.
bool parse_duration(std::string_view text, std::uint64_t* ns) noexcept {
  struct Unit {
    std::string_view name;
    std::uint64_t ns;
  };
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  std::uint64_t number = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (digits == 9) return false;  // a billion of anything is no threshold
    number = number * 10 + static_cast<std::uint64_t>(text[digits] - '0');
  }
  if (digits == 0) return false;
  const std::string_view unit = text.substr(digits);
  if (unit.empty() && number == 0) return *ns = 0, true;
  for (const Unit& known : kUnits) {
    if (unit == known.name) return *ns = number * known.ns, true;
  }
  return false;
}

// KIND or KIND:TIME.
bool parse_site(std::string_view item, std::uint64_t* thresholds_ns) noexcept {
  const std::size_t colon = item.find(':');
  const std::string_view kind = item.substr(0, colon);
  std::uint64_t ns = 0;
  if (colon != item.npos && !parse_duration(item.substr(colon + 1), &ns)) return false;
  bool is_known = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(CallKind::kCount); ++i) {
    if (kind != "all" && kind != name(static_cast<CallKind>(i))) continue;
    thresholds_ns[i] = ns;
    is_known = true;
  }
  return is_known;
}

bool parse_sites(const char* text, Options* options) noexcept {
  bool all = false;
  Options read = *options;
  if (parse_switch(text, &all)) {
    if (!all) return true;
    text = "all";
  }
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    if (!parse_site(rest.substr(0, comma), read.site_thresholds_ns)) return false;
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  *options = read;
  options->keeps_sites = true;
  return true;
}

bool parse_walk(const char* text, Options* options) noexcept {
  options->walks_frame_pointers = strcasecmp(text, "frame-pointers") == 0;
  return options->walks_frame_pointers || *text == '\0' || strcasecmp(text, "auto") == 0;
}

bool parse_every(const char* text, Options* options) noexcept {
  return parse_number(text, 86'400, &options->report_every_s);
}

bool parse_signal(const char* text, Options* options) noexcept {
  struct Name {
    const char* text;
    int number;
  };
  constexpr Name kNames[] = {{"", 0},           {"0", 0},         {"USR1", SIGUSR1},
                             {"USR2", SIGUSR2}, {"HUP", SIGHUP},  {"WINCH", SIGWINCH},
                             {"URG", SIGURG},   {"ALRM", SIGALRM}};
  if (strncasecmp(text, "SIG", 3) == 0 && text[3] > '9') text += 3;
  for (const Name& name : kNames) {
    if (strcasecmp(text, name.text) == 0) return options->report_signal = name.number, true;
  }
  return false;
}

// Any value arms the profiler but those that say no everywhere else.
bool parse_profiler(const char* text, Options* options) noexcept {
  bool is_on = true;
  if (!parse_switch(text, &is_on)) is_on = true;
  return options->profiler = is_on, true;
}

bool parse_between(const char* text, std::uint64_t least, std::uint64_t most,
                   std::uint64_t* value) noexcept {
  std::uint64_t number = 0;
  if (!parse_number(text, most, &number) || number < least) return false;
  return *value = number, true;
}

constexpr Setting kSettings[] = {
    {"CAJETA_XPU_DEFER", "all (or 1), 0 (or off, none)", "unset",
     "Which streams queue their launches: all, none (the control for comparisons), or, unset, "
     "those that asked through the API.",
     parse_defer},
    {"CAJETA_XPU_DEFER_DEADLINE_US", "1 to 3600000000 microseconds", "200",
     "How long a queued launch may wait for an observation.", parse_deadline},
    {"CAJETA_XPU_GRAPH_BYTES", "0 to 1024G bytes, K, M and G allowed", "256M",
     "Memory that recorded graphs may hold.", parse_graph_bytes},
    {"CAJETA_XPU_DISABLE", "0, 1", "0", "1: the library is loaded and does nothing.",
     [](const char* text, Options* options) noexcept {
       return parse_switch(text, &options->disabled);
     }},
    {"CAJETA_XPU_DRIVER_PROFILE", "0, 1", "0",
     "1: time the driver calls that observe the device and report at exit.",
     [](const char* text, Options* options) noexcept {
       return parse_switch(text, &options->driver_profile);
     }},
    {"CAJETA_XPU_DRIVER_SITES",
     "0, 1, or KIND:TIME,... with kinds sync, copy, query, alloc, other, all and times as 50us",
     "0",
     "Keep where calls came from, of each kind those that took at least TIME; switches the profile "
     "on.",
     parse_sites},
    {"CAJETA_XPU_SITES_WALK", "auto, frame-pointers", "auto",
     "How call stacks are walked: by libunwind if it is there (libunwind.so.8), or by frame "
     "pointers, which is cheaper and certain of the direct caller only.",
     parse_walk},
    {"CAJETA_XPU_REPORT", "a path, stderr, none", "stderr",
     "Where the report goes; in a path %p is the process id, %h the host, %r the rank, %e the "
     "program; a name that ends in .json gets JSON.",
     [](const char* text, Options* options) noexcept {
       options->report = *text == '\0' || strcasecmp(text, "stderr") == 0 ? nullptr : text;
       return true;
     }},
    {"CAJETA_XPU_REPORT_EVERY", "0 to 86400 seconds", "0",
     "Write the report again every so many seconds.", parse_every},
    {"CAJETA_XPU_REPORT_SIGNAL", "USR1, USR2, HUP, WINCH, URG, ALRM", "none",
     "Write the report when this signal arrives, unless the program handles it.", parse_signal},
    {"CAJETA_PROFILER", "1, or any value that is not 0, off, no, false", "0",
     "Write a trace: samples of what the host threads execute, and the device time of each launch, "
     "which keeps every launch direct.",
     parse_profiler},
    {"CAJETA_PROFILER_GPU", "0, 1", "1",
     "0: the profiler leaves the launches alone, and deferral as configured.",
     [](const char* text, Options* options) noexcept {
       return parse_switch(text, &options->times_launches);
     }},
    {"CAJETA_PROFILER_HZ", "0 to 10000 samples per second of a thread's CPU time", "1000",
     "How often host threads are sampled; 0: never.",
     [](const char* text, Options* options) noexcept {
       return parse_between(text, 0, 10'000, &options->sample_hz);
     }},
    {"CAJETA_PROFILER_RING", "16 to 1M samples", "4096",
     "Samples of a thread that may wait to be written; more are dropped and counted.",
     [](const char* text, Options* options) noexcept {
       return parse_between(text, 16, 1 << 20, &options->sample_ring);
     }},
    {"CAJETA_PROFILER_GPU_RING", "16 to 1M launches", "8192",
     "Launches of a context whose device time may be outstanding; more are dropped and counted.",
     [](const char* text, Options* options) noexcept {
       return parse_between(text, 16, 1 << 20, &options->launch_ring);
     }},
    {"CAJETA_PROFILER_OUT", "a path", "cajeta.pftrace",
     "Where the trace goes; in the path %p is the process id, %h the host, %r the rank, %e the "
     "program. A file that another process writes is left to it, and the process id added.",
     [](const char* text, Options* options) noexcept {
       if (*text != '\0') options->trace_file = text;
       return true;
     }},
    {"CAJETA_PROFILER_BYTES", "1M to 1024G bytes, K, M and G allowed", "512M",
     "How large the trace may grow; what comes later is dropped and counted.",
     [](const char* text, Options* options) noexcept {
       return parse_between(text, 1 << 20, 1ull << 40, &options->trace_bytes);
     }},
    {"CAJETA_XPU_LOG_LOOKUPS", "a path, or stderr", "unset",
     "Where to list every look-up of a driver symbol.",
     [](const char* text, Options* options) noexcept {
       options->log_lookups = *text == '\0' ? nullptr : text;
       return true;
     }},
};
static_assert(std::size(kSettings) <= 32, "Options::refused has a bit for each");

// `path` in the folder that the program was started in, however it moves later. In a pattern the
// folder stands for itself. A path that would be too long stays as it is.
const char* absolute(const char* path, bool is_pattern, Environment* environment) noexcept {
  if (path == nullptr || path[0] == '/') return path;
  const char* folder = process_start().folder;
  char now[1024];
  if (folder[0] == '\0') folder = getcwd(now, sizeof now);
  if (folder == nullptr || folder[0] != '/') return path;  // gone, or out of reach
  char* begin = environment->text + environment->used;
  char* const end = environment->text + sizeof environment->text;
  char* out = begin;
  for (; *folder != '\0' && out + 2 < end; ++folder) {
    *out++ = *folder;
    if (is_pattern && *folder == '%') *out++ = '%';
  }
  *out++ = '/';
  const std::size_t length = std::strlen(path);
  constexpr std::size_t kLongest = 4096;  // that the kernel takes, with the zero byte
  if (out + length + 1 >= end || static_cast<std::size_t>(out - begin) + length >= kLongest) {
    return path;
  }
  std::memcpy(out, path, length);
  return environment->keep(begin, static_cast<std::size_t>(out - begin) + length);
}

void make_absolute(Options* options, Environment* environment) noexcept {
  const auto is_word = [](const char* text, const char* word) noexcept {
    return text != nullptr && std::strcmp(text, word) == 0;
  };
  if (!is_word(options->report, "none")) {
    options->report = absolute(options->report, true, environment);
  }
  if (!is_word(options->log_lookups, "stderr")) {
    options->log_lookups = absolute(options->log_lookups, false, environment);
  }
  if (options->profiler) options->trace_file = absolute(options->trace_file, true, environment);
}

struct Told {
  Environment environment;
  Options options;
};
constinit const Told kNothing;
constinit std::atomic<const Told*> g_told{nullptr};

const Told& what_was_told() noexcept {
  const Told* told = g_told.load(std::memory_order_acquire);
  if (told != nullptr) return *told;
  auto* read = new (std::nothrow) Told;
  if (read == nullptr) return kNothing;
  read_environment(&read->environment);
  read->options = read_options(&read->environment);
  // Two threads may read; the first to publish wins. Release pairs with the acquire above.
  if (g_told.compare_exchange_strong(told, read, std::memory_order_acq_rel)) return *read;
  delete read;
  return *told;
}

}  // namespace

std::span<const Setting> settings() noexcept {
  return kSettings;
}

Options read_options(Environment* environment) noexcept {
  Options options;
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    const char* text = environment->value(kSettings[i].name);
    if (text != nullptr && !kSettings[i].parse(text, &options)) options.refused |= 1u << i;
  }
  make_absolute(&options, environment);
  options.driver_profile |= options.keeps_sites;
  // The driver's own variable: any non-zero number makes launches synchronous.
  const char* blocking = environment->value("CUDA_LAUNCH_BLOCKING");
  options.launch_blocking = blocking != nullptr && std::atoi(blocking) != 0;
  return options;
}

const Options& process_options() noexcept {
  return what_was_told().options;
}

const Environment& process_environment() noexcept {
  return what_was_told().environment;
}

void warn_of_refused(const Options& options, const Environment& environment) noexcept {
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    if ((options.refused >> i & 1) == 0) continue;
    const char* text = environment.value(kSettings[i].name);
    warn("%s=%.64s is not understood and is ignored; legal values: %s", kSettings[i].name,
         text != nullptr ? text : "", kSettings[i].legal);
  }
  if (environment.is_cut) warn("settings of more than 24 KB are ignored");
}

}  // namespace runtime
