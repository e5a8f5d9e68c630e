// SPDX-License-Identifier: Apache-2.0
// The model's rules for streams, events and values in memory that streams wait for.
#include <algorithm>

#include "tests/fuzz/model.h"

namespace fuzz {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

}  // namespace

bool Model::stream_create(const Step& s) {
  StreamModel& stream = streams[at(s[0])];
  if (!has_usable_context(s.thread) || !can_create(stream, s.thread)) return false;
  // Green contexts are made from primary ones, and are covered by what is said of those.
  if (s[1] == 2 && contexts[at(current(s.thread))].how != 2) return false;
  create(stream, s, current(s.thread));
  stream.is_blocking = s[1] == 0;
  stream.uid = next_uid_++;
  stream.capture = -1;
  use(contexts[at(stream.context)], s);
  return true;
}

bool Model::stream_destroy(const Step& s) {
  StreamModel& stream = streams[at(s[0])];
  if (!can_change(stream, s.thread) || stream.capture >= 0 || !is_usable(stream.context))
    return false;
  use(contexts[at(stream.context)], s);
  // What is still pending runs, but the legacy stream is not said to wait for it any more.
  for (DeviceWork& work : work_) {
    if (work.uid == stream.uid) work.order = StreamRef::kNonBlocking;
  }
  stream.is_alive = false;
  change(stream, s);
  return true;
}

bool Model::stream_sync(const Step& s) {
  StreamRef ref;
  if (!resolve(s.thread, s[0], &ref)) return false;
  const bool only_asks = s.kind == Kind::k_stream_query && s[1] == 0;
  if (!only_asks) learn(s.thread, submitted(s.thread, ref));
  use_stream(ref, s);
  use(contexts[at(ref.context)], s);
  return true;
}

bool Model::stream_attribute(const Step& s) {
  StreamModel& stream = streams[at(s[0])];
  if (!can_change(stream, s.thread) || !is_usable(stream.context)) return false;
  change(stream, s);
  use(contexts[at(stream.context)], s);
  return true;
}

bool Model::stream_copy(const Step& s) {
  StreamModel& to = streams[at(s[0])];
  StreamModel& from = streams[at(s[1])];
  if (s[0] == s[1] || !can_change(to, s.thread) || !can_use(from, s.thread)) return false;
  if (to.context != from.context || !is_usable(to.context)) return false;
  change(to, s);
  use(from, s);
  use(contexts[at(to.context)], s);
  return true;
}

bool Model::event_create(const Step& s) {
  EventModel& event = events[at(s[0])];
  if (!has_usable_context(s.thread) || !can_create(event, s.thread)) return false;
  create(event, s, current(s.thread));
  event.state = EventModel::kNew;
  event.order.reset();
  event.has_timing = (s[1] & 2) == 0;
  use(contexts[at(event.context)], s);
  return true;
}

bool Model::event_destroy(const Step& s) {
  EventModel& event = events[at(s[0])];
  if (!can_change(event, s.thread) || !is_usable(event.context)) return false;
  event.is_alive = false;
  change(event, s);
  use(contexts[at(event.context)], s);
  return true;
}

bool Model::event_record(const Step& s) {
  EventModel& event = events[at(s[0])];
  StreamRef ref;
  if (!can_change(event, s.thread) || !resolve(s.thread, s[1], &ref)) return false;
  if (event.context != ref.context) return false;
  StreamModel* const stream = model_of(ref);
  const int capture = stream != nullptr ? stream->capture : -1;
  if (capture >= 0) {
    if (captures[at(capture)].is_invalid || captures[at(capture)].thread != s.thread) return false;
    event.state = EventModel::kCaptured;
    event.capture = capture;
    event.capture_tail = stream->capture_tail;
    use(*stream, s);
  } else {
    if (!submit(s, s[1], NodeModel())) return false;
    event.state = EventModel::kRecorded;
    event.order = work_.back().all;
  }
  change(event, s);
  return true;
}

bool Model::event_wait(const Step& s) {
  EventModel& event = events[at(s[1])];
  StreamRef ref;
  if (!can_use(event, s.thread) || !is_usable(event.context)) return false;
  if (!resolve(s.thread, s[0], &ref)) return false;
  StreamModel* const stream = model_of(ref);
  const bool is_capturing = stream != nullptr && stream->capture >= 0;
  if (event.state != EventModel::kCaptured) {
    if (is_capturing || !submit(s, s[0], NodeModel(), event.order)) return false;
    use(event, s);
    return true;
  }
  const CaptureModel& capture = captures[at(event.capture)];
  if (!capture.is_active || capture.is_invalid || capture.thread != s.thread) return false;
  if (stream == nullptr || ref.context != capture.context) return false;
  if (is_capturing) {
    if (stream->capture != event.capture) return false;
    stream->capture_tail |= event.capture_tail;
  } else {
    if (!can_change(*stream, s.thread)) return false;
    stream->capture = event.capture;
    stream->capture_tail = event.capture_tail;
  }
  use(*stream, s);
  use(event, s);
  return true;
}

