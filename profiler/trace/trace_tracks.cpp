// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_tracks.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstring>

#include "profiler/module_list.h"
#include "runtime/real_clock.h"

namespace profiler {
namespace {

namespace defaults = perfetto::defaults;
namespace packet = perfetto::packet;
namespace timebase = perfetto::timebase;
namespace track = perfetto::track;

constexpr std::size_t kCommandBytes = 2048;

// What the file holds, cut to the capacity; of files in /proc, which come in one piece.
std::size_t read_file(const char* path, char* text, std::size_t capacity) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = read(file, text, capacity);
  close(file);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

// False: the thread has ended.
bool read_thread_name(std::uint32_t tid, char* name, std::size_t capacity) noexcept {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%" PRIu32 "/comm", tid);
  std::size_t size = read_file(path, name, capacity - 1);
  if (size > 0 && name[size - 1] == '\n') --size;
  name[size] = '\0';
  return size > 0;
}

void add_process(ProtobufWriter* out, int pid) noexcept {
  char command[kCommandBytes];
  const std::size_t size = read_file("/proc/self/cmdline", command, sizeof command - 1);
  command[size] = '\0';
  const ProtobufMessage process(out, track::kProcess);
  out->add(perfetto::process::kPid, static_cast<std::uint64_t>(pid));
  for (std::size_t at = 0; at < size; at += std::strlen(command + at) + 1) {
    out->add_text(perfetto::process::kArgument, command + at);
  }
  if (size > 0) out->add_text(perfetto::process::kName, base_name(command));
}

void add_defaults(ProtobufWriter* out, std::uint64_t sample_hz) noexcept {
  const ProtobufMessage all(out, packet::kDefaults);
  out->add(defaults::kTimestampClock, perfetto::clocks::kMonotonic);
  const ProtobufMessage samples(out, defaults::kPerfSample);
  const ProtobufMessage base(out, defaults::kTimebase);
  out->add(timebase::kFrequency, sample_hz);
  out->add(timebase::kCounter, timebase::kTaskClock);
  out->add(timebase::kTimestampClock, timebase::kMonotonic);
}

}  // namespace

bool TraceTracks::start(TraceFile* file, ProtobufWriter* out) noexcept {
  file_ = file;
  out_ = out;
  pid_ = getpid();
  const timespec now = runtime::read_real_clock(CLOCK_REALTIME);
  seed_ =
      hash_next(static_cast<std::uint64_t>(pid_), static_cast<std::uint64_t>(now.tv_sec) << 30 ^
                                                      static_cast<std::uint64_t>(now.tv_nsec)) >>
      48;
  return threads_.map() && contexts_.map() && streams_.map() && thread_names_.map() &&
         stream_ends_.map();
}

void TraceTracks::release() noexcept {
  threads_.unmap();
  contexts_.unmap();
  streams_.unmap();
  thread_names_.unmap();
  stream_ends_.unmap();
}

bool TraceTracks::write_process(std::uint64_t sample_hz) noexcept {
  out_->clear();
  {
    const TracePacket all(out_);
    add_defaults(out_, sample_hz);
    const ProtobufMessage descriptor(out_, packet::kTrackDescriptor);
    out_->add(track::kUuid, uuid(Kind::kProcess, 0));
    add_process(out_, pid_);
  }
  {
    const TracePacket all(out_);
    const ProtobufMessage descriptor(out_, packet::kTrackDescriptor);
    out_->add(track::kUuid, of_header());
    out_->add(track::kParent, uuid(Kind::kProcess, 0));
    out_->add_text(track::kName, "cajeta-xpu");
  }
  return append();
}

std::uint64_t TraceTracks::of_thread(std::uint32_t tid) noexcept {
  std::uint32_t number = threads_.find(tid);
  if (number == 0) {
    if (threads_.is_full()) return 0;
    Thread thread{tid, ""};
    read_thread_name(tid, thread.name, sizeof thread.name);
    if (!write_thread(threads_.count() + 1, thread)) return 0;
    number = threads_.add(tid);
    thread_names_[number - 1] = thread;
  }
  return uuid(Kind::kThread, number);
}

bool TraceTracks::write_thread(std::size_t number, const Thread& thread) noexcept {
  out_->clear();
  {
    const TracePacket all(out_);
    const ProtobufMessage descriptor(out_, packet::kTrackDescriptor);
    out_->add(track::kUuid, uuid(Kind::kThread, number));
    out_->add(track::kParent, uuid(Kind::kProcess, 0));
    const ProtobufMessage content(out_, track::kThread);
    out_->add(perfetto::thread::kPid, static_cast<std::uint64_t>(pid_));
    out_->add(perfetto::thread::kTid, thread.tid);
    if (thread.name[0] != '\0') out_->add_text(perfetto::thread::kName, thread.name);
  }
  return append();
}

void TraceTracks::update_names(bool is_forced) noexcept {
  ++looks_;
  if (!is_forced && (looks_ & (looks_ - 1)) != 0) return;
  for (std::size_t i = 0; i < threads_.count(); ++i) {
    Thread thread{thread_names_[i].tid, ""};
    if (!read_thread_name(thread.tid, thread.name, sizeof thread.name)) continue;
    if (std::strcmp(thread.name, thread_names_[i].name) == 0) continue;
    if (write_thread(i + 1, thread)) thread_names_[i] = thread;
  }
}

std::uint64_t TraceTracks::of_context(std::uint32_t number) noexcept {
  std::uint32_t found = contexts_.find(number);
  if (found == 0) {
    if (contexts_.is_full()) return 0;
    if (!write_context(uuid(Kind::kContext, contexts_.count() + 1), number)) return 0;
    found = contexts_.add(number);
  }
  return uuid(Kind::kContext, found);
}

bool TraceTracks::write_context(std::uint64_t track, std::uint32_t number) noexcept {
  char name[32];
  snprintf(name, sizeof name, "device context %" PRIu32, number);
  out_->clear();
  {
    const TracePacket all(out_);
    const ProtobufMessage descriptor(out_, packet::kTrackDescriptor);
    out_->add(track::kUuid, track);
    out_->add(track::kParent, uuid(Kind::kProcess, 0));
    out_->add_text(track::kName, name);
    out_->add(track::kChildOrder, track::kByRank);
    out_->add(track::kRank, number);
    out_->add(track::kMerging, track::kNotMerged);
  }
  return append();
}

std::uint64_t TraceTracks::of_stream(const TraceStream& stream) noexcept {
  std::uint32_t number = streams_.find(stream.number);
  if (number == 0) {
    if (streams_.is_full()) return 0;
    const std::uint64_t context = of_context(stream.context);
    const std::uint64_t track = uuid(Kind::kStream, streams_.count() + 1);
    if (context == 0 || !write_stream(track, context, stream)) return 0;
    number = streams_.add(stream.number);
  }
  return uuid(Kind::kStream, number);
}

bool TraceTracks::write_stream(std::uint64_t track, std::uint64_t context,
                               const TraceStream& stream) noexcept {
  char name[64];
  if (stream.is_per_thread) {
    snprintf(name, sizeof name, "stream %" PRIu32 " (per-thread)", stream.number);
  } else if (stream.handle == 0) {
    snprintf(name, sizeof name, "stream %" PRIu32 " (legacy)", stream.number);
  } else {
    snprintf(name, sizeof name, "stream %" PRIu32 " (0x%" PRIx64 ")", stream.number, stream.handle);
  }
  out_->clear();
  {
    const TracePacket all(out_);
    const ProtobufMessage descriptor(out_, packet::kTrackDescriptor);
    out_->add(track::kUuid, track);
    out_->add(track::kParent, context);
    out_->add_text(track::kName, name);
    out_->add(track::kRank, stream.number);
    out_->add(track::kMerging, track::kNotMerged);
  }
  return append();
}

}  // namespace profiler
