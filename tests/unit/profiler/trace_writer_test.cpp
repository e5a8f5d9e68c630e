// SPDX-License-Identifier: Apache-2.0
// The trace as a reader finds it: everything is there before something refers to it, the first
// record is kept up to date in place, the bound and the limits hold, and a file that cannot be
// written ends it. tests/programs/profile/trace_format_test.py reads traces with Perfetto's own
// definitions.
#include "profiler/trace/trace_writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/unit/catch.h"
#include "tests/unit/profiler/trace_reader.h"

using namespace profiler;
using runtime::EntryId;
namespace pf = profiler::perfetto;

namespace {

constexpr std::uint64_t kPlenty = 64 << 20;

// A trace in memory.
struct Trace {
  explicit Trace(std::uint64_t most_bytes = kPlenty, const char* command = "test") {
    file = memfd_create("trace", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    header.sample_hz = 1000;
    output.take(fcntl(file, F_DUPFD_CLOEXEC, 0));
    is_started = writer->start(&output, most_bytes, command, header);
  }
  ~Trace() {
    writer->release();
    output.close();
    close(file);
  }

  std::string bytes() {
    REQUIRE(writer->flush(header));
    return bytes_there();
  }
  std::string bytes_there() const {
    std::string all(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    REQUIRE(pread(file, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()));
    return all;
  }

  int file;
  TraceOutput output;
  bool is_started;
  TraceHeader header{};
  std::unique_ptr<TraceWriter> writer = std::make_unique<TraceWriter>();
};

struct Slice {
  std::string category, name;
  std::uint64_t track, start, end;
  std::map<std::string, std::string> notes;
  std::uint64_t flow, flow_end, stack;
};

struct Symbol {
  std::string path;
  std::vector<std::pair<std::string, std::uint64_t>> lines;  // function, line
};

// What the packets say. Refers throw that lead nowhere.
struct Content {
  explicit Content(std::string_view bytes) {
    for (const std::string_view packet : split_packets(bytes)) take(Fields(packet));
  }

  void take(const Fields& packet) {
    if (packet.number(pf::packet::kSequenceId) != 1) throw std::runtime_error("sequence");
    const std::uint64_t flags = packets++ == 0 ? 1 : 2;
    if (packet.number(pf::packet::kSequenceFlags) != flags) throw std::runtime_error("flags");
    if (packet.has(pf::packet::kInternedData)) intern(packet.message(pf::packet::kInternedData));
    if (packet.has(pf::packet::kTrackDescriptor)) {
      const Fields track = packet.message(pf::packet::kTrackDescriptor);
      if (track.has(pf::track::kParent)) (void)tracks.at(track.number(pf::track::kParent));
      const Fields thread = track.message(pf::track::kThread);
      tracks[track.number(pf::track::kUuid)] = track.has(pf::track::kThread)
                                                   ? "thread " + thread.text(pf::thread::kName)
                                                   : track.text(pf::track::kName);
    }
    if (packet.has(pf::packet::kTrackEvent)) {
      take_event(packet.number(pf::packet::kTimestamp), packet.message(pf::packet::kTrackEvent));
    }
    if (packet.has(pf::packet::kPerfSample)) {
      samples.push_back(packet.message(pf::packet::kPerfSample).number(pf::sample::kCallstack));
      if (samples.back() != 0) (void)stacks.at(samples.back());
    }
    if (packet.has(pf::packet::kModuleSymbols)) {
      take_symbols(packet.message(pf::packet::kModuleSymbols));
    }
  }

  void intern(const Fields& data) {
    const std::uint32_t texts[] = {pf::interned::kCategory,       pf::interned::kEventName,
                                   pf::interned::kAnnotationName, pf::interned::kAnnotationText,
                                   pf::interned::kBuildId,        pf::interned::kMappingPath,
                                   pf::interned::kFunctionName};
    for (const std::uint32_t kind : texts) {
      for (const Fields& entry : data.messages(kind)) {
        const std::uint64_t iid = entry.number(pf::interned::kIid);
        if (!names[kind].emplace(iid, entry.text(pf::interned::kText)).second) {
          throw std::runtime_error("interned twice");
        }
      }
    }
    for (const Fields& mapping : data.messages(pf::interned::kMapping)) {
      mappings[mapping.number(pf::interned::kIid)] =
          names[pf::interned::kMappingPath].at(mapping.number(pf::mapping::kPath));
    }
    for (const Fields& frame : data.messages(pf::interned::kFrame)) {
      (void)mappings.at(frame.number(pf::frame::kMapping));
      frames.emplace(frame.number(pf::interned::kIid), frame);
    }
    for (const Fields& stack : data.messages(pf::interned::kCallstack)) {
      for (const std::uint64_t frame : stack.numbers(pf::callstack::kFrame)) (void)frames.at(frame);
      stacks.emplace(stack.number(pf::interned::kIid), stack.numbers(pf::callstack::kFrame));
    }
  }

  void take_event(std::uint64_t time, const Fields& event) {
    const std::uint64_t track = event.number(pf::event::kTrack);
    if (packets == 1) {
      for (const Fields& note : event.messages(pf::event::kAnnotation)) {
        const bool is_text = note.has(pf::annotation::kText);
        header[note.text(pf::annotation::kNameText)] =
            is_text ? note.text(pf::annotation::kText)
                    : std::to_string(note.number(pf::annotation::kNumber));
      }
      return;
    }
    (void)tracks.at(track);
    const std::string& name = names[pf::interned::kEventName].at(event.number(pf::event::kName));
    if (event.number(pf::event::kType) == pf::event::kEnd) {
      if (slices.back().track != track || slices.back().name != name) {
        throw std::runtime_error("end of another slice");
      }
      slices.back().end = time;
      return;
    }
    std::map<std::string, std::string> notes;
    for (const Fields& note : event.messages(pf::event::kAnnotation)) {
      notes[names[pf::interned::kAnnotationName].at(note.number(pf::annotation::kName))] =
          value_of(note);
    }
    const std::uint64_t stack = event.number(pf::event::kCallstack);
    if (stack != 0) (void)stacks.at(stack);
    slices.push_back({names[pf::interned::kCategory].at(event.number(pf::event::kCategory)), name,
                      track, time, 0, notes, event.number(pf::event::kFlow),
                      event.number(pf::event::kFlowEnd), stack});
  }

  std::string value_of(const Fields& note) {
    if (note.has(pf::annotation::kText)) return note.text(pf::annotation::kText);
    if (!note.has(pf::annotation::kInternedText)) {
      return std::to_string(note.number(pf::annotation::kNumber));
    }
    return names[pf::interned::kAnnotationText].at(note.number(pf::annotation::kInternedText));
  }

  void take_symbols(const Fields& module) {
    for (const Fields& address : module.messages(pf::symbols::kAddress)) {
      Symbol symbol{module.text(pf::symbols::kPath), {}};
      for (const Fields& line : address.messages(pf::symbols::kLine)) {
        symbol.lines.emplace_back(line.text(pf::symbols::kFunction),
                                  line.number(pf::symbols::kLineNumber));
      }
      symbols[address.number(pf::symbols::kAt)] = symbol;
    }
  }

  // Of the stack, innermost first.
  std::vector<Fields> frames_of(std::uint64_t stack) const {
    std::vector<Fields> found;
    const auto& all = stacks.at(stack);
    for (auto at = all.rbegin(); at != all.rend(); ++at) found.push_back(frames.at(*at));
    return found;
  }

  std::size_t packets = 0;
  std::map<std::string, std::string> header;
  std::map<std::uint64_t, std::string> tracks;
  std::map<std::uint32_t, std::map<std::uint64_t, std::string>> names;
  std::map<std::uint64_t, std::string> mappings;
  std::map<std::uint64_t, Fields> frames;
  std::map<std::uint64_t, std::vector<std::uint64_t>> stacks;
  std::vector<Slice> slices;
  std::vector<std::uint64_t> samples;
  std::map<std::uint64_t, Symbol> symbols;  // by address
};

__attribute__((noinline)) std::uintptr_t address_here() {
  return reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
}

__attribute__((noinline)) std::uintptr_t named_function(std::uint64_t* line) {
  *line = __LINE__ + 1;
  const std::uintptr_t address = address_here();
  asm volatile("");
  return address;
}

TimedLaunch a_launch(std::uint64_t number, const char* kernel = "kernel") {
  TimedLaunch launch{};
  launch.entry = EntryId::cuLaunchKernel;
  launch.tid = 1;
  launch.host_start_ns = 1000 * number;
  launch.host_end_ns = launch.host_start_ns + 100;
  launch.device_start_ns = launch.host_start_ns + 50;
  launch.device_end_ns = launch.host_start_ns + 500;
  launch.kernel = kernel;
  launch.stream = {1, 1, 0x10, false};
  launch.number = number;
  return launch;
}

HostSample a_sample(const std::uintptr_t* addresses, std::size_t depth) {
  return {1, 1, 5000, {addresses, depth}};
}

}  // namespace

TEST_CASE("the first record is the header, and is rewritten where it stands") {
  Trace trace(kPlenty, "a \xff command");
  REQUIRE(trace.is_started);
  trace.writer->add(HostSpan{EntryId::cuCtxSynchronize, 1, 10, 20, 0, true});
  const std::string before = trace.bytes();
  trace.header.samples_kept = ~0ULL;
  trace.header.own_cost_ns = 1ULL << 40;
  trace.header.is_complete = true;
  const std::string after = trace.bytes();
  Content first(before), second(after);
  CHECK(first.header["command"] == "a ? command");
  CHECK(first.header["version"] == CAJETA_XPU_VERSION);
  CHECK(first.header["sample_hz"] == "1000");
  CHECK(first.header["samples_kept"] == "0");
  CHECK(first.header["is_complete"] == "0");
  CHECK(second.header["samples_kept"] == std::to_string(~0ULL));
  CHECK(second.header["own_cost_ns"] == std::to_string(1ULL << 40));
  CHECK(second.header["is_complete"] == "1");
  const std::size_t size = split_packets(before)[0].size() + 3;
  CHECK(before.substr(size) == after.substr(size));
}

TEST_CASE("a driver call is a slice on the track of its thread") {
  Trace trace;
  const auto tid = static_cast<std::uint32_t>(getpid());
  trace.writer->add(HostSpan{EntryId::cuMemcpyDtoH_v2, tid, 100, 200, 4, true});
  trace.writer->add(HostSpan{EntryId::cuMemAlloc_v2, tid, 200, 200, 0, false});
  trace.writer->add(HostSpan{EntryId::cuMemAlloc_v2, tid, 300, 250, 0, false});
  const Content content(trace.bytes());
  REQUIRE(content.slices.size() == 3);
  const Slice& copy = content.slices[0];
  CHECK(copy.category == "blocked");
  CHECK(copy.name == "cuMemcpyDtoH");
  CHECK(copy.start == 100);
  CHECK(copy.end == 199);
  CHECK(copy.notes == std::map<std::string, std::string>{{"bytes", "4"}});
  char own_name[16];
  REQUIRE(pthread_getname_np(pthread_self(), own_name, sizeof own_name) == 0);
  CHECK(content.tracks.at(copy.track) == std::string("thread ") + own_name);
  CHECK(content.slices[1].category == "call");
  CHECK(content.slices[1].end == 200);
  CHECK(content.slices[1].notes.empty());
  CHECK(content.slices[2].end == 300);
}

TEST_CASE("a launch is a slice on its thread, an arrow, and a slice on its stream") {
  Trace trace;
  TimedLaunch launch = a_launch(7, "_Z3addPfi");
  launch.grid[0] = 3;
  launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = launch.block[1] = 32;
  launch.block[2] = 2;
  launch.shared_bytes = 96;
  trace.writer->add(launch);
  trace.writer->add(a_launch(8, "_Z_not_of_C++"));
  const Content content(trace.bytes());
  REQUIRE(content.slices.size() == 4);
  const Slice& call = content.slices[0];
  const Slice& run = content.slices[1];
  CHECK(call.category == "launch");
  CHECK(call.name == "cuLaunchKernel");
  CHECK(call.notes.at("kernel") == "add(float*, int)");
  CHECK(call.notes.at("launch") == "7");
  CHECK(call.flow != 0);
  CHECK(call.flow == run.flow_end);
  CHECK(call.flow != content.slices[2].flow);
  CHECK(run.category == "kernel");
  CHECK(run.name == "add(float*, int)");
  CHECK(run.start == 7050);
  CHECK(run.end == 7500);
  CHECK(content.tracks.at(run.track) == "stream 1 (0x10)");
  CHECK(run.notes == std::map<std::string, std::string>{{"launch", "7"},
                                                        {"grid", "3x1x1"},
                                                        {"block", "32x32x2"},
                                                        {"shared_bytes", "96"},
                                                        {"mangled", "_Z3addPfi"}});
  CHECK(content.slices[3].name == "_Z_not_of_C++");
  CHECK(content.slices[3].notes.count("mangled") == 0);
}

TEST_CASE("kernels of a stream follow one another, and their launches") {
  Trace trace;
  TimedLaunch launch = a_launch(1);
  trace.writer->add(launch);
  launch.device_start_ns = 1400;  // while the first one runs
  launch.device_end_ns = 1700;
  trace.writer->add(launch);
  launch.device_end_ns = 1600;  // in it
  trace.writer->add(launch);
  launch.host_start_ns = launch.host_end_ns = 5000;  // long before its call
  trace.writer->add(launch);
  launch.stream.number = 2;  // another stream does not care
  launch.stream.handle = 0;
  launch.host_start_ns = 1000;
  trace.writer->add(launch);
  const Content content(trace.bytes());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const Slice& slice : content.slices) {
    if (slice.category == "kernel") runs.emplace_back(slice.start, slice.end);
  }
  CHECK(runs == std::vector<std::pair<std::uint64_t, std::uint64_t>>{
                    {1050, 1500}, {1500, 1700}, {1700, 1700}, {5000, 5200}, {1400, 1600}});
  CHECK(content.tracks.at(content.slices.back().track) == "stream 2 (legacy)");
}

TEST_CASE("names of kernels are cut at a whole character") {
  Trace trace;
  const std::string cyrillic = "\xd1\x8f";
  std::string name = "k";
  while (name.size() < 5000) name += cyrillic;
  trace.writer->add(a_launch(1, name.c_str()));
  const Content content(trace.bytes());
  CHECK(content.slices[1].name == name.substr(0, 511));
  CHECK(content.slices[1].notes.at("mangled") == name.substr(0, 4095));
}

TEST_CASE("frames are addresses in files, a return's inside its call, and get names and lines") {
  Trace trace;
  std::uint64_t line = 0;
  const std::uintptr_t stack[] = {named_function(&line), address_here(), 0x1234};
  trace.writer->add(a_sample(stack, 3));
  TimedLaunch launch = a_launch(1);
  launch.stack = {stack, 3};
  trace.writer->add(launch);
  const Content early(trace.bytes());
  REQUIRE(early.samples.size() == 1);
  const std::vector<Fields> exact = early.frames_of(early.samples[0]);
  const std::vector<Fields> returns = early.frames_of(early.slices[0].stack);
  REQUIRE(exact.size() == 3);
  REQUIRE(returns.size() == 3);
  const std::uint64_t inner = returns[0].number(pf::frame::kAddress);
  CHECK(exact[0].number(pf::frame::kAddress) == inner + 1);
  CHECK(exact[1].number(pf::frame::kAddress) == returns[1].number(pf::frame::kAddress));
  CHECK(exact[2].number(pf::frame::kAddress) == 0x1233);
  CHECK(early.mappings.at(exact[2].number(pf::frame::kMapping)) == "[anonymous]");
  // From the symbol table, before the end.
  const std::string named = "(anonymous namespace)::named_function(unsigned long*)";
  CHECK(early.symbols.at(inner).lines ==
        std::vector<std::pair<std::string, std::uint64_t>>{{named, 0}});
  CHECK(early.symbols.at(inner).path ==
        "/" + early.mappings.at(returns[0].number(pf::frame::kMapping)));
  trace.writer->add_symbols();
  const Content late(trace.bytes());
  CHECK(late.symbols.at(inner).lines.back() == std::pair<std::string, std::uint64_t>{named, line});
}

TEST_CASE("a launch has its Python line as the innermost frame") {
  const PythonPlace step{"/home/train.py", "Net.step", 12, 1}, other{"<cell>", "<module>", 0, 2};
  const std::uintptr_t stack[] = {address_here(), 0x1234};
  Trace trace;
  std::vector<std::uint64_t> stacks;
  for (const PythonPlace* python :
       {&step, &other, &step, static_cast<const PythonPlace*>(nullptr)}) {
    TimedLaunch launch = a_launch(1);
    launch.stack = {stack, 2, python};
    trace.writer->add(launch);
  }
  TimedLaunch alone = a_launch(5);
  alone.stack = {nullptr, 0, &step};
  trace.writer->add(alone);
  const Content early(trace.bytes());
  trace.writer->add_symbols();
  const Content late(trace.bytes());
  for (const Slice& slice : late.slices) {
    if (slice.category == "launch") stacks.push_back(slice.stack);
  }
  REQUIRE(stacks.size() == 5);
  CHECK(stacks[0] == stacks[2]);
  CHECK(std::set<std::uint64_t>(stacks.begin(), stacks.end()).size() == 4);
  const std::vector<Fields> frames = late.frames_of(stacks[0]);
  REQUIRE(frames.size() == 3);
  CHECK(late.mappings.at(frames[0].number(pf::frame::kMapping)) == "[python]");
  CHECK(frames[0].number(pf::frame::kAddress) == 1);
  CHECK(late.frames_of(stacks[1])[0].number(pf::frame::kAddress) == 2);
  CHECK(late.frames_of(stacks[3]).size() == 2);
  CHECK(late.frames_of(stacks[4]).size() == 1);
  // At once, for processes that are killed.
  for (const Content* content : {&early, &late}) {
    const Symbol& symbol = content->symbols.at(1);
    CHECK(symbol.path == "/[python]");
    CHECK(symbol.lines == std::vector<std::pair<std::string, std::uint64_t>>{{"Net.step", 12}});
    CHECK(content->symbols.at(2).lines[0].first == "<module>");
  }
}

TEST_CASE("the header says whether Python is read, in room of one size") {
  Trace trace;
  const std::string none = trace.bytes();
  std::snprintf(trace.header.python.version, sizeof trace.header.python.version, "3.12.1+");
  trace.header.python.why_unread = "too many different ones: later ones are left out";
  const std::string unread = trace.bytes();
  CHECK(unread.size() == none.size());
  CHECK(Content(none).header.at("python_unread") == std::string(80, ' '));
  CHECK(Content(unread).header.at("python").rfind("3.12.1+ ", 0) == 0);
  CHECK(Content(unread).header.at("python_unread").rfind("too many different ones: later", 0) == 0);
}

TEST_CASE("code made at run time is named by the map that its maker keeps") {
  Trace trace;
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::ofstream(path) << "1000 100 old_name\n2000 10 beside\n1200 100 new name\n1000 300 \nzz\n";
  const std::uintptr_t stack[] = {0x1001, 0x1201, 0x1fff, 0x2001, 0x2011};
  std::ofstream(path)
      << "1000 100 old_name\n1200 100 new name\n2000 10 jit_one\n1200 8 newer\nzz\n";
  trace.writer->add(a_sample(stack, 5));
  trace.writer->add_symbols();
  unlink(path.c_str());
  const Content content(trace.bytes());
  std::map<std::uint64_t, std::string> found;
  for (const auto& [address, symbol] : content.symbols) {
    CHECK(symbol.path == "/[anonymous]");
    found[address] = symbol.lines.at(0).first;
  }
  CHECK(found == std::map<std::uint64_t, std::string>{
                     {0x1001, "old_name"}, {0x1200, "newer"}, {0x2000, "jit_one"}});
}

TEST_CASE("a sample stands for its periods, and for none of a stack if it has none") {
  Trace trace;
  const std::uintptr_t stack[] = {0x1000, 0, 0x2000};
  HostSample sample = a_sample(stack, 3);
  sample.weight = 5;
  trace.writer->add(sample);
  sample.stack.depth = 0;
  sample.weight = 1;
  trace.writer->add(sample);
  const Content content(trace.bytes());
  REQUIRE(content.samples.size() == 6);
  CHECK(std::set<std::uint64_t>(content.samples.begin(), content.samples.end()).size() == 2);
  CHECK(content.samples[5] == 0);
  CHECK(content.frames_of(content.samples[0]).size() == 2);
}

TEST_CASE("each stack is written once") {
  Trace trace;
  for (int round = 0; round < 3; ++round) {
    for (std::uintptr_t i = 1; i <= 50; ++i) {
      const std::uintptr_t stack[] = {0x1000 * i, 0x77000};
      trace.writer->add(a_sample(stack, 2));
    }
  }
  const Content content(trace.bytes());
  CHECK(content.samples.size() == 150);
  CHECK(content.stacks.size() == 1 + 50);
  CHECK(content.frames.size() == 1 + 51);
}

TEST_CASE("a trace that is cut anywhere is readable up to its last whole packet") {
  Trace trace;
  std::uint64_t line = 0;
  const std::uintptr_t stack[] = {named_function(&line)};
  for (std::uint64_t i = 1; i < 4; ++i) {
    trace.writer->add(HostSpan{EntryId::cuMemAlloc_v2, 1, i, i + 1, 1, false});
    trace.writer->add(a_launch(i, i == 1 ? "one" : "two"));
    trace.writer->add(a_sample(stack, 1));
  }
  trace.writer->add_symbols();
  const std::string whole = trace.bytes();
  std::size_t packets = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const Content content(std::string_view(whole).substr(0, size));
    CHECK((content.packets == packets || content.packets == packets + 1));
    packets = content.packets;
  }
  CHECK(packets == split_packets(whole).size());
}

