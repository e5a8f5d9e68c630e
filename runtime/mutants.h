// SPDX-License-Identifier: Apache-2.0
// Planted faults, one for each promise, to see that the tests notice: only in a build with
// -Dmutants=true, and there only the one that CAJETA_XPU_MUTANT names (without the k). In any other
// build is_mutant() is false at compile time and nothing of this is left. tools/mutants reads the
// list and runs the tests; the last column names those that are likely to notice first.
#pragma once

// clang-format off
#define CAJETA_MUTANTS(X) \
  /* Submission points, by class */ \
  X(kStreamFlushDropped,         "work on a stream does not submit its queue",                  "graphs") \
  X(kLegacyFlushDropped,         "a call on the legacy stream submits nothing",                 "graphs") \
  X(kContextFlushDropped,        "a call that looks at a context submits nothing",              "graphs") \
  X(kAllFlushDropped,            "a call that looks at everything submits nothing",             "graphs") \
  X(kEventRecordFlushDropped,    "recording an event submits nothing",                          "events_across_streams") \
  X(kQueryFlushDropped,          "a query of a stream submits nothing",                         "rows") \
  X(kFreeFlushDropped,           "freeing memory submits nothing",                              "rows") \
  X(kCopyFlushDropped,           "an asynchronous copy submits nothing",                        "copies_between") \
  X(kHostFunctionFlushDropped,   "a host function submits nothing",                             "host_functions") \
  X(kCaptureFlushDropped,        "the start of a capture submits nothing",                      "graphs") \
  X(kDirectLaunchFlushDropped,   "a direct launch overtakes the queue",                         "graphs") \
  X(kLoadFlushDropped,           "loading code waits for work that is held back",               "graphs") \
  X(kExitFlushDropped,           "the end of the process drops the queues",                     "exit_with_launches_pending") \
  X(kUnderscoreExitFlushDropped, "_exit drops the queues",                                      "underscore_exit_with_launches_pending") \
  X(kUnknownEntryFlushDropped,   "an entry without a row submits nothing",                      "rows") \
  /* Values */ \
  X(kStaleArguments,             "arguments are read when the queue is submitted",              "graphs") \
  X(kArgumentShort,              "one byte less of each argument is kept",                      "graphs") \
  X(kArgumentLong,               "one byte more of each argument is kept",                      "graphs") \
  X(kArgumentMoved,              "arguments behind the first are kept 4 bytes too far",         "graphs") \
  X(kArgumentPatchMissed,        "a changed argument does not mark its launch",                 "graphs") \
  X(kShapePatchMissed,           "a changed grid, block or shared size does not mark its launch", "graphs") \
  X(kTakenPatchMissed,           "values taken over from a batch of its own are not marked",    "graphs") \
  X(kLastPatchMissed,            "the last changed launch of a group of 64 is not patched",     "graphs") \
  X(kBlockNotCarried,            "a node gets the height of the block as its width",            "changing_shapes") \
  X(kSharedNotCarried,           "a node gets no shared memory",                                "changing_shapes") \
  /* Multiplicity and order */ \
  X(kLaunchedUnpatched,          "a graph that could not be patched is launched",               "graphs") \
  X(kGraphLaunchRetried,         "a graph launch that failed is tried again",                   "graphs") \
  X(kGraphAndDirect,             "a batch is replayed and submitted one by one",                "graphs") \
  X(kLastLaunchDropped,          "the last launch of a direct batch is dropped",                "graphs") \
  X(kFirstLaunchDoubled,         "the first launch of a direct batch is made twice",            "graphs") \
  X(kDirectOrderReversed,        "a direct batch is submitted last launch first",               "graphs") \
  X(kNodesUnchained,             "nodes of a graph do not wait for each other",                 "graphs") \
  X(kSubmittedTwice,             "what the deadline has sent is sent again",                    "graphs") \
  X(kFullQueueDrops,             "a launch that finds the queue full is dropped",               "graphs") \
  X(kLegacyOvertakesBlocking,    "work on the legacy stream leaves blocking queues behind",     "graphs") \
  X(kBlockingOvertakesLegacy,    "work on a blocking stream leaves the legacy queue behind",    "graphs") \
  X(kBlockingTakenForFree,       "a blocking stream is taken for a non-blocking one",           "graphs") \
  X(kReplayedOnLegacy,           "graphs are launched on the legacy stream",                    "graphs") \
  X(kWrongContext,               "a batch is submitted in the context of the caller",           "exit_from_a_thread") \
  X(kFirstErrorOnly,             "a failing launch ends its batch",                             "graphs") \
  /* Identity */ \
  X(kFunctionNotCompared,        "any function passes for the one that a recording expects",    "graphs") \
  X(kIdentityMissesOne,          "the second function of a sequence is not part of its identity", "graphs") \
  X(kAttributesNotCompared,      "cooperative and cluster are not part of the identity",        "graphs") \
  X(kCooperativeLost,            "a node is not made cooperative",                              "graphs") \
  X(kClusterLost,                "a node gets no cluster",                                      "graphs") \
  X(kUnloadUnnoticed,            "unloading code leaves recordings and queues alone",           "module_reload") \
  X(kStreamEndUnnoticed,         "destroying a stream leaves its queue alone",                  "destroyed_stream") \
  X(kContextEndUnnoticed,        "destroying a context leaves its queues alone",                "rows") \
  X(kPrimaryResetUnnoticed,      "resetting a primary context leaves its queues alone",         "rows") \
  X(kFunctionChangeUnnoticed,    "a changed function attribute leaves limits and graphs alone", "graphs") \
  X(kHandleReuseUnnoticed,       "a function handle keeps its layout over an unload",           "graphs") \
  X(kAliasUnnoticed,             "a function made of a kernel is not known to be the kernel",   "graphs") \
  X(kAliasUnreached,             "a change reaches one handle of a function only",              "graphs") \
  X(kLibraryUnloadForKernels,    "unloading a library reaches its kernels, not its functions",  "graphs") \
  X(kOldVersionAppended,         "a launch is queued with the version that a change replaced",  "graphs") \
  X(kOldVersionFreed,            "a version is freed while launches in sequences name it",      "graphs") \
  X(kReadersIgnored,             "a version is freed while a launch looks at it",               "graphs") \
  X(kChangeWhileLearning,        "a change between two questions about a function is missed",   "graphs") \
  X(kSettingKept,                "a value counts as set when another may have been set since",  "graphs") \
  X(kLookupKept,                 "a name stays looked up over an unload",                       "rows") \
  X(kRememberedQueueKept,        "a thread goes on with the queue of a stream that is gone",    "graphs") \
  X(kContextSwitchUnnoticed,     "a thread goes on with the context it had",                    "graphs") \
  /* What is not queued */ \
  X(kLimitsUnchecked,            "a launch is queued that the driver will refuse",              "graphs") \
  X(kResidencyUnchecked,         "a cooperative launch is queued that is too large",            "graphs") \
  X(kPerThreadTakenForLegacy,    "stream 0 of a per-thread entry passes for the legacy stream", "rows") \
  X(kPerThreadQueued,            "CU_STREAM_PER_THREAD passes for a created stream",            "rows") \
  X(kStreamAttributesIgnored,    "a stream with attributes goes on queueing",                   "graphs") \
  X(kTextureReferenceIgnored,    "functions of a module with texture references are queued",    "graphs") \
  X(kCaptureUnnoticed,           "launches are queued while the context captures",              "graphs") \
  X(kCaptureEndUnnoticed,        "nothing is queued again after a capture",                     "graphs") \
  X(kCaptureModeKept,            "our calls do not leave the thread's capture mode",            "graphs") \
  /* Time, errors, life */ \
  X(kDeadlineOff,                "no deadline",                                                 "graphs") \
  X(kDeferredErrorLost,          "an error that waits is never returned",                       "graphs") \
  X(kFlushErrorLost,             "the failure of a queued launch is not kept for a call that tells", "rows") \
  X(kErrnoLost,                  "errno is not kept",                                           "shim") \
  X(kBudgetIgnored,              "graphs are not bounded",                                      "graphs") \
  X(kForkedChildSubmits,         "a forked child submits the queues of its parent",             "life_vfork") \
  /* Doors */ \
  X(kProcAddressSlips,           "cuGetProcAddress hands out one entry of the driver itself",   "door_queried") \
  X(kDlsymSlips,                 "dlsym hands out one entry of the driver itself",              "door_opened") \
  X(kUnknownEntrySlips,          "an entry without a row is handed out as it is",               "door_newer_driver")
// clang-format on

namespace runtime {

enum class Mutant {
#define CAJETA_MUTANT(name, what, hint) name,
  CAJETA_MUTANTS(CAJETA_MUTANT)
#undef CAJETA_MUTANT
};

struct Sequence;

#ifdef CAJETA_WITH_MUTANTS
// Reads the environment once; ends the process when it names no mutant.
bool is_mutant(Mutant mutant) noexcept;
// For kStaleArguments: where the program kept the arguments of a launch, and what is there now.
void note_arguments(const Sequence* sequence, unsigned index, void** kernel_params) noexcept;
void read_arguments_again(Sequence* sequence) noexcept;
#else
constexpr bool is_mutant(Mutant) noexcept {
  return false;
}
inline void note_arguments(const Sequence*, unsigned, void**) noexcept {}
inline void read_arguments_again(Sequence*) noexcept {}
#endif

}  // namespace runtime
