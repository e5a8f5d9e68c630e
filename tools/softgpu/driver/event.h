// SPDX-License-Identifier: Apache-2.0
// Events. A record binds the event to an operation; a wait binds to the record that was latest when
// it was called. Driver lock held throughout.
#pragma once

#include <cstdint>
#include <memory>

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/engine.h"

namespace softgpu {

struct Event {
  CUevent handle = nullptr;
  Context* context = nullptr;
  std::uint64_t ordinal = 0;  // creation order, process-wide
  unsigned flags = 0;         // CU_EVENT_*
  bool is_destroyed = false;
  std::shared_ptr<Operation>
      latest;  // the record operation; null: never recorded (or last recorded in a capture)
  std::uint64_t time_ns = 0;  // when `latest` finished
  EventCapture capture;       // kept by driver/capture.cpp; an ordinary record resets it
  unsigned polls = 0;
};

using EventTable = ObjectTable<Event, CUevent, HandleKind::kEvent>;
EventTable& events();

// Fails with INVALID_HANDLE.
std::shared_ptr<Event> event_of(CUevent handle);

// The latest record has not finished.
bool is_pending(const Event& event);

// Frees what a destroyed or reset context owned.
void destroy_events(Context& context);

}  // namespace softgpu
