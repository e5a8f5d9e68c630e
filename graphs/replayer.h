// SPDX-License-Identifier: Apache-2.0
// How batches reach the driver: the first sight of a sequence goes launch by launch, the second
// builds its graph, later ones patch what changed and launch once. Whatever fails goes directly, is
// counted, and is never submitted twice.
#pragma once

#include "runtime/batch_sink.h"

namespace graphs {

// The sink of the process. `budget_bytes` bounds what recordings hold (CAJETA_XPU_GRAPH_BYTES).
runtime::BatchSink* start_replayer(std::uint64_t budget_bytes) noexcept;

}  // namespace graphs
