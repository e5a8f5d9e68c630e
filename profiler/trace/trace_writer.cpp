// SPDX-License-Identifier: Apache-2.0
// An event's strings and stacks are written before it, in packets of their own; the packets of one
// record are appended together or not at all.
#include "profiler/trace/trace_writer.h"

#include <stdio.h>
#include <time.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "profiler/symbolize.h"
#include "profiler/utf8.h"
#include "runtime/real_clock.h"

namespace profiler {
namespace {

namespace annotation = perfetto::annotation;
namespace clocks = perfetto::clocks;
namespace event = perfetto::event;
namespace interned = perfetto::interned;
namespace packet = perfetto::packet;
namespace sample = perfetto::sample;

constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kMostKernelName = 512;
constexpr std::size_t kMostMangledName = 4096;
constexpr std::size_t kPaddedBytes = 80;  // of texts of the header that change
// A sample that stands for more periods than this had its clock wrong.
constexpr std::uint32_t kMostPeriods = 100'000;

// Their numbers in the trace.
enum Category : std::uint64_t { kCall = 1, kBlocked, kLaunch, kKernel };
constexpr const char* kCategories[] = {"call", "blocked", "launch", "kernel"};
enum Key : std::uint64_t { kBytes = 1, kKernelKey, kNumber, kGrid, kBlock, kShared, kMangled };
constexpr const char* kKeys[] = {"bytes", "kernel",       "launch", "grid",
                                 "block", "shared_bytes", "mangled"};
// Names of events: those of driver entries come first.
constexpr std::uint64_t kFirstKernelName = runtime::kEntryCount + 1;

std::uint64_t now_ns(clockid_t clock) noexcept {
  const timespec now = runtime::read_real_clock(clock);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void add_number(ProtobufWriter* out, Key key, std::uint64_t value) noexcept {
  const ProtobufMessage entry(out, event::kAnnotation);
  out->add(annotation::kName, key);
  out->add(annotation::kNumber, value);
}

void add_text_number(ProtobufWriter* out, Key key, std::uint64_t text) noexcept {
  const ProtobufMessage entry(out, event::kAnnotation);
  out->add(annotation::kName, key);
  out->add(annotation::kInternedText, text);
}

void add_extent(ProtobufWriter* out, Key key, const std::uint32_t (&extent)[3]) noexcept {
  char text[40];
  snprintf(text, sizeof text, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, extent[0], extent[1], extent[2]);
  const ProtobufMessage entry(out, event::kAnnotation);
  out->add(annotation::kName, key);
  out->add_text(annotation::kText, text);
}

void add_header_text(ProtobufWriter* out, const char* name, const char* value) noexcept {
  const ProtobufMessage entry(out, event::kAnnotation);
  out->add_text(annotation::kNameText, name);
  out->add_text(annotation::kText, value);
}

// Filled up with blanks to one length, so that the record can be written over.
void add_padded_text(ProtobufWriter* out, const char* name, const char* value) noexcept {
  char text[kPaddedBytes + 1];
  snprintf(text, sizeof text, "%-*s", static_cast<int>(kPaddedBytes), value);
  add_header_text(out, name, text);
}

// Of a slice on a host thread. Calls come out of order here, and Perfetto takes what has one time
// in the order of the file: a call that ends as the next one begins would end up around it.
std::uint64_t host_end_ns(std::uint64_t start_ns, std::uint64_t end_ns) noexcept {
  return end_ns > start_ns ? end_ns - 1 : start_ns;
}

// FNV-1a.
std::uint64_t hash_of(const char* text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  return hash;
}

}  // namespace

bool TraceWriter::start(TraceOutput* output, std::uint64_t most_bytes, const char* command,
                        const TraceHeader& header) noexcept {
  const bool has_memory = file_.start(output, most_bytes) && packet_.map() && header_.map() &&
                          kernels_.map() && is_mangled_.map();
  if (!has_memory) return false;
  out_ = ProtobufWriter(packet_.data(), packet_.size());
  start_ns_ = now_ns(CLOCK_MONOTONIC);
  snprintf(command_, sizeof command_, "%s", command);
  is_started_ = tracks_.start(&file_, &out_) && write_opening(header) &&
                stacks_.start(&file_, &out_) && symbols_.start(&file_, &out_);
  return is_started_;
}

void TraceWriter::release() noexcept {
  is_started_ = false;
  file_.release();
  packet_.unmap();
  header_.unmap();
  tracks_.release();
  stacks_.release();
  symbols_.release();
  kernels_.unmap();
  is_mangled_.unmap();
}

bool TraceWriter::write_opening(const TraceHeader& header) noexcept {
  out_.clear();
  encode_header(header, &out_);
  return file_.append(out_.data(), out_.size()) && write_clocks() &&
         tracks_.write_process(header.sample_hz) && write_names();
}

// Every value takes the same place, so that the record can be written over.
void TraceWriter::encode_header(const TraceHeader& header, ProtobufWriter* out) const noexcept {
  const struct {
    const char* name;
    std::uint64_t value;
  } numbers[] = {
      {"format", kFormat},
      {"pid", static_cast<std::uint64_t>(tracks_.pid())},
      {"sample_hz", header.sample_hz},
      {"ring_samples", header.ring_samples},
      {"device_ring_launches", header.device_ring_launches},
      {"samples_kept", header.samples_kept},
      {"samples_dropped", header.samples_dropped},
      {"threads_left_out", header.threads_left_out},
      {"launches_kept", header.launches_kept},
      {"launches_dropped", header.launches_dropped},
      {"launches_untimed", header.launches_untimed},
      {"spans_kept", header.spans_kept},
      {"spans_dropped", header.spans_dropped},
      {"bytes_dropped", file_.bytes_dropped()},
      {"own_cost_ns", header.own_cost_ns},
      {"is_complete", header.is_complete ? 1U : 0U},
  };
  const TracePacket all(out, start_ns_, packet::kStateCleared);
  out->add(packet::kTimestampClock, clocks::kMonotonic);
  const ProtobufMessage message(out, packet::kTrackEvent);
  out->add(event::kType, event::kInstant);
  out->add(event::kTrack, tracks_.of_header());
  out->add_text(event::kCategoryText, "header");
  out->add_text(event::kNameText, "cajeta-xpu profiler");
  add_header_text(out, "version", CAJETA_XPU_VERSION);
  add_header_text(out, "command", command_);
  const char* unread = header.python.why_unread;
  add_padded_text(out, "python", header.python.version);
  add_padded_text(out, "python_unread", unread != nullptr ? unread : "");
  for (const auto& number : numbers) {
    const ProtobufMessage entry(out, event::kAnnotation);
    out->add_text(annotation::kNameText, number.name);
    out->add_wide(annotation::kNumber, number.value);
  }
}

bool TraceWriter::write_clocks() noexcept {
  const struct {
    std::uint64_t id;
    clockid_t clock;
  } all[] = {{clocks::kMonotonic, CLOCK_MONOTONIC},
             {clocks::kBoottime, CLOCK_BOOTTIME},
             {clocks::kRealtime, CLOCK_REALTIME}};
  out_.clear();
  {
    const TracePacket whole(&out_);
    const ProtobufMessage snapshot(&out_, packet::kClockSnapshot);
    for (const auto& one : all) {
      const ProtobufMessage entry(&out_, clocks::kClock);
      out_.add(clocks::kId, one.id);
      out_.add(clocks::kTimestamp, now_ns(one.clock));
    }
    out_.add(clocks::kPrimary, clocks::kMonotonic);
  }
  return file_.append(out_.data(), out_.size());
}

bool TraceWriter::write_names() noexcept {
  out_.clear();
  {
    const TracePacket whole(&out_);
    const ProtobufMessage data(&out_, packet::kInternedData);
    std::uint64_t iid = 0;
    for (const char* name : kCategories) add_interned_text(&out_, interned::kCategory, ++iid, name);
    iid = 0;
    for (const char* name : kKeys) add_interned_text(&out_, interned::kAnnotationName, ++iid, name);
    // What the table of kernels calls those that found it full.
    const std::uint64_t full = kFirstKernelName + kMaxKernels;
    add_interned_text(&out_, interned::kEventName, full, "(table full)");
    add_interned_text(&out_, interned::kAnnotationText, 2 * full, "(table full)");
  }
  return file_.append(out_.data(), out_.size());
}

std::uint64_t TraceWriter::entry_name(runtime::EntryId entry) noexcept {
  const auto index = static_cast<std::size_t>(entry);
  if (!is_entry_written_[index]) {
    out_.clear();
    {
      const TracePacket whole(&out_);
      const ProtobufMessage data(&out_, packet::kInternedData);
      add_interned_text(&out_, interned::kEventName, index + 1, runtime::row(entry).api);
    }
    is_entry_written_[index] = file_.append(out_.data(), out_.size());
  }
  return index + 1;
}

TraceWriter::Kernel TraceWriter::kernel(const char* mangled) noexcept {
  const std::uint64_t key = hash_of(mangled);
  std::uint32_t number = kernels_.find(key);
  const bool is_new = number == 0 && !kernels_.is_full() && !file_.is_closed();
  if (is_new) number = kernels_.add(key);
  const std::uint64_t name = kFirstKernelName + (number != 0 ? number - 1 : kMaxKernels);
  Kernel kernel{name, 2 * name, 2 * name + 1};
  if (is_new) is_mangled_[number - 1] = write_kernel(kernel, mangled);
  if (number == 0 || !is_mangled_[number - 1]) kernel.mangled = 0;
  return kernel;
}

// Whether its shown name differs from `mangled`.
bool TraceWriter::write_kernel(const Kernel& kernel, const char* mangled) noexcept {
  char demangled[kMostKernelName + 8];
  const std::string_view whole =
      demangle(mangled, demangled, sizeof demangled) ? demangled : mangled;
  const std::string_view name = utf8_prefix(whole, kMostKernelName);
  const bool differs = name != mangled;
  out_.clear();
  {
    const TracePacket all(&out_);
    const ProtobufMessage data(&out_, packet::kInternedData);
    add_interned_text(&out_, interned::kEventName, kernel.name, name);
    add_interned_text(&out_, interned::kAnnotationText, kernel.text, name);
    if (differs) {
      add_interned_text(&out_, interned::kAnnotationText, kernel.mangled,
                        utf8_prefix(mangled, kMostMangledName));
    }
  }
  file_.append(out_.data(), out_.size());
  return differs;
}

// Without a track there is no event, and the trace knows what it lacks.
bool TraceWriter::append(bool has_tracks) noexcept {
  if (has_tracks && !out_.is_cut()) return file_.append(out_.data(), out_.size());
  file_.drop(out_.size());
  return false;
}

void TraceWriter::encode_fields(const Slice& slice, std::uint64_t type) noexcept {
  out_.add(event::kType, type);
  out_.add(event::kTrack, slice.track);
  out_.add(event::kCategory, slice.category);
  out_.add(event::kName, slice.name);
}

void TraceWriter::encode_end(const Slice& slice) noexcept {
  const TracePacket whole(&out_, slice.end_ns);
  const ProtobufMessage message(&out_, packet::kTrackEvent);
  encode_fields(slice, event::kEnd);
}

void TraceWriter::add(const HostSpan& span) noexcept {
  if (!is_started_) return;
  const std::uint64_t track = tracks_.of_thread(span.tid);
  const Slice slice{track, span.is_blocked ? kBlocked : kCall, entry_name(span.entry),
                    span.start_ns, host_end_ns(span.start_ns, span.end_ns)};
  out_.clear();
  {
    const TracePacket whole(&out_, slice.start_ns);
    const ProtobufMessage message(&out_, packet::kTrackEvent);
    encode_fields(slice, event::kBegin);
    if (span.bytes != 0) add_number(&out_, kBytes, span.bytes);
  }
  encode_end(slice);
  append(track != 0);
}

void TraceWriter::add(const HostSample& host) noexcept {
  if (!is_started_) return;
  const bool has_track = tracks_.of_thread(host.tid) != 0;
  const std::uint64_t stack = stacks_.find(host.stack, true);
  for (std::uint32_t i = 0; i < std::min(host.weight, kMostPeriods); ++i) {
    out_.clear();
    {
      const TracePacket whole(&out_, host.time_ns);
      const ProtobufMessage message(&out_, packet::kPerfSample);
      out_.add(sample::kPid, static_cast<std::uint64_t>(tracks_.pid()));
      out_.add(sample::kTid, host.tid);
      if (stack != 0) out_.add(sample::kCallstack, stack);
      out_.add(sample::kCpuMode, sample::kUserMode);
      out_.add(sample::kCount, ++samples_);
    }
    append(has_track);
  }
}

void TraceWriter::add(const TimedLaunch& launch) noexcept {
  if (!is_started_) return;
  const std::uint64_t thread = tracks_.of_thread(launch.tid);
  const std::uint64_t stream = tracks_.of_stream(launch.stream);
  const Kernel named = kernel(launch.kernel);
  const std::uint64_t stack = stacks_.find(launch.stack, false);
  const Slice call{thread, kLaunch, entry_name(launch.entry), launch.host_start_ns,
                   host_end_ns(launch.host_start_ns, launch.host_end_ns)};
  // Clocks of hosts and devices are matched within some microseconds; keep what must be true: a
  // kernel runs after its launch was called, and after the one before it.
  const std::uint64_t early_ns = call.start_ns - std::min(call.start_ns, launch.device_start_ns);
  const std::uint64_t free_ns = stream != 0 ? tracks_.stream_end_ns(launch.stream) : 0;
  const std::uint64_t start = std::max(launch.device_start_ns + early_ns, free_ns);
  const Slice run{stream, kKernel, named.name, start,
                  std::max(start, launch.device_end_ns + early_ns)};
  out_.clear();
  encode_launch(launch, call, named, stack);
  encode_kernel(launch, run, named);
  if (append(thread != 0 && stream != 0)) tracks_.stream_end_ns(launch.stream) = run.end_ns;
}

void TraceWriter::encode_launch(const TimedLaunch& launch, const Slice& slice, const Kernel& kernel,
                                std::uint64_t stack) noexcept {
  {
    const TracePacket whole(&out_, slice.start_ns);
    const ProtobufMessage message(&out_, packet::kTrackEvent);
    encode_fields(slice, event::kBegin);
    out_.add_fixed64(event::kFlow, tracks_.flow(launch.number));
    if (stack != 0) out_.add(event::kCallstack, stack);
    add_text_number(&out_, kKernelKey, kernel.text);
    add_number(&out_, kNumber, launch.number);
  }
  encode_end(slice);
}

void TraceWriter::encode_kernel(const TimedLaunch& launch, const Slice& slice,
                                const Kernel& kernel) noexcept {
  {
    const TracePacket whole(&out_, slice.start_ns);
    const ProtobufMessage message(&out_, packet::kTrackEvent);
    encode_fields(slice, event::kBegin);
    out_.add_fixed64(event::kFlowEnd, tracks_.flow(launch.number));
    add_number(&out_, kNumber, launch.number);
    add_extent(&out_, kGrid, launch.grid);
    add_extent(&out_, kBlock, launch.block);
    if (launch.shared_bytes != 0) add_number(&out_, kShared, launch.shared_bytes);
    if (kernel.mangled != 0) add_text_number(&out_, kMangled, kernel.mangled);
  }
  encode_end(slice);
}

bool TraceWriter::flush(const TraceHeader& header) noexcept {
  if (!is_started_) return true;
  symbols_.name_new(stacks_);
  tracks_.update_names(false);
  file_.send();
  ProtobufWriter first(header_.data(), header_.size());
  encode_header(header, &first);
  if (file_.rewrite(first.data(), first.size(), header.is_complete)) return true;
  is_started_ = false;
  return false;
}

void TraceWriter::add_symbols() noexcept {
  if (!is_started_) return;
  tracks_.update_names(true);
  symbols_.name_all(stacks_);
}

}  // namespace profiler
