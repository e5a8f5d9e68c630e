// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cli/traces.h"

#include <protozero/pbf_writer.hpp>

namespace cli_test {
namespace {

using protozero::pbf_writer;

constexpr std::uint64_t kThreads = 1000, kContexts = 2000, kStreams = 3000;  // of uuids
// Numbers of fields of InternedData.
constexpr std::uint32_t kCategories = 1, kEventNames = 2, kAnnotationNames = 3, kFrames = 6,
                        kStacks = 7, kBuildIds = 16, kPaths = 17, kMappings = 19;
constexpr const char* kBuildId = "\x01\xff\x02";

}  // namespace

void TraceBuilder::add_packet(const std::string& packet, std::uint64_t timestamp,
                              std::uint64_t flags) {
  std::string message = packet;
  pbf_writer writer(message);
  if (timestamp != 0) writer.add_uint64(8, timestamp);
  writer.add_uint64(10, sequence_);
  writer.add_uint64(13, flags);
  pbf_writer(bytes).add_message(1, message);
}

void TraceBuilder::add_interned() {
  if (interned_.empty()) return;
  std::string packet;
  pbf_writer(packet).add_message(12, interned_);
  interned_.clear();
  add_packet(packet, 0, 2);
}

// Ahead of what it refers to: readers must not mind.
void TraceBuilder::intern(std::uint32_t kind, const std::string& entry) {
  std::string message;
  pbf_writer(message).add_message(kind, entry);
  interned_ = message + interned_;
}

std::uint64_t TraceBuilder::iid_of(std::uint32_t kind, const std::string& text) {
  for (const auto& [key, iid] : iids_) {
    if (key == std::pair(kind, text)) return iid;
  }
  std::string entry;
  pbf_writer writer(entry);
  writer.add_uint64(1, next_iid_);
  writer.add_bytes(2, text);
  intern(kind, entry);
  iids_.push_back({{kind, text}, next_iid_});
  return next_iid_++;
}

void TraceBuilder::add_header(const Numbers& numbers, const Texts& texts) {
  std::string event;
  pbf_writer writer(event);
  writer.add_uint64(9, 3);
  writer.add_string(22, "header");
  writer.add_string(23, "cajeta-xpu profiler");
  const auto annotate = [&](const std::string& name, auto add) {
    std::string note;
    pbf_writer part(note);
    part.add_string(10, name);
    add(part);
    writer.add_message(4, note);
  };
  annotate("version", [](pbf_writer& part) { part.add_string(6, "0.1.0"); });
  annotate("command", [](pbf_writer& part) { part.add_string(6, "./solver 1"); });
  for (const auto& [name, text] : texts) {
    annotate(name, [&value = text](pbf_writer& part) { part.add_string(6, value); });
  }
  for (const auto& [name, value] : numbers) {
    annotate(name, [value = value](pbf_writer& part) { part.add_uint64(3, value); });
  }
  std::string packet;
  pbf_writer(packet).add_message(11, event);
  add_packet(packet, 1, 1);
}

void TraceBuilder::add_thread(std::uint64_t tid, const std::string& name) {
  std::string thread, track, packet;
  pbf_writer thread_writer(thread);
  thread_writer.add_int32(1, 77);
  thread_writer.add_uint64(2, tid);
  thread_writer.add_string(5, name);
  pbf_writer writer(track);
  writer.add_uint64(1, kThreads + tid);
  writer.add_message(4, thread);
  pbf_writer(packet).add_message(60, track);
  add_packet(packet, 0, 2);
}

void TraceBuilder::add_context(std::uint64_t number) {
  std::string track, packet;
  pbf_writer writer(track);
  writer.add_uint64(1, kContexts + number);
  writer.add_string(2, "device context " + std::to_string(number));
  pbf_writer(packet).add_message(60, track);
  add_packet(packet, 0, 2);
}

void TraceBuilder::add_stream(std::uint64_t number, std::uint64_t context,
                              const std::string& name) {
  std::string track, packet;
  pbf_writer writer(track);
  writer.add_uint64(1, kStreams + number);
  writer.add_uint64(5, kContexts + context);
  writer.add_string(2, name);
  pbf_writer(packet).add_message(60, track);
  add_packet(packet, 0, 2);
}

std::uint64_t TraceBuilder::frame(const std::string& path, std::uint64_t offset) {
  const std::uint64_t path_iid = iid_of(kPaths, path), build_id = iid_of(kBuildIds, kBuildId);
  std::string mapping, frame;
  pbf_writer mapping_writer(mapping);
  mapping_writer.add_uint64(1, next_iid_);
  mapping_writer.add_uint64(2, build_id);
  mapping_writer.add_uint64(7, path_iid);
  intern(kMappings, mapping);
  pbf_writer writer(frame);
  writer.add_uint64(1, next_iid_ + 1);
  writer.add_uint64(3, next_iid_);
  writer.add_uint64(4, offset);
  intern(kFrames, frame);
  next_iid_ += 2;
  return next_iid_ - 1;
}

std::uint64_t TraceBuilder::stack(const std::vector<std::uint64_t>& frames, bool is_packed) {
  std::string stack;
  pbf_writer writer(stack);
  writer.add_uint64(1, next_iid_);
  if (is_packed) {
    writer.add_packed_uint64(2, frames.begin(), frames.end());
  } else {
    for (const std::uint64_t frame : frames) writer.add_uint64(2, frame);
  }
  intern(kStacks, stack);
  return next_iid_++;
}

std::string TraceBuilder::event(std::uint64_t type, std::uint64_t track,
                                const std::string& category, const std::string& name) {
  std::string event;
  pbf_writer writer(event);
  writer.add_uint64(3, iid_of(kCategories, category));
  writer.add_uint64(9, type);
  writer.add_uint64(10, iid_of(kEventNames, name));
  writer.add_uint64(11, track);
  return event;
}

void TraceBuilder::add_call(const std::string& category, std::uint64_t tid,
                            const std::string& entry, std::uint64_t start_ns, std::uint64_t end_ns,
                            std::uint64_t moved) {
  std::string begin = event(1, kThreads + tid, category, entry), note, packet, end_packet;
  pbf_writer part(note);
  part.add_uint64(1, iid_of(kAnnotationNames, "bytes"));
  part.add_uint64(3, moved);
  if (moved != 0) pbf_writer(begin).add_message(4, note);
  add_interned();
  pbf_writer(packet).add_message(11, begin);
  add_packet(packet, start_ns, 2);
  pbf_writer(end_packet).add_message(11, event(2, kThreads + tid, category, entry));
  add_packet(end_packet, end_ns, 2);
}

void TraceBuilder::add_launch(const Launch& launch) {
  const auto slice = [&](std::uint64_t track, const char* category, const std::string& name,
                         std::uint64_t start_ns, std::uint64_t end_ns) {
    std::string begin = event(1, track, category, name), number, grid, packet, end_packet;
    pbf_writer number_writer(number);
    number_writer.add_uint64(1, iid_of(kAnnotationNames, "launch"));
    number_writer.add_uint64(3, launch.number);
    pbf_writer grid_writer(grid);
    grid_writer.add_uint64(1, iid_of(kAnnotationNames, "grid"));
    grid_writer.add_string(6, "64x1x1");
    pbf_writer writer(begin);
    writer.add_message(4, number);
    if (track >= kStreams) {
      writer.add_message(4, grid);
      writer.add_fixed64(48, launch.number);
    } else {
      writer.add_fixed64(47, launch.number);
      if (launch.stack != 0) writer.add_uint64(56, launch.stack);
    }
    add_interned();
    pbf_writer(packet).add_message(11, begin);
    add_packet(packet, start_ns, 2);
    pbf_writer(end_packet).add_message(11, event(2, track, category, name));
    add_packet(end_packet, end_ns, 2);
  };
  slice(kThreads + launch.tid, "launch", "cuLaunchKernel", launch.start_ns, launch.end_ns);
  slice(kStreams + launch.stream, "kernel", launch.kernel, launch.device_start_ns,
        launch.device_end_ns);
}

void TraceBuilder::add_sample(std::uint64_t tid, std::uint64_t time_ns, std::uint64_t stack,
                              std::uint64_t weight) {
  add_interned();
  std::string sample, packet;
  pbf_writer writer(sample);
  writer.add_uint64(2, 77);
  writer.add_uint64(3, tid);
  if (stack != 0) writer.add_uint64(4, stack);
  pbf_writer(packet).add_message(66, sample);
  for (std::uint64_t i = 0; i < weight; ++i) add_packet(packet, time_ns, 2);
}

void TraceBuilder::add_symbols(const std::string& path, std::uint64_t offset,
                               const std::vector<Line>& lines) {
  std::string address, module, packet;
  pbf_writer address_writer(address);
  address_writer.add_uint64(1, offset);
  for (const Line& line : lines) {
    std::string text;
    pbf_writer writer(text);
    writer.add_string(1, line.function);
    if (!line.file.empty()) writer.add_string(2, line.file);
    if (line.line != 0) writer.add_uint64(3, line.line);
    address_writer.add_message(2, text);
  }
  pbf_writer writer(module);
  writer.add_string(1, "/" + path);
  writer.add_bytes(2, kBuildId);
  writer.add_message(3, address);
  pbf_writer(packet).add_message(61, module);
  add_packet(packet, 0, 2);
}

void TraceBuilder::add_foreign() {
  std::string packet;
  pbf_writer writer(packet);
  writer.add_string(2000, "not known");
  writer.add_fixed32(2001, 7);
  writer.add_fixed64(2002, 7);
  writer.add_sint64(2003, -7);
  add_packet(packet, 5, 2);
  // As another tool's, under another number.
  std::string event, of_other;
  pbf_writer event_writer(event);
  event_writer.add_uint64(9, 1);
  event_writer.add_string(23, "of another tool");
  pbf_writer(of_other).add_message(11, event);
  const std::uint64_t sequence = sequence_;
  sequence_ = 4;
  add_packet(of_other, 6, 1);
  sequence_ = sequence;
}

void TraceBuilder::add_start() {
  add_packet("", 1, 1);
}

TraceBuilder sample_trace() {
  TraceBuilder trace;
  trace.add_header({{"pid", 77},
                    {"format", 1},
                    {"sample_hz", 1000},
                    {"ring_samples", 4096},
                    {"device_ring_launches", 8192},
                    {"samples_kept", 7},
                    {"samples_dropped", 2},
                    {"launches_kept", 5},
                    {"launches_dropped", 1},
                    {"launches_untimed", 3},
                    {"spans_kept", 4},
                    {"own_cost_ns", 12'000},
                    {"is_complete", 1}});
  trace.add_thread(41, "main");
  trace.add_thread(42, "");
  trace.add_context(1);
  trace.add_stream(1, 1, "stream 1 (legacy)");
  trace.add_stream(2, 1, "stream 2 (0x7f00)");
  const std::uint64_t driver = trace.frame("usr/lib/libcudart.so.13", 0x10);
  const std::uint64_t step = trace.frame("opt/solver", 0x20);
  const std::uint64_t inner = trace.frame("opt/solver", 0x30);
  const std::uint64_t outer = trace.frame("opt/solver", 0x40);
  const std::uint64_t plain = trace.frame("usr/lib/libplain.so", 0x50);
  const std::uint64_t made = trace.frame("[anonymous]", 0x7000);
  const std::uint64_t from_step = trace.stack({outer, step, driver});
  const std::uint64_t from_inner = trace.stack({outer, inner, driver}, true);
  trace.add_call("call", 41, "cuMemAlloc", 1'000, 1'500);
  trace.add_call("blocked", 41, "cuMemcpyDtoH", 100'000, 140'000, 4);
  trace.add_call("blocked", 41, "cuMemcpyDtoH", 200'000, 220'000, 4);
  trace.add_call("blocked", 42, "cuStreamSynchronize", 300'000, 310'000);
  // solve: 10 + 30 + 20 us, a gap of 5 us and one of 40 us ahead of the latter two.
  trace.add_launch({1, 41, 5'000, 6'000, from_step, 1, 10'000, 20'000, "solve(float*)"});
  trace.add_launch({2, 41, 7'000, 8'000, from_step, 1, 25'000, 55'000, "solve(float*)"});
  trace.add_launch({3, 41, 9'000, 9'500, from_inner, 1, 55'000, 60'000, "norm"});
  trace.add_launch({4, 42, 9'000, 9'500, from_inner, 1, 100'000, 120'000, "solve(float*)"});
  trace.add_launch({5, 42, 9'600, 9'900, 0, 2, 15'000, 30'000, "norm"});
  // 4 ms in step, 1 in what it inlined, 1 in libplain called by step, 1 in code without a file.
  const std::uint64_t in_step = trace.stack({outer, step});
  const std::uint64_t in_inner = trace.stack({outer, inner});
  trace.add_sample(41, 50'000, in_step, 3);
  trace.add_sample(41, 60'000, in_step);
  trace.add_sample(41, 70'000, in_inner);
  trace.add_sample(42, 55'000, trace.stack({outer, step, plain}));
  trace.add_sample(42, 90'000, trace.stack({made}));
  trace.add_symbols("opt/solver", 0x20, {{"early", "", 0}});
  trace.add_symbols("opt/solver", 0x20, {{"step(int)", "/src/solver.cpp", 32}});
  trace.add_symbols("opt/solver", 0x30,
                    {{"sum", "/src/sum.h", 7}, {"step(int)", "/src/solver.cpp", 40}});
  trace.add_symbols("opt/solver", 0x40, {{"main", "/src/solver.cpp", 90}});
  return trace;
}

}  // namespace cli_test