bool Model::event_sync(const Step& s) {
  EventModel& event = events[at(s[0])];
  if (!can_use(event, s.thread) || !is_usable(event.context)) return false;
  if (event.state == EventModel::kCaptured) return false;
  const bool only_asks = s.kind == Kind::k_event_query && s[1] == 0;
  if (!only_asks) learn(s.thread, event.order);
  use(event, s);
  use(contexts[at(event.context)], s);
  return true;
}

bool Model::event_elapsed(const Step& s) {
  for (const int slot : {s[0], s[1]}) {
    EventModel& event = events[at(slot)];
    if (!can_use(event, s.thread) || !is_usable(event.context)) return false;
    if (event.state == EventModel::kCaptured) return false;
  }
  if (events[at(s[0])].context != events[at(s[1])].context) return false;
  use(events[at(s[0])], s);
  use(events[at(s[1])], s);
  use(contexts[at(events[at(s[0])].context)], s);
  return true;
}

bool Model::value_write(const Step& s) {
  BufferModel& buffer = buffers[at(s[1])];
  StreamRef ref;
  if (!resolve(s.thread, s[0], &ref) || buffer.context != ref.context) return false;
  if (buffer.memory != kDeviceMemory) return false;
  NodeModel node;
  node.accesses = {{s[1], Mode::kWrite}};
  if (!submit(s, s[0], node)) return false;
  buffer.value_step = s.number;
  buffer.value = s[3];
  buffer.value_bits = s[2];
  return true;
}

// Waits for a write that was submitted before: it cannot hang, and it orders.
bool Model::value_wait(const Step& s) {
  BufferModel& buffer = buffers[at(s[1])];
  StreamRef ref;
  if (!resolve(s.thread, s[0], &ref) || buffer.context != ref.context || !buffer.is_alive)
    return false;
  if (buffer.value_step < 0 || buffer.value != s[3]) return false;
  if (s[2] > buffer.value_bits) return false;  // the other half may be anything
  if (!known(s.thread).test(host_bit(buffer.value_step))) return false;
  const auto written = std::find_if(work_.begin(), work_.end(), [&](const DeviceWork& work) {
    return work.step == buffer.value_step;
  });
  if (written == work_.end()) return false;
  NodeModel node;
  node.accesses = {{s[1], Mode::kRead}};
  const Bits order = written->all;
  return submit(s, s[0], node, order);
}

// A write to `other`, a wait for it, and the write that others may wait for, as one call.
bool Model::value_batch(const Step& s) {
  BufferModel& buffer = buffers[at(s[1])];
  const BufferModel& other = buffers[at(s[2])];
  StreamRef ref;
  if (s[1] == s[2] || !resolve(s.thread, s[0], &ref)) return false;
  for (const BufferModel* each : {static_cast<const BufferModel*>(&buffer), &other}) {
    if (each->context != ref.context || each->memory != kDeviceMemory) return false;
  }
  NodeModel node;
  node.accesses = {{s[1], Mode::kWrite}, {s[2], Mode::kWrite}};
  if (!submit(s, s[0], node)) return false;
  buffer.value_step = s.number;
  buffer.value = s[3];
  buffer.value_bits = 32;
  return true;
}

// All work of the context that this thread knows was submitted. The record is in no stream.
bool Model::context_record(const Step& s) {
  EventModel& event = events[at(s[0])];
  ContextModel& context = contexts[at(s[1])];
  if (!can_change(event, s.thread) || event.context != s[1]) return false;
  if (!is_usable(s[1]) || !can_use(context, s.thread)) return false;
  Bits order = known(s.thread);
  for (const DeviceWork& work : work_) {
    if (work.context == s[1] && known(s.thread).test(host_bit(work.step))) order |= work.all;
  }
  for (const ContextWait& wait : context.waits) {
    if (known(s.thread).test(host_bit(wait.step))) order |= wait.order;
  }
  order.set(host_bit(s.number));
  order.set(device_bit(s.number));
  work_.push_back({s.number, next_uid_++, s[1], StreamRef::kNonBlocking, order});
  event.state = EventModel::kRecorded;
  event.order = order;
  change(event, s);
  use(context, s);
  return true;
}

bool Model::context_wait(const Step& s) {
  ContextModel& context = contexts[at(s[0])];
  EventModel& event = events[at(s[1])];
  if (!is_usable(s[0]) || !can_use(context, s.thread)) return false;
  if (!can_use(event, s.thread) || !is_usable(event.context)) return false;
  if (event.state == EventModel::kCaptured) return false;
  context.waits.push_back({s.number, event.order});
  use(context, s);
  use(event, s);
  return true;
}

}  // namespace fuzz