TEST_CASE("the bound holds: the rest is counted, and header and names still fit") {
  std::uint64_t line = 0;
  const std::uintptr_t stack[] = {named_function(&line) - 1};
  for (const std::uint64_t most : {8'000, 9'001, 20'000, 400'000}) {
    Trace trace(most);
    REQUIRE(trace.is_started);
    trace.writer->add(a_sample(stack, 1));
    for (std::uint64_t i = 1; i < 3000; ++i) {
      const std::string kernel = "kernel_" + std::to_string(i);
      trace.writer->add(a_launch(i, kernel.c_str()));
    }
    trace.writer->add_symbols();
    const std::string bytes = trace.bytes();
    CHECK(bytes.size() <= most);
    Content content(bytes);
    CHECK(split_packets(bytes).size() == content.packets);
    CHECK(content.slices.size() % 2 == 0);
    CHECK(content.slices.size() < 2 * 2999);
    CHECK(std::stoull(content.header["bytes_dropped"]) > (2999 - content.slices.size() / 2) * 150);
    const std::uint64_t at =
        content.frames_of(content.samples.at(0))[0].number(pf::frame::kAddress);
    CHECK(content.symbols.at(at).lines.back().second == line);
  }
}

TEST_CASE("a bound that has no room for the opening is refused") {
  Trace trace(300);
  CHECK_FALSE(trace.is_started);
  CHECK_FALSE(trace.writer->is_started());
  trace.writer->add(a_launch(1));
  trace.writer->add_symbols();
  CHECK(trace.writer->flush(trace.header));
  CHECK(trace.bytes_there().empty());
}

