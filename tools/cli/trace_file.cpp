// SPDX-License-Identifier: Apache-2.0
// From packets to a Trace. Numbers of fields are those of Perfetto's trace_packet.proto and of the
// messages in it. Views point into the file, which outlives the reader.
#include "tools/cli/trace_file.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"
#include "tools/cli/output.h"
#include "tools/cli/trace_fields.h"
#include "tools/cli/trace_interned.h"

namespace cli {
namespace {

constexpr std::size_t kMostAnnotations = 64;  // of one event
constexpr std::uint64_t kFormat = 1;
constexpr std::string_view kHeaderName = "cajeta-xpu profiler";
// Of TracePacket.sequence_flags: what was interned so far is void.
constexpr std::uint64_t kStateCleared = 1;
// Of TrackEvent.type.
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3;

struct Packet {
  std::uint64_t timestamp = 0;
  std::uint64_t sequence = 0;
  std::uint64_t flags = 0;
  // Empty: it has none.
  std::string_view event, interned, track, symbols, sample;
};

Packet parse_packet(std::string_view message) {
  Packet found;
  each_field(message, [&](Field& field) {
    field.number(8, &found.timestamp);
    field.number(10, &found.sequence);
    field.view(11, &found.event);
    field.view(12, &found.interned);
    field.number(13, &found.flags);
    field.view(60, &found.track);
    field.view(61, &found.symbols);
    field.view(66, &found.sample);
  });
  return found;
}

struct Annotation {
  std::uint64_t name_iid = 0;
  std::string_view name;
  std::uint64_t number = 0;
  std::string_view text;
};

struct Event {
  std::uint64_t type = 0;
  std::uint64_t track = 0;
  std::uint64_t category_iid = 0;
  std::uint64_t name_iid = 0;
  std::uint64_t callstack_iid = 0;
  std::string_view name;
  std::vector<Annotation> annotations;
};

Event parse_event(std::string_view message) {
  Event found;
  each_field(message, [&](Field& field) {
    field.numbers(3, [&](std::uint64_t iid) { found.category_iid = iid; });
    field.message(4, [&](std::string_view annotation) {
      if (found.annotations.size() == kMostAnnotations) return;
      Annotation& note = found.annotations.emplace_back();
      each_field(annotation, [&](Field& part) {
        part.number(1, &note.name_iid);
        part.number(3, &note.number);
        part.view(6, &note.text);
        part.view(10, &note.name);
      });
    });
    field.number(9, &found.type);
    field.number(10, &found.name_iid);
    field.number(11, &found.track);
    field.view(23, &found.name);
    field.number(56, &found.callstack_iid);
  });
  return found;
}

// Texts of the header that may change are filled up with blanks.
std::string_view without_padding(std::string_view text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// Takes packets in their order. Only those of the profiler, which follow its header in a sequence
// of their own.
class Reader {
 public:
  explicit Reader(Trace* trace) : trace_(*trace), interned_(trace) {}

  void add(std::string_view message);
  // Once, at the end.
  void finish();

 private:
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
    TraceIndex thread = kNone;
    TraceIndex stream = kNone;
  };

  bool is_header_again(const Packet& packet, const Event& event) const;
  void add_header(const Packet& packet, const Event& event);
  void add_track(std::string_view message);
  void add_event(const Packet& packet);
  void add_slice(const Event& begin, std::uint64_t start_ns, std::uint64_t end_ns);
  void add_kernel(const Event& event, TraceIndex stream, std::uint64_t start_ns,
                  std::uint64_t end_ns);
  void add_sample(const Packet& packet);
  void add_shortfall();
  std::string_view name_of(const Annotation& note) const {
    return note.name_iid != 0 ? interned_.annotation_name(note.name_iid) : note.name;
  }
  TraceIndex name_of(std::string_view name);
  TraceIndex thread_of(std::uint64_t tid);
  TraceIndex stream_of(std::uint64_t uuid);

  Trace& trace_;
  Interned interned_;
  bool is_ours_ = false;  // the packets of sequence_ at this point of the file
  bool has_header_ = false;
  std::uint64_t sequence_ = 0;
  Event begin_;  // of the slice whose end comes next
  std::uint64_t begin_ns_ = 0;
  bool has_begin_ = false;
  std::unordered_map<std::string, TraceIndex> names_;
  std::unordered_map<std::uint64_t, TraceIndex> threads_;   // by tid
  std::unordered_map<std::uint64_t, Track> tracks_;         // by uuid
  std::unordered_map<std::uint64_t, TraceIndex> launches_;  // by number
  std::size_t broken_ = 0, senseless_ = 0;
};

void Reader::add(std::string_view message) {
  try {
    const Packet packet = parse_packet(message);
    const bool is_cleared = (packet.flags & kStateCleared) != 0;
    if (is_cleared && !packet.event.empty()) {
      const Event event = parse_event(packet.event);
      if (event.type == kInstant && event.name == kHeaderName) return add_header(packet, event);
    }
    if (!is_ours_ || packet.sequence != sequence_) return;
    // Of somebody else who has the same number: two files were joined.
    if (is_cleared) {
      is_ours_ = false;
      return;
    }
    if (!packet.interned.empty()) interned_.add(packet.interned);
    if (!packet.track.empty()) add_track(packet.track);
    if (!packet.symbols.empty()) interned_.add_symbols(packet.symbols);
    if (!packet.event.empty()) add_event(packet);
    if (!packet.sample.empty()) add_sample(packet);
  } catch (const BrokenMessage&) {
    ++broken_;
  }
}

// A pipe takes the last state of the header behind everything else.
bool Reader::is_header_again(const Packet& packet, const Event& event) const {
  const auto is_same_process = [this](const Annotation& note) {
    return note.name == "pid" && note.number == trace_.facts.pid;
  };
  return is_ours_ && packet.sequence == sequence_ && !trace_.facts.is_complete &&
         std::any_of(event.annotations.begin(), event.annotations.end(), is_same_process);
}

void Reader::add_header(const Packet& packet, const Event& event) {
  TraceFacts& facts = trace_.facts;
  if (has_header_ && !is_header_again(packet, event)) {
    throw Failure("it holds the traces of several processes; expected one of them");
  }
  std::uint64_t format = 0, is_complete = 0;
  const std::pair<std::string_view, std::uint64_t*> numbers[] = {
      {"pid", &facts.pid},
      {"format", &format},
      {"sample_hz", &facts.sample_hz},
      {"ring_samples", &facts.ring_samples},
      {"device_ring_launches", &facts.device_ring_launches},
      {"samples_kept", &facts.samples_kept},
      {"samples_dropped", &facts.samples_dropped},
      {"launches_kept", &facts.launches_kept},
      {"launches_dropped", &facts.launches_dropped},
      {"launches_untimed", &facts.launches_untimed},
      {"spans_kept", &facts.spans_kept},
      {"spans_dropped", &facts.spans_dropped},
      {"bytes_dropped", &facts.bytes_dropped},
      {"own_cost_ns", &facts.own_cost_ns},
      {"is_complete", &is_complete},
  };
  for (const Annotation& note : event.annotations) {
    if (note.name == "version") facts.version = cut_name(note.text);
    if (note.name == "command") facts.command = cut_name(note.text);
    if (note.name == "python") facts.python = cut_name(without_padding(note.text));
    if (note.name == "python_unread") facts.python_unread = cut_name(without_padding(note.text));
    for (const auto& [name, to] : numbers) {
      if (note.name == name) *to = note.number;
    }
  }
  if (format != kFormat) {
    throw Failure(cli::format(
        "format: expected %llu, found %llu; read it with the cajeta-xpu of"
        " the library that wrote it",
        static_cast<unsigned long long>(kFormat), static_cast<unsigned long long>(format)));
  }
  facts.is_complete = is_complete != 0;
  has_header_ = is_ours_ = true;
  sequence_ = packet.sequence;
}

void Reader::add_track(std::string_view message) {
  std::uint64_t uuid = 0, parent = 0, tid = 0;
  std::string name, thread_name;
  bool is_thread = false;
  each_field(message, [&](Field& field) {
    field.number(1, &uuid);
    field.text(2, &name);
    field.number(5, &parent);
    field.message(4, [&](std::string_view thread) {
      is_thread = true;
      each_field(thread, [&](Field& part) {
        part.number(2, &tid);
        part.text(5, &thread_name);
      });
    });
  });
  Track& track = tracks_[uuid];
  track.parent = parent;
  if (!name.empty()) track.name = std::move(name);
  if (!is_thread) return;
  track.thread = thread_of(tid);
  if (!thread_name.empty()) trace_.threads[track.thread].name = std::move(thread_name);
}

void Reader::add_event(const Packet& packet) {
  Event event = parse_event(packet.event);
  if (event.type == kBegin) {
    begin_ = std::move(event);
    begin_ns_ = packet.timestamp;
    has_begin_ = true;
  } else if (event.type == kEnd && has_begin_) {
    has_begin_ = false;
    if (event.track != begin_.track || packet.timestamp < begin_ns_) {
      ++senseless_;
    } else {
      add_slice(begin_, begin_ns_, packet.timestamp);
    }
  }
}

void Reader::add_slice(const Event& event, std::uint64_t start_ns, std::uint64_t end_ns) {
  const std::string_view category = interned_.category(event.category_iid);
  const bool is_launch = category == "launch", is_blocked = category == "blocked";
  const auto track = tracks_.find(event.track);
  if (track == tracks_.end()) {
    ++senseless_;
    return;
  }
  if (category == "kernel") return add_kernel(event, stream_of(event.track), start_ns, end_ns);
  if (!is_launch && !is_blocked && category != "call") return;
  TraceSpan span{SpanKind::kCall,
                 track->second.thread,
                 name_of(interned_.event_name(event.name_iid)),
                 interned_.stack(event.callstack_iid),
                 start_ns,
                 end_ns,
                 0};
  if (is_launch) span.kind = SpanKind::kLaunch;
  if (is_blocked) span.kind = SpanKind::kBlocked;
  for (const Annotation& note : event.annotations) {
    const std::string_view name = name_of(note);
    if (name == "bytes") span.bytes = note.number;
    if (name == "launch" && is_launch) {
      launches_[note.number] = static_cast<TraceIndex>(trace_.spans.size());
    }
  }
  trace_.spans.push_back(span);
}

void Reader::add_kernel(const Event& event, TraceIndex stream, std::uint64_t start_ns,
                        std::uint64_t end_ns) {
  TraceKernel kernel;
  kernel.stream = stream;
  kernel.name = name_of(interned_.event_name(event.name_iid));
  kernel.start_ns = start_ns;
  kernel.end_ns = end_ns;
  for (const Annotation& note : event.annotations) {
    const std::string_view name = name_of(note);
    if (name == "grid") kernel.grid = name_of(note.text);
    if (name == "block") kernel.block = name_of(note.text);
    if (name == "shared_bytes") kernel.shared_bytes = note.number;
    if (name != "launch") continue;
    const auto launch = launches_.find(note.number);
    if (launch != launches_.end()) kernel.launch = launch->second;
  }
  trace_.kernels.push_back(kernel);
}

// A packet is a period of the timer; equal ones in a row are one sample.
void Reader::add_sample(const Packet& packet) {
  std::uint64_t tid = 0, callstack_iid = 0;
  each_field(packet.sample, [&](Field& field) {
    field.number(3, &tid);
    field.number(4, &callstack_iid);
  });
  const TraceSample sample{thread_of(tid), interned_.stack(callstack_iid), packet.timestamp, 1};
  if (!trace_.samples.empty()) {
    TraceSample& last = trace_.samples.back();
    if (last.thread == sample.thread && last.stack == sample.stack &&
        last.time_ns == sample.time_ns) {
      ++last.weight;
      return;
    }
  }
  trace_.samples.push_back(sample);
}

TraceIndex Reader::name_of(std::string_view name) {
  const auto next = static_cast<TraceIndex>(trace_.names.size());
  const auto [at, is_new] = names_.try_emplace(cut_name(name), next);
  if (is_new) trace_.names.push_back(at->first);
  return at->second;
}

TraceIndex Reader::thread_of(std::uint64_t tid) {
  const auto next = static_cast<TraceIndex>(trace_.threads.size());
  const auto [at, is_new] = threads_.try_emplace(tid, next);
  if (is_new) trace_.threads.push_back({tid, ""});
  return at->second;
}

TraceIndex Reader::stream_of(std::uint64_t uuid) {
  Track& track = tracks_[uuid];
  if (track.stream != kNone) return track.stream;
  track.stream = static_cast<TraceIndex>(trace_.streams.size());
  const auto parent = tracks_.find(track.parent);
  trace_.streams.push_back({track.name, parent != tracks_.end() ? parent->second.name : ""});
  return track.stream;
}

// A copy that ends between two packets is as good as a whole file but for the counts of its header.
void Reader::add_shortfall() {
  const TraceFacts& facts = trace_.facts;
  if (!facts.is_complete || facts.bytes_dropped > 0) return;
  const auto compare = [this](std::uint64_t promised, std::size_t found, const char* what) {
    if (found >= promised) return;
    trace_.remarks.push_back("the header tells of " + grouped(promised) + " " + what +
                             ", the file holds " + grouped(found));
  };
  compare(facts.launches_kept, trace_.kernels.size(), "launches");
  const auto is_launch = [](const TraceSpan& span) { return span.kind == SpanKind::kLaunch; };
  const auto launches = std::count_if(trace_.spans.begin(), trace_.spans.end(), is_launch);
  compare(facts.spans_kept, trace_.spans.size() - static_cast<std::size_t>(launches), "calls");
}

void Reader::finish() {
  if (!has_header_) {
    throw Failure("no trace of the profiler: expected a first packet \"" +
                  std::string(kHeaderName) +
                  "\", as programs write that run with CAJETA_PROFILER=1");
  }
  broken_ += interned_.hand_out_symbols();
  add_shortfall();
  if (broken_ > 0) {
    trace_.remarks.push_back(grouped(broken_) + " broken packets are left out");
  }
  if (senseless_ > 0) {
    trace_.remarks.push_back(grouped(senseless_) +
                             " events without a track or without an end are left out");
  }
}

// A base 128 number; false when it does not end within `bytes` or is too long.
bool take_varint(std::string_view* bytes, std::uint64_t* value) {
  *value = 0;
  for (std::size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>((*bytes)[i]);
    *value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    bytes->remove_prefix(i + 1);
    return true;
  }
  return false;
}

constexpr char kPacketTag = 0x0a;  // field 1, length-delimited

enum class Next { kPacket, kEnd, kCut, kNoPacket };

// Takes the packet that `bytes` begin with.
Next take_packet(std::string_view* bytes, std::string_view* packet) {
  if (bytes->empty()) return Next::kEnd;
  if (bytes->front() != kPacketTag) return Next::kNoPacket;
  std::string_view rest = bytes->substr(1);
  const std::size_t longest = std::min<std::size_t>(rest.size(), 10);
  std::uint64_t length = 0;
  if (!take_varint(&rest, &length)) return longest < 10 ? Next::kCut : Next::kNoPacket;
  if (length > rest.size()) return Next::kCut;
  *packet = rest.substr(0, length);
  *bytes = rest.substr(length);
  return Next::kPacket;
}

// Whether a text could hold these bytes.
bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return code < ' ' && byte != '\n' && byte != '\t' && byte != '\r';
  });
}

