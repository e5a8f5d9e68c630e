// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_symbols.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "profiler/perf_map.h"
#include "profiler/symbolize.h"
#include "profiler/utf8.h"

namespace profiler {
namespace {

namespace symbols = perfetto::symbols;

constexpr std::size_t kMostName = 512;
constexpr std::size_t kMostPath = 512;
// More inlined calls in one another than anybody reads.
constexpr int kMostLines = 8;
// A packet that has less room left ends: what one address may take.
constexpr std::size_t kAddressBytes = kMostLines * (kMostName + kMostPath + 32);

std::string_view bounded(const char* text, std::size_t most) noexcept {
  return utf8_prefix({text, strnlen(text, most + 1)}, most);
}

// Packets of one module, each as full as the room allows.
class ModulePackets {
 public:
  ModulePackets(TraceFile* file, ProtobufWriter* out, std::uint16_t module) noexcept
      : file_(file), out_(out), module_(module) {
    out_->clear();
  }
  ~ModulePackets() { end(); }
  ModulePackets(const ModulePackets&) = delete;
  ModulePackets& operator=(const ModulePackets&) = delete;

  // Before each address.
  void make_room() noexcept {
    if (packet_ && out_->room() < kAddressBytes) end();
    if (packet_) return;
    packet_.emplace(out_);
    message_.emplace(out_, perfetto::packet::kModuleSymbols);
    const char* path = trace_path(module_);
    char slashed[4096] = "/";
    const std::size_t length = std::min(std::strlen(path), sizeof slashed - 1);
    const bool has_slash = path[0] == '/';
    std::memcpy(slashed + (has_slash ? 0 : 1), path, length);
    out_->add_text(symbols::kPath, {slashed, length + (has_slash ? 0 : 1)});
    const Module* module = module_at(module_);
    if (module != nullptr && module->build_id_bytes > 0) {
      out_->add_bytes(symbols::kBuildId, module->build_id, module->build_id_bytes);
    }
  }

 private:
  void end() noexcept {
    if (!packet_) return;
    message_.reset();
    packet_.reset();
    if (!out_->is_cut()) file_->append_reserved(out_->data(), out_->size());
    out_->clear();
  }

