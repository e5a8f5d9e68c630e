// SPDX-License-Identifier: Apache-2.0
// The trace that softgpu writes (CAJETA_SOFTGPU_TRACE) and softgpu-compare reads: what the device
// was asked to do, what each operation touched, and what was ordered before what.
//
// A text file: the header line, then one record a line, in the order in which things happened under
// the driver lock. Every line is one write, so a killed process leaves whole lines.
//
//   O <op> <thread> <context> <stream> <sequence> <after> <text>
//     An operation was submitted. <op> numbers grow by one from 1. <stream> <sequence> is its
//     identity, the same with and without the preload library: <context>.<n> as in the log, and the
//     count of operations the stream was given before. "- -" has none and only passes order on (an
//     empty graph node). <after>: the operations it waits for, a list: stream order, legacy-stream
//     joins, waited-for events, graph edges, earlier launches of an executable graph; those that
//     had ended already are named too. <text>: as in the log, pointers as allocation + offset.
//   D <op> <how> <accesses>
//     It ended; <how> is done or skipped (its context had failed). <accesses>: what it read, wrote
//     and updated atomically: r, w or u, the allocation's ordinal, a colon and ranges of granules
//     of kTraceGranule bytes from its start, "r3:0-7,9;w4:0", or "-". Memory without an ordinal
//     (pageable host memory, the device heap) does not appear.
//   S <op> <accesses> <text>
//     An operation that is a conditional graph node took a step: it looked at its condition, or an
//     operation of a body ran. In order, between O and D, whose accesses are those of all steps.
//     Steps have no order of their own against other operations: the node has it as a whole.
//   B <wait> <thread> <entry> <goals>
//   E <wait>
//     A host call began and ended to wait for <goals>: a list of operations, or c<context> for all
//     that was submitted in a context; a list of those if it has green contexts. Synchronising
//     calls, blocking copies, frees and unloads.
//   Q <thread> <entry> <object> <yes|no> <goals>
//     A host call asked whether <goals> are done. <object>: s<stream> or e<event ordinal>.
//
// <thread> grows with the creation of threads in a process: the same program gives the threads that
// wait the same ranks, whatever numbers they have. Lists are comma separated, "-" when empty.
//
// Order. A happens before B in a run when B's <after> leads to A (the device ordered them), or when
// the host did, in one of two readings:
//   strict   the thread that submitted B had itself seen A complete (its wait ended, its query said
//            yes) before;
//   liberal  some thread had.
// In the strict reading a yes that the other run did not hear from the same query orders nothing,
// unless both asked until they heard it.
// The strict order of the bare run is what the program asked for; the preload library submits later
// and from a thread of its own, so the shimmed run must keep it in the liberal reading only:
//   lost order        A and B touch a granule, one of them writes, A strictly before B in bare, not
//                     liberally before B in shimmed. Atomic updates count as writes here: even an
//                     order that the program need not care about is not the library's to change.
//   lost observation  the n-th waiting call of a thread (by entry; queries by entry, object and
//   n-th
//                     different goal) had an operation before it in bare and not in shimmed.
//                     With --threads-race a wait has seen only what its own thread submitted.
//   race              A and B touch a granule, one of them writes, unordered in bare. Two atomic
//                     updates are no race.
//   added order       B's <after> names A in shimmed, and A is not liberally before B in bare.
#pragma once

#include <cstddef>

namespace softgpu {

inline constexpr char kTraceHeader[] = "softgpu-trace 1";
inline constexpr std::size_t kTraceGranule = 64;  // bytes

}  // namespace softgpu
