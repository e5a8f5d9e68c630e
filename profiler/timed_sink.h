// SPDX-License-Identifier: Apache-2.0
// Stands in front of the sink while the profile is on and times what it submits: as a graph or one
// by one. Called as every sink, with the queue's lock held. One object, made before the first queue
// exists.
#pragma once

#include "runtime/batch_sink.h"

namespace profiler {

// The sink to install in place of `sink`. Call it once.
runtime::BatchSink* time_sink(runtime::BatchSink* sink) noexcept;

}  // namespace profiler
