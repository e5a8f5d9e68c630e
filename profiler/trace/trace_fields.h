// SPDX-License-Identifier: Apache-2.0
// The field numbers of Perfetto's messages that the trace uses, and the values of its
// enumerations. docs/trace-format.md says what is made of them.
#pragma once

#include <cstdint>

namespace profiler::perfetto {

// Repeated in the file itself.
inline constexpr std::uint32_t kTracePacket = 1;

namespace packet {
inline constexpr std::uint32_t kClockSnapshot = 6;
inline constexpr std::uint32_t kTimestamp = 8;
inline constexpr std::uint32_t kSequenceId = 10;
inline constexpr std::uint32_t kTrackEvent = 11;
inline constexpr std::uint32_t kInternedData = 12;
inline constexpr std::uint32_t kSequenceFlags = 13;
inline constexpr std::uint32_t kTimestampClock = 58;
inline constexpr std::uint32_t kDefaults = 59;
inline constexpr std::uint32_t kTrackDescriptor = 60;
inline constexpr std::uint32_t kModuleSymbols = 61;
inline constexpr std::uint32_t kPerfSample = 66;

inline constexpr std::uint64_t kStateCleared = 1;
inline constexpr std::uint64_t kNeedsState = 2;
}  // namespace packet

namespace defaults {
inline constexpr std::uint32_t kPerfSample = 12;
inline constexpr std::uint32_t kTimebase = 1;  // of PerfSampleDefaults
inline constexpr std::uint32_t kTimestampClock = 58;
}  // namespace defaults

namespace timebase {
inline constexpr std::uint32_t kFrequency = 2;
inline constexpr std::uint32_t kCounter = 4;
inline constexpr std::uint32_t kTimestampClock = 11;

inline constexpr std::uint64_t kTaskClock = 3;
inline constexpr std::uint64_t kMonotonic = 2;
}  // namespace timebase

namespace clocks {
inline constexpr std::uint32_t kClock = 1;  // of ClockSnapshot
inline constexpr std::uint32_t kPrimary = 2;
inline constexpr std::uint32_t kId = 1;  // of Clock
inline constexpr std::uint32_t kTimestamp = 2;

inline constexpr std::uint64_t kRealtime = 1;
inline constexpr std::uint64_t kMonotonic = 3;
inline constexpr std::uint64_t kBoottime = 6;
}  // namespace clocks

namespace event {
inline constexpr std::uint32_t kCategory = 3;
inline constexpr std::uint32_t kAnnotation = 4;
inline constexpr std::uint32_t kType = 9;
inline constexpr std::uint32_t kName = 10;
inline constexpr std::uint32_t kTrack = 11;
inline constexpr std::uint32_t kCategoryText = 22;
inline constexpr std::uint32_t kNameText = 23;
inline constexpr std::uint32_t kFlow = 47;
inline constexpr std::uint32_t kFlowEnd = 48;
inline constexpr std::uint32_t kCallstack = 56;

inline constexpr std::uint64_t kBegin = 1;
inline constexpr std::uint64_t kEnd = 2;
inline constexpr std::uint64_t kInstant = 3;
}  // namespace event

namespace annotation {
inline constexpr std::uint32_t kName = 1;
inline constexpr std::uint32_t kNumber = 3;
inline constexpr std::uint32_t kText = 6;
inline constexpr std::uint32_t kNameText = 10;
inline constexpr std::uint32_t kInternedText = 17;
}  // namespace annotation

namespace track {
inline constexpr std::uint32_t kUuid = 1;
inline constexpr std::uint32_t kName = 2;
inline constexpr std::uint32_t kProcess = 3;
inline constexpr std::uint32_t kThread = 4;
inline constexpr std::uint32_t kParent = 5;
inline constexpr std::uint32_t kChildOrder = 11;
inline constexpr std::uint32_t kRank = 12;
inline constexpr std::uint32_t kMerging = 15;

inline constexpr std::uint64_t kByRank = 3;
inline constexpr std::uint64_t kNotMerged = 2;
}  // namespace track

namespace process {
inline constexpr std::uint32_t kPid = 1;
inline constexpr std::uint32_t kArgument = 2;
inline constexpr std::uint32_t kName = 6;
}  // namespace process

namespace thread {
inline constexpr std::uint32_t kPid = 1;
inline constexpr std::uint32_t kTid = 2;
inline constexpr std::uint32_t kName = 5;
}  // namespace thread

namespace interned {
inline constexpr std::uint32_t kCategory = 1;
inline constexpr std::uint32_t kEventName = 2;
inline constexpr std::uint32_t kAnnotationName = 3;
inline constexpr std::uint32_t kFunctionName = 5;
inline constexpr std::uint32_t kFrame = 6;
inline constexpr std::uint32_t kCallstack = 7;
inline constexpr std::uint32_t kBuildId = 16;
inline constexpr std::uint32_t kMappingPath = 17;
inline constexpr std::uint32_t kMapping = 19;
inline constexpr std::uint32_t kAnnotationText = 29;

// The same in all of them.
inline constexpr std::uint32_t kIid = 1;
inline constexpr std::uint32_t kText = 2;
}  // namespace interned

namespace mapping {
inline constexpr std::uint32_t kBuildId = 2;
inline constexpr std::uint32_t kStart = 4;
inline constexpr std::uint32_t kEnd = 5;
inline constexpr std::uint32_t kPath = 7;
}  // namespace mapping

namespace frame {
inline constexpr std::uint32_t kFunctionName = 2;
inline constexpr std::uint32_t kMapping = 3;
inline constexpr std::uint32_t kAddress = 4;
}  // namespace frame

namespace callstack {
inline constexpr std::uint32_t kFrame = 2;
}  // namespace callstack

namespace sample {
inline constexpr std::uint32_t kPid = 2;
inline constexpr std::uint32_t kTid = 3;
inline constexpr std::uint32_t kCallstack = 4;
inline constexpr std::uint32_t kCpuMode = 5;
inline constexpr std::uint32_t kCount = 6;

inline constexpr std::uint64_t kUserMode = 2;
}  // namespace sample

namespace symbols {
inline constexpr std::uint32_t kPath = 1;
inline constexpr std::uint32_t kBuildId = 2;
inline constexpr std::uint32_t kAddress = 3;
inline constexpr std::uint32_t kAt = 1;        // of AddressSymbols
inline constexpr std::uint32_t kLine = 2;      // of AddressSymbols
inline constexpr std::uint32_t kFunction = 1;  // of Line
inline constexpr std::uint32_t kFile = 2;
inline constexpr std::uint32_t kLineNumber = 3;
}  // namespace symbols

}  // namespace profiler::perfetto
