// SPDX-License-Identifier: Apache-2.0
#include "profiler/site_report.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "profiler/call_site.h"
#include "profiler/function_name.h"
#include "profiler/module_list.h"
#include "profiler/perf_map.h"
#include "profiler/python_code.h"
#include "profiler/python_frame.h"
#include "profiler/site_table.h"
#include "profiler/stack_walk.h"
#include "profiler/symbolize.h"
#include "profiler/text_buffer.h"
#include "runtime/call_kind.h"

namespace profiler {
namespace {

SiteLine g_lines[kMaxSites];

// A return address is one past the call.
std::uintptr_t file_address(const Module& module, std::uintptr_t address) noexcept {
  return address - 1 - module.base;
}

// cudart linked into the program: its functions carry its names.
bool is_static_runtime(std::string_view function) noexcept {
  const bool is_public = function.size() > 4 && function.starts_with("cuda") &&
                         function[4] >= 'A' && function[4] <= 'Z';
  return is_public || function.starts_with("__cudart") || function.starts_with("libcudart_static");
}

// Says little where there is a file, and takes the room of the rest.
void drop_anonymous_namespaces(char* text) noexcept {
  constexpr std::string_view kNoise = "(anonymous namespace)::";
  while (char* at = std::strstr(text, kNoise.data())) {
    std::memmove(at, at + kNoise.size(), std::strlen(at + kNoise.size()) + 1);
  }
}

struct Place {
  char text[kPlaceBytes] = "";
  bool is_runtime = false;  // NVIDIA's, linked into the program
  bool is_named = false;
};

void take_innermost(void* context, const SourceFrame& frame) noexcept {
  auto* place = static_cast<Place*>(context);
  if (frame.function != nullptr && is_static_runtime(frame.function)) place->is_runtime = true;
  if (place->is_named) return;
  place->is_named = true;
  const char* function = frame.function != nullptr ? frame.function : "?";
  const int length = static_cast<int>(without_parameters(function).size());
  if (frame.file != nullptr) {
    snprintf(place->text, sizeof place->text, "%.80s:%d %.*s", base_name(frame.file), frame.line,
             length, function);
  } else {
    snprintf(place->text, sizeof place->text, "%.*s", length, function);
  }
  drop_anonymous_namespaces(place->text);
}

void describe(const Site& site, std::size_t frame, bool reads_symbols, Place* place) noexcept {
  const Module* module = module_at(site.modules[frame]);
  if (module == nullptr) {
    const bool is_named = reads_symbols && find_in_perf_map(getpid(), site.addresses[frame] - 1,
                                                            place->text, sizeof place->text);
    if (!is_named) {
      snprintf(place->text, sizeof place->text, "code at 0x%" PRIxPTR, site.addresses[frame]);
    }
    return;
  }
  const std::uintptr_t address = file_address(*module, site.addresses[frame]);
  if (reads_symbols) symbolize(module->path, address, take_innermost, place);
  if (!place->is_named) {
    snprintf(place->text, sizeof place->text, "%.80s+0x%" PRIxPTR, base_name(module->path),
             address);
  } else if (!module->is_executable) {
    const std::size_t used = std::strlen(place->text);
    snprintf(place->text + used, sizeof place->text - used, " in %.60s", base_name(module->path));
  }
}

struct Nearest {
  std::size_t frame;  // the depth of the site when there is none
  const char* through;
};

// The first frame behind NVIDIA's libraries, and what it came through. Fills `place`.
Nearest find_native(const Site& site, bool reads_symbols, Place* place) noexcept {
  const char* through = nullptr;
  for (std::size_t frame = 0; frame < site.depth; ++frame) {
    const Module* module = module_at(site.modules[frame]);
    if (module != nullptr && module->is_ours) continue;
    if (module != nullptr && module->is_cuda) {
      through = base_name(module->path);
      continue;
    }
    *place = Place{};
    describe(site, frame, reads_symbols, place);
    if (!place->is_runtime) return {frame, through};
    through = "CUDA runtime (static)";
  }
  snprintf(place->text, sizeof place->text, "outside the stack that was kept");
  return {site.depth, through};
}

// "train.py:12 step", and the native frame behind it when that is the program's own too.
void put_python_first(const PythonPlace& python, bool is_bridged, Place* place) noexcept {
  char text[kPlaceBytes];
  TextBuffer out(text, sizeof text);
  out.append("%.80s:", base_name(python.file));
  python.line > 0 ? out.append("%d", python.line) : out.append("?");
  out.append(" %.80s", python.function);
  if (!is_bridged) out.append(" by %s", place->text);
  std::memcpy(place->text, text, sizeof text);
}

Nearest find_nearest(const Site& site, bool reads_symbols, Place* place) noexcept {
  Nearest nearest = find_native(site, reads_symbols, place);
  if (site.python == nullptr) return nearest;
  const Module* module =
      nearest.frame < site.depth ? module_at(site.modules[nearest.frame]) : nullptr;
  const bool is_bridged =
      nearest.frame == site.depth || (module != nullptr && is_python_bridge(module->path));
  if (module != nullptr && nearest.through == nullptr && is_wrapper_path(module->path)) {
    nearest.through = base_name(module->path);
  }
  put_python_first(*site.python, is_bridged, place);
  return nearest;
}

SiteLine* line_of(const SiteLine& wanted, std::size_t* count) noexcept {
  for (std::size_t i = 0; i < *count; ++i) {
    SiteLine& line = g_lines[i];
    if (line.entry == wanted.entry && std::strcmp(line.place, wanted.place) == 0 &&
        std::strcmp(line.through, wanted.through) == 0) {
      return &line;
    }
  }
  g_lines[*count] = wanted;
  return &g_lines[(*count)++];
}

std::uint64_t load(const std::atomic<std::uint64_t>& counter) noexcept {
  return counter.load(std::memory_order_relaxed);
}

struct FrameWriter {
  JsonWriter* out;
  const Module* module;
  std::size_t module_number;
  std::uintptr_t address;
  bool is_written = false;
};

void write_frame(const FrameWriter& writer, const SourceFrame* frame) noexcept {
  JsonWriter& out = *writer.out;
  out.begin_object();
  if (writer.module != nullptr) {
    out.number("module", writer.module_number);
  } else {
    out.null("module");
  }
  out.number("offset", writer.address);
  const bool has_function = frame != nullptr && frame->function != nullptr;
  has_function ? out.text("function", frame->function) : out.null("function");
  const bool has_file = frame != nullptr && frame->file != nullptr;
  has_file ? out.text("file", frame->file) : out.null("file");
  has_file ? out.number("line", static_cast<std::uint64_t>(frame->line)) : out.null("line");
  out.boolean("inlined", frame != nullptr && frame->is_inlined);
  out.end_object();
}

void take_frame(void* context, const SourceFrame& frame) noexcept {
  auto* writer = static_cast<FrameWriter*>(context);
  writer->is_written = true;
  write_frame(*writer, &frame);
}

void write_frames(const Site& site, bool reads_symbols, JsonWriter* out) noexcept {
  out->begin_array("frames");
  for (std::size_t i = 0; i < site.depth; ++i) {
    FrameWriter writer{out, module_at(site.modules[i]), site.modules[i], site.addresses[i]};
    if (writer.module != nullptr) {
      writer.address = file_address(*writer.module, site.addresses[i]);
      if (reads_symbols) symbolize(writer.module->path, writer.address, take_frame, &writer);
    }
    char name[kPlaceBytes];
    if (writer.module == nullptr && reads_symbols &&
        find_in_perf_map(getpid(), site.addresses[i] - 1, name, sizeof name)) {
      take_frame(&writer, {name, nullptr, 0, false});
    }
    if (!writer.is_written) write_frame(writer, nullptr);
  }
  out->end_array();
}

void write_python_place(const PythonPlace* python, JsonWriter* out) noexcept {
  if (python == nullptr) return out->null("python");
  out->begin_object("python");
  out->text("file", python->file);
  python->line > 0 ? out->number("line", static_cast<std::uint64_t>(python->line))
                   : out->null("line");
  out->text("function", python->function);
  out->end_object();
}

void write_python_status(JsonWriter* out) noexcept {
  const PythonStatus status = python_status();
  if (status.version[0] == '\0') return out->null("python");
  out->begin_object("python");
  out->text("version", status.version);
  out->boolean("is_read", status.why_unread == nullptr);
  status.why_unread != nullptr ? out->text("why_not", status.why_unread) : out->null("why_not");
  out->end_object();
}

void write_site(const Site& site, std::size_t id, bool reads_symbols, JsonWriter* out) noexcept {
  Place place;
  const Nearest nearest = find_nearest(site, reads_symbols, &place);
  out->begin_object();
  out->number("id", id);
  out->text("entry", runtime::row(site.entry).symbol);
  out->text("kind", runtime::name(runtime::kind_of(runtime::row(site.entry))));
  out->number("calls", load(site.calls));
  out->number("total_ns", load(site.total_ns));
  out->number("max_ns", load(site.max_ns));
  out->number("flushed", load(site.flushed));
  out->number("failed", load(site.failed));
  out->number("not_ready", load(site.not_ready));
  out->number("bytes", load(site.bytes));
  out->number("pageable_calls", load(site.pageable_calls));
  out->text("place", place.text);
  nearest.through != nullptr ? out->text("through", nearest.through) : out->null("through");
  write_python_place(site.python, out);
  write_frames(site, reads_symbols, out);
  out->end_object();
}

void write_modules(JsonWriter* out) noexcept {
  out->begin_array("modules");
  for (std::size_t i = 0; const Module* module = module_at(i); ++i) {
    char hex[2 * kMaxBuildId + 1] = "";
    for (std::size_t byte = 0; byte < module->build_id_bytes; ++byte) {
      snprintf(hex + 2 * byte, 3, "%02x", module->build_id[byte]);
    }
    out->begin_object();
    out->text("path", module->path);
    out->text("build_id", hex);
    out->boolean("unloaded", is_unloaded(i));
    out->end_object();
  }
  out->end_array();
}

}  // namespace

std::size_t collect_sites(bool reads_symbols, SiteLine** lines) noexcept {
  std::size_t count = 0;
  for (std::size_t slot = 0; slot < kMaxSites; ++slot) {
    const Site* site = site_at(slot);
    if (site == nullptr) continue;
    Place place;
    const Nearest nearest = find_nearest(*site, reads_symbols, &place);
    SiteLine wanted{};
    wanted.entry = site->entry;
    snprintf(wanted.place, sizeof wanted.place, "%s", place.text);
    if (nearest.through != nullptr) {
      snprintf(wanted.through, sizeof wanted.through, "%s", nearest.through);
    }
    SiteLine& line = *line_of(wanted, &count);
    line.calls += load(site->calls);
    line.total_ns += load(site->total_ns);
    line.max_ns = std::max(line.max_ns, load(site->max_ns));
    line.bytes += load(site->bytes);
    line.pageable_calls += load(site->pageable_calls);
  }
  *lines = g_lines;
  return count;
}

void write_json_sites(bool reads_symbols, JsonWriter* out) noexcept {
  if (!sites_are_enabled()) return out->null("sites");
  if (reads_symbols) find_modules(nullptr, nullptr, 0);  // says what was unloaded since
  out->begin_object("sites");
  out->text("walk", stack_walk() == StackWalk::kLibunwind ? "libunwind" : "frame pointers");
  out->boolean("has_symbols", reads_symbols);
  out->begin_object("thresholds_ns");
  for (std::size_t i = 0; i < kCallKinds; ++i) {
    const char* kind = runtime::name(static_cast<runtime::CallKind>(i));
    const std::uint64_t threshold = g_site_thresholds_ns[i];
    threshold != UINT64_MAX ? out->number(kind, threshold) : out->null(kind);
  }
  out->end_object();
  out->number("dropped_calls", dropped_site_calls());
  write_python_status(out);
  write_modules(out);
  out->begin_array("list");
  std::size_t id = 0;
  for (std::size_t slot = 0; slot < kMaxSites; ++slot) {
    if (const Site* site = site_at(slot)) write_site(*site, ++id, reads_symbols, out);
  }
  out->end_array();
  out->end_object();
}

}  // namespace profiler