TEST_CASE("a file that cannot be written ends the trace") {
  const struct {
    const char* path;
    int failure;
  } cases[] = {{"/dev/full", ENOSPC}, {"", EPIPE}, {nullptr, EBADF}};
  for (const auto& one : cases) {
    int ends[2] = {-1, -1};
    REQUIRE(pipe(ends) == 0);
    close(ends[0]);
    if (one.path == nullptr || one.path[0] != '\0') {
      close(ends[1]);
      ends[1] = one.path != nullptr ? open(one.path, O_WRONLY) : -1;
    }
    TraceOutput output;
    output.take(ends[1]);
    const auto writer = std::make_unique<TraceWriter>();
    REQUIRE(writer->start(&output, kPlenty, "test", {}));
    writer->add(a_launch(1));
    errno = 0;
    CHECK_FALSE(writer->flush({}));
    CHECK(errno == one.failure);
    CHECK_FALSE(writer->is_started());
    writer->add(a_launch(2));
    writer->add(HostSpan{EntryId::cuMemAlloc_v2, 1, 1, 2, 1, false});
    writer->add(a_sample(nullptr, 0));
    writer->add_symbols();
    CHECK(writer->flush({}));
    writer->release();
    output.close();
  }
}

TEST_CASE("a disk that fills up leaves whole packets, and a header that knows") {
  Trace trace;
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small{300'001, limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  // More than the buffer: the failure comes while records are added.
  for (std::uint64_t i = 1; i < 5000; ++i) trace.writer->add(a_launch(i));
  trace.header.launches_kept = 4999;
  const bool is_written = trace.writer->flush(trace.header);
  const int failure = errno;
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  CHECK_FALSE(is_written);
  CHECK(failure == EFBIG);
  const std::string bytes = trace.bytes_there();
  CHECK(bytes.size() == 300'001);
  Content content(bytes);
  CHECK(content.slices.size() > 2000);
  CHECK(content.header["launches_kept"] == "4999");
  CHECK(std::stoull(content.header["bytes_dropped"]) > 300'000);
}

TEST_CASE("tables that are full say so, or drop and count") {
  SECTION("kernels") {
    Trace trace;
    for (std::uint64_t i = 1; i <= 8194; ++i) {
      trace.writer->add(a_launch(i, ("k" + std::to_string(i)).c_str()));
    }
    trace.writer->add(a_launch(1, "k1"));
    const Content content(trace.bytes());
    REQUIRE(content.slices.size() == 2 * 8195);
    CHECK(content.slices[2 * 8191 + 1].name == "k8192");
    CHECK(content.slices[2 * 8192 + 1].name == "(table full)");
    CHECK(content.slices[2 * 8192].notes.at("kernel") == "(table full)");
    CHECK(content.slices[2 * 8194 + 1].name == "k1");
  }
  SECTION("frames") {
    Trace trace;
    std::uintptr_t stack[kTraceDepth];
    for (std::uintptr_t i = 0; i <= kMaxTraceFrames; i += kTraceDepth) {
      for (std::uintptr_t at = 0; at < kTraceDepth; ++at) stack[at] = 0x1000 + 2 * (i + at);
      trace.writer->add(a_sample(stack, kTraceDepth));
    }
    const Content content(trace.bytes());
    CHECK(content.frames.size() == kMaxTraceFrames + 1);
    for (const Fields& frame : content.frames_of(content.samples.back())) {
      const std::uint64_t name = frame.number(pf::frame::kFunctionName);
      CHECK(content.names.at(pf::interned::kFunctionName).at(name) == "(table full)");
    }
  }
  SECTION("stacks") {
    Trace trace;
    for (std::uintptr_t i = 0; i < kMaxTraceStacks; ++i) {
      const std::uintptr_t stack[] = {0x1000 + i % 300, 0x2000 + i / 300};
      trace.writer->add(a_sample(stack, 2));
    }
    const std::size_t size = trace.bytes().size();
    const std::uintptr_t another[] = {0x1000};
    for (int i = 0; i < 3; ++i) trace.writer->add(a_sample(another, 1));
    const std::string bytes = trace.bytes();
    const std::vector<std::string_view> packets = split_packets(bytes);
    const Fields last = Fields(packets.back()).message(pf::packet::kPerfSample);
    CHECK(last.number(pf::sample::kCallstack) == kMaxTraceStacks + 1);
    CHECK(bytes.size() < size + 3 * 64);
  }
  SECTION("threads") {
    Trace trace;
    for (std::uint32_t i = 1; i <= kMaxTraceThreads + 1; ++i) {
      trace.writer->add(HostSpan{EntryId::cuMemAlloc_v2, 5'000'000 + i, 1, 2, 0, false});
    }
    Content content(trace.bytes());
    CHECK(content.slices.size() == kMaxTraceThreads);
    CHECK(std::stoull(content.header["bytes_dropped"]) > 0);
  }
}

TEST_CASE("a thread's name follows it") {
  Trace trace;
  char old_name[16];
  REQUIRE(pthread_getname_np(pthread_self(), old_name, sizeof old_name) == 0);
  const auto tid = static_cast<std::uint32_t>(gettid());
  trace.writer->add(HostSpan{EntryId::cuMemAlloc_v2, tid, 1, 2, 0, false});
  pthread_setname_np(pthread_self(), "renamed");
  trace.writer->add_symbols();
  const Content content(trace.bytes());
  pthread_setname_np(pthread_self(), old_name);
  CHECK(content.tracks.at(content.slices[0].track) == "thread renamed");
}