void read_packets(std::string_view all, Trace* trace) {
  Reader reader(trace);
  std::string_view rest = all, packet;
  Next next;
  while ((next = take_packet(&rest, &packet)) == Next::kPacket) reader.add(packet);
  reader.finish();
  const std::string at = grouped(all.size() - rest.size());
  if (next == Next::kCut) {
    trace->remarks.push_back("the last packet is cut: read up to byte " + at);
  } else if (next == Next::kNoPacket) {
    trace->remarks.push_back("no packet begins at byte " + at + ": what follows is left out");
  }
}

}  // namespace

bool is_trace(std::string_view bytes) {
  std::string_view rest = bytes, packet;
  const Next next = take_packet(&rest, &packet);
  // A text may begin with a new line too.
  return (next == Next::kPacket && !is_text(packet)) ||
         (next == Next::kCut && !is_text(bytes.substr(0, 4096)));
}

Trace parse_trace(std::string_view bytes, const std::string& name) {
  Trace trace;
  trace.file = name;
  try {
    if (bytes.empty()) throw Failure("the file is empty; expected a trace");
    if (!is_trace(bytes)) {
      throw Failure(bytes.find('{') < 16 && is_text(bytes.substr(0, 4096))
                        ? "no trace: expected the packets of one; of a report see cajeta-xpu report"
                        : "no trace: expected the packets of one");
    }
    read_packets(bytes, &trace);
    log(LogLevel::kDebug, name + " is a trace: " + grouped(trace.samples.size()) + " samples, " +
                              grouped(trace.kernels.size()) + " launches, " +
                              grouped(trace.spans.size()) + " calls");
  } catch (const Failure& failure) {
    throw Failure(name + ": " + failure.what());
  }
  return trace;
}

}  // namespace cli
