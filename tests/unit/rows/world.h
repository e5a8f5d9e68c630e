// SPDX-License-Identifier: Apache-2.0
// Two contexts with streams of every kind, launches waiting in some of them, and one entry called
// through its export: which launches had been submitted when the driver's entry ran, and what came
// back. What must have been submitted is worked out here from the demand of the row's rule text.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/fake_driver.h"
#include "tests/unit/rows/recorder.h"

namespace rows {

// What the rule texts ask for; rows_table.py says which text is which.
enum class Demand {
  kNothing,
  kUntouched,
  kTaint,
  kStream,
  kLegacyGroup,
  kOwnStream,
  kContext,
  kContextIfChanged,
  kAttribute,
  kAll,
  kAllOrTimer,
  kAllIfNeverLaunched,
  kAllIfNew,
  kAllMayLoad,
  kBeginCapture,
  kLaunch,
};

enum class Place {
  kNone = -1,
  kArgument0,
  kArgument1,
  kArgument2,
  kArgument3,
  kArgument4,
  kArgument5,
  kArgument6,
  kArgument7,
  kArgument8,
  kLaunchConfig,
  kLaunchList,
  kInstantiateParams,
  kPointer2,  // *argument 2
};

struct Row {
  EntryId id;
  Demand demand;
  Place place;
  bool is_own;  // stream 0 is the calling thread's own
  runtime::FailureRule failure;
  const char* tests;  // the tests that the table names, separated by blanks
  const char* symbol() const { return runtime::row(id).symbol; }
};
std::span<const Row> all_rows();
bool names_function(const Row& row);
std::vector<Row> rows_naming(const std::string& test);

// The queues, as bits. A and B are contexts, A is current.
enum Queue : unsigned {
  kN1 = 1,   // non-blocking, A
  kN2 = 2,   // non-blocking, A
  kK1 = 4,   // blocking, A
  kK2 = 8,   // blocking, A
  kL = 16,   // legacy, A
  kBN = 32,  // non-blocking, B
  kBK = 64,  // blocking, B
  kBL = 128  // legacy, B
};
constexpr unsigned kQueueCount = 8;
constexpr unsigned kQueuesOfA = kN1 | kN2 | kK1 | kK2 | kL;
constexpr unsigned kQueuesOfB = kBN | kBK | kBL;
// The legacy queue and a blocking queue of one context are never both open.
constexpr unsigned kBlockingScene = kN1 | kN2 | kK1 | kK2 | kBN | kBK;
constexpr unsigned kLegacyScene = kN1 | kN2 | kL | kBN | kBL;

// A value for the stream argument, with what FLUSH(stream) means for it.
struct StreamChoice {
  const char* name;
  CUstream stream;
  unsigned plain;  // what work on it runs behind
  unsigned own;    // the same in an entry whose stream 0 is the thread's own
  bool in_b = false;
  bool is_known = true;  // false: made behind the shim's back
};

struct Choice {
  StreamChoice stream;
  CUcontext context;
  CUfunction function;
  CUmodule code;
  bool null_pointers = false;
};

struct Bounds {
  unsigned must;
  unsigned may;
};

struct Seen {
  CUresult result = CUDA_SUCCESS;
  int entered = 0;         // calls that reached the entry with the arguments given
  unsigned before = 0;     // queues whose launches had been submitted then
  unsigned after = 0;      // and when the wrapper returned
  std::size_t graphs = 0;  // executable graphs of ours that were alive when it was entered
  bool is_split = false;   // one of two launches of a queue had been submitted
  bool kept_errno = true;
  std::vector<EntryId> others;  // other calls that reached the driver
};

class World final : private Observer {
  bool are_slots_known_ = know_slots();  // ahead of `driver`, which fills some

 public:
  // Two launches wait in each of the queues of `open`.
  explicit World(unsigned open);
  // The shim is left as it is in a fresh process.
  enum Asleep { kAsleep };
  explicit World(Asleep);
  ~World();

  // Arguments for the row: what a hook looks at is valid, the rest has a pattern of its own.
  Arguments arguments_for(const Row& row, const Choice& choice);
  Choice usual() const;
  std::vector<StreamChoice> stream_choices() const;
  CUstream stream_named(const std::string& name) const;
  Bounds bounds(const Row& row, const Choice& choice) const;

  Seen call(const Row& row, const Arguments& arguments, CUresult answer = CUDA_SUCCESS);
  Seen call(const Row& row, const Choice& choice, CUresult answer = CUDA_SUCCESS) {
    return call(row, arguments_for(row, choice), answer);
  }

  // Through the exported cuLaunchKernel; `queue` is one bit.
  CUresult launch(unsigned queue, CUfunction function);
  CUresult launch_on(CUstream stream, CUfunction function, unsigned grid);
  CUresult launch(unsigned queue) { return launch(queue, function_of(queue)); }
  CUfunction function_of(unsigned queue) const { return (queue & kQueuesOfA) ? f : fb; }
  CUstream stream(unsigned queue) const;
  void make_current(CUcontext context);
  void* scratch(std::size_t argument) { return scratch_[argument].data(); }
  // What has been submitted so far does not count.
  void mark() { mark_ = runs(); }
  std::size_t runs() const { return driver.log().size(); }
  std::size_t runs_at_mark() const { return mark_; }

  // A sequence of N1 gets its graph.
  void record();
  // Submitting launches fails from here on.
  void fail_launches();

  // Answers of the driver to single entries, ahead of all else: while a row is called, and after
  // keep_answering() always.
  void keep_answering() { is_armed_ = true; }
  std::map<EntryId, std::function<CUresult(const Arguments&)>> answers;

  fake::Driver driver;
  const CUcontext a = fake::Driver::context(101);
  const CUcontext b = fake::Driver::context(102);
  CUmodule code_of_a, code_of_b, other_code;
  CUfunction f, fb;           // launched before, in A and in B
  CUfunction never_launched;  // of code_of_a
  CUstream n3, k3;            // of A, nothing waits in them
  CUstream unknown;           // blocking, of A

 private:
  bool entered(EntryId id, const Arguments& arguments, CUresult* answer) override;
  unsigned submitted(bool* is_split);
  CUstream add_stream(unsigned flags, CUcontext owner);

  void make_objects();

  unsigned open_ = 0;
  CUstream streams_[kQueueCount] = {};
  std::size_t mark_ = 0;  // of the driver's log
  alignas(16) std::array<std::array<std::byte, 1024>, kMaxWords> scratch_{};
  bool is_armed_ = false;
  EntryId armed_id_{};
  Arguments armed_arguments_;
  CUresult armed_answer_ = CUDA_SUCCESS;
  Seen seen_;
};

// Which tests have looked at which row; checked against the table at the end.
void note_tested(EntryId id, const std::string& test);
bool is_tested(EntryId id, const std::string& test);

}  // namespace rows
