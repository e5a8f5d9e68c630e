// SPDX-License-Identifier: Apache-2.0
// What every packet of the trace begins with.
#pragma once

#include "profiler/trace/protobuf_writer.h"
#include "profiler/trace/trace_fields.h"

namespace profiler {

class TracePacket {
 public:
  // `time_ns` 0: the packet is about no moment.
  explicit TracePacket(ProtobufWriter* out, std::uint64_t time_ns = 0,
                       std::uint64_t flags = perfetto::packet::kNeedsState) noexcept
      : message_(out, perfetto::kTracePacket) {
    if (time_ns != 0) out->add(perfetto::packet::kTimestamp, time_ns);
    out->add(perfetto::packet::kSequenceId, 1);
    out->add(perfetto::packet::kSequenceFlags, flags);
  }

 private:
  ProtobufMessage message_;
};

// In InternedData: the text `iid` of the kind `field`.
inline void add_interned_text(ProtobufWriter* out, std::uint32_t field, std::uint64_t iid,
                              std::string_view text) noexcept {
  const ProtobufMessage entry(out, field);
  out->add(perfetto::interned::kIid, iid);
  out->add_text(perfetto::interned::kText, text);
}

}  // namespace profiler
