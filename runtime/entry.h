// SPDX-License-Identifier: Apache-2.0
// Names for the rows of driver_entries.def: an id per entry, its class, and the rule the shim
// applies before it forwards the call. Pure constants: no state, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace runtime {

// One enumerator per exported driver symbol, in table order; also the index of every per-entry
// array.
enum class EntryId : std::uint16_t {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) symbol,
#include "runtime/driver_entries.def"
};

inline constexpr std::size_t kEntryCount = 0
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) +1
#include "runtime/driver_entries.def"
    ;

// What an entry does to queued launches; the classes of docs/driver-entries.tsv.
enum class EntryClass : std::uint8_t {
  kPass,
  kStreamOrdered,
  kGraphObject,
  kObserveAll,
  kNullStreamSync,
  kMutateLaunchState,
  kCapture,
  kLaunchDirect,
  kStreamLifecycle,
  kLaunch,
  kEventObserve,
  kLookup,
};

// What the wrapper does before it forwards.
enum class Rule : std::uint8_t {
  kPass,          // nothing
  kFlushStream,   // submit what the stream argument must run behind
  kFlushLegacy,   // submit the legacy group of the current context
  kFlushContext,  // submit every queue of the context argument, else of the current context
  kFlushAll,      // submit every queue of every context
  // The same for calls that may block the host for any work there is; what of it must be in the
  // driver before the call is what the stream argument runs behind, the default streams, nothing.
  kFlushStreamWait,
  kFlushDefaultStreams,
  kFlushForLiveness,
  kFlushIfUnloaded,  // kFlushForLiveness, unless the function was loaded before: the call may load
  kFlushIfNew,       // kFlushAll, unless the name was looked up before: the call may lazy-load it
  kLaunch,           // queue, or submit ahead and go directly (a hook decides)
  kLookup,           // answer with the shim's own entry (a hook decides)
};

// Where an entry keeps its stream argument.
enum class StreamArgument : std::uint8_t {
  kArg0,
  kArg1,
  kArg2,
  kArg3,
  kArg4,
  kArg5,
  kArg6,
  kArg7,
  kArg8,  // 0-based position
  kNone,
  kLaunchConfig,       // field hStream of argument 0
  kLaunchList,         // field hStream of each element of argument 0
  kInstantiateParams,  // field hUploadStream of argument 2
  kPointer2,           // what argument 2 points to
};

// What the wrapper makes of failures.
enum class FailureRule : std::uint8_t {
  kPlain,
  kTells,    // the driver's success may be replaced by the failure of an earlier queued launch
  kRetries,  // refused for want of memory: our graphs give theirs back, and it is made once more
};

struct EntryRow {
  const char* symbol;
  const char* api;
  int since;
  const char* flavour;
  EntryClass entry_class;
  Rule rule;
  StreamArgument stream;
  FailureRule failure;
  // Stream 0 means the calling thread's own default stream.
  constexpr bool per_thread_default() const { return flavour[0] != '\0'; }
};

inline constexpr EntryRow kEntryTable[kEntryCount] = {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  {#symbol,                                                                     \
   #api,                                                                        \
   since,                                                                       \
   #flavour,                                                                    \
   EntryClass::k##class,                                                        \
   Rule::k##rule,                                                               \
   StreamArgument::k##stream,                                                   \
   FailureRule::k##failure},
#include "runtime/driver_entries.def"
};

constexpr const EntryRow& row(EntryId id) {
  return kEntryTable[static_cast<std::size_t>(id)];
}

}  // namespace runtime