  TraceFile* file_;
  ProtobufWriter* out_;
  std::uint16_t module_;
  std::optional<TracePacket> packet_;
  std::optional<ProtobufMessage> message_;
};

struct Lines {
  ModulePackets* packets;
  ProtobufWriter* out;
  std::uintptr_t address;
  std::optional<ProtobufMessage> message;  // AddressSymbols
  int count = 0;
};

void take_line(void* context, const SourceFrame& frame) noexcept {
  auto* lines = static_cast<Lines*>(context);
  // The last one is the function itself.
  if (++lines->count >= kMostLines && frame.is_inlined) return;
  if (!lines->message) {
    lines->packets->make_room();
    lines->message.emplace(lines->out, symbols::kAddress);
    lines->out->add(symbols::kAt, lines->address);
  }
  const ProtobufMessage line(lines->out, symbols::kLine);
  lines->out->add_text(symbols::kFunction,
                       bounded(frame.function != nullptr ? frame.function : "?", kMostName));
  if (frame.file == nullptr) return;
  lines->out->add_text(symbols::kFile, bounded(frame.file, kMostPath));
  if (frame.line > 0) lines->out->add(symbols::kLineNumber, static_cast<std::uint64_t>(frame.line));
}

// libbacktrace keeps what it read by the pointer: a library that came again is the same file.
const char* first_path(std::uint16_t module) noexcept {
  const Module* found = module_at(module);
  for (std::uint16_t i = 0; i < module; ++i) {
    if (std::strcmp(module_at(i)->path, found->path) == 0) return module_at(i)->path;
  }
  return found->path;
}

struct Found {
  NamedAddress* names;
  std::size_t count;
};

// Of ranges that overlap the last one written holds.
void take_range(void* context, std::uintptr_t start, std::uint64_t size,
                std::string_view name) noexcept {
  const auto* found = static_cast<Found*>(context);
  NamedAddress* const end = found->names + found->count;
  NamedAddress* at = std::lower_bound(
      found->names, end, start,
      [](const NamedAddress& left, std::uintptr_t value) { return left.address < value; });
  name = utf8_prefix(name, sizeof at->name - 1);
  for (; at != end && at->address - start < size; ++at) {
    std::memcpy(at->name, name.data(), name.size());
    at->name[name.size()] = '\0';
    at->is_found = !name.empty();
  }
}

}  // namespace

bool TraceSymbols::start(TraceFile* file, ProtobufWriter* out) noexcept {
  file_ = file;
  out_ = out;
  return order_.map() && names_.map();
}

void TraceSymbols::release() noexcept {
  order_.unmap();
  names_.unmap();
}

void TraceSymbols::sort(const TraceStacks& stacks, std::size_t first, std::size_t end) noexcept {
  std::uint32_t* order = order_.data();
  for (std::size_t i = first; i < end; ++i) order[i] = static_cast<std::uint32_t>(i);
  std::sort(order + first, order + end, [&stacks](std::uint32_t left, std::uint32_t right) {
    const TraceFrame& a = stacks.frame(left);
    const TraceFrame& b = stacks.frame(right);
    return a.module != b.module ? a.module < b.module : a.address < b.address;
  });
}

std::size_t TraceSymbols::end_of_module(const TraceStacks& stacks, std::size_t first,
                                        std::size_t end) const noexcept {
  const std::uint16_t module = stacks.frame(order_[first]).module;
  std::size_t at = first + 1;
  while (at < end && stacks.frame(order_[at]).module == module) ++at;
  return at;
}

void TraceSymbols::name_new(const TraceStacks& stacks) noexcept {
  const std::size_t end = stacks.frame_count();
  sort(stacks, named_, end);
  while (named_ < end) {
    const std::size_t next = end_of_module(stacks, named_, std::min(end, named_ + kMostAtOnce));
    const std::uint16_t module = stacks.frame(order_[named_]).module;
    if (module == kPythonModule) {
      name_python(stacks, named_, next);
    } else if (module != kNoModule) {
      name_by_table(stacks, named_, next);
    }
    named_ = next;
  }
}

void TraceSymbols::name_all(const TraceStacks& stacks) noexcept {
  named_ = stacks.frame_count();
  sort(stacks, 0, named_);
  for (std::size_t first = 0; first < named_;) {
    const std::uint16_t module = stacks.frame(order_[first]).module;
    const bool is_in_module = module != kNoModule;
    const std::size_t most = is_in_module ? named_ : std::min(named_, first + kMostAtOnce);
    const std::size_t next = end_of_module(stacks, first, most);
    if (module == kPythonModule) {
      name_python(stacks, first, next);
    } else if (is_in_module) {
      name_by_debug_information(stacks, first, next);
    } else {
      name_by_map(stacks, first, next);
    }
    first = next;
  }
}

void TraceSymbols::name_by_table(const TraceStacks& stacks, std::size_t first,
                                 std::size_t end) noexcept {
  const std::uint16_t module = stacks.frame(order_[first]).module;
  for (std::size_t i = first; i < end; ++i) {
    names_[i - first].address = file_address(stacks.frame(order_[i]));
    names_[i - first].is_found = false;
  }
  find_in_symbol_table(module_at(module)->path, names_.data(), end - first);
  write_found(module, end - first);
}

void TraceSymbols::name_python(const TraceStacks& stacks, std::size_t first,
                               std::size_t end) noexcept {
  ModulePackets packets(file_, out_, kPythonModule);
  for (std::size_t i = first; i < end; ++i) {
    const TraceFrame& frame = stacks.frame(order_[i]);
    const auto* place = reinterpret_cast<const PythonPlace*>(frame.address);
    Lines lines{&packets, out_, file_address(frame), {}};
    take_line(&lines, {place->function, place->file, place->line, false});
  }
}

void TraceSymbols::name_by_map(const TraceStacks& stacks, std::size_t first,
                               std::size_t end) noexcept {
  for (std::size_t i = first; i < end; ++i) {
    names_[i - first].address = stacks.frame(order_[i]).address;
    names_[i - first].is_found = false;
  }
  Found found{names_.data(), end - first};
  read_perf_map(getpid(), take_range, &found);
  write_found(kNoModule, end - first);
}

void TraceSymbols::write_found(std::uint16_t module, std::size_t count) noexcept {
  ModulePackets packets(file_, out_, module);
  for (std::size_t i = 0; i < count; ++i) {
    if (!names_[i].is_found) continue;
    Lines lines{&packets, out_, names_[i].address, {}};
    take_line(&lines, {names_[i].name, nullptr, 0, false});
  }
}

void TraceSymbols::name_by_debug_information(const TraceStacks& stacks, std::size_t first,
                                             std::size_t end) noexcept {
  const std::uint16_t module = stacks.frame(order_[first]).module;
  const char* path = first_path(module);
  ModulePackets packets(file_, out_, module);
  for (std::size_t i = first; i < end; ++i) {
    const std::uintptr_t address = file_address(stacks.frame(order_[i]));
    Lines lines{&packets, out_, address, {}};
    symbolize(path, address, take_line, &lines);
  }
}

}  // namespace profiler
