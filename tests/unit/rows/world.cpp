// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rows/world.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>

#include "graphs/replayer.h"
#include "runtime/deferral.h"
#include "runtime/driver_scope.h"
#include "runtime/flush.h"
#include "shim/exports.h"
#include "shim/lifecycle.h"
#include "tests/unit/catch.h"

namespace rows {
namespace {

constexpr Row kRows[] = {
#define ROW(symbol, demand, place, is_own, failure, tests) \
  {EntryId::symbol,                                        \
   Demand::k##demand,                                      \
   Place::k##place,                                        \
   is_own,                                                 \
   runtime::FailureRule::failure,                          \
   tests},
#include <rows.inc>  // made by rows_table.py
#undef ROW
};

// Grid sizes tell the queues apart in the driver's log.
constexpr unsigned kFirstGrid = 100;

CUstream handle(std::uintptr_t value) {
  return reinterpret_cast<CUstream>(value);
}

unsigned bit_index(unsigned queue) {
  return static_cast<unsigned>(std::countr_zero(queue));
}

void start_once() {
  static const bool started = [] {
    runtime::set_sink(graphs::start_replayer(256u << 20));
    runtime::Options options;
    options.defer = runtime::DeferMode::kAll;
    options.deadline_us = 3'600'000'000;
    return runtime::start(options);
  }();
  REQUIRE(started);
}

std::set<std::pair<EntryId, std::string>>& tested() {
  static std::set<std::pair<EntryId, std::string>> pairs;
  return pairs;
}

// Nothing of one world may be left for the next.
void empty(CUcontext context) {
  runtime::ContextState& state = *runtime::context_state(context);
  runtime::flush_context(context, EntryId::cuCtxSynchronize);
  runtime::context_dies(state);
  runtime::context_gone(state);
}

}  // namespace

std::span<const Row> all_rows() {
  return kRows;
}

bool names_function(const Row& row) {
  const auto parameters = parameters_of(row.id);
  return std::any_of(parameters.begin(), parameters.end(), [](const Parameter& each) {
    return each.kind == Kind::kFunction || each.kind == Kind::kKernel;
  });
}

std::vector<Row> rows_naming(const std::string& test) {
  std::vector<Row> rows;
  for (const Row& row : kRows) {
    std::istringstream tests(row.tests);
    for (std::string each; tests >> each;) {
      if (each == test) rows.push_back(row);
    }
  }
  return rows;
}

void note_tested(EntryId id, const std::string& test) {
  tested().insert({id, test});
}
bool is_tested(EntryId id, const std::string& test) {
  return tested().count({id, test}) != 0;
}

World::World(Asleep) {
  install(this);
  driver.current = a;
  make_objects();
}

void World::make_objects() {
  // Handles of their own for each world: what the library learns of one must not count in the next.
  static std::uintptr_t next_code = 0x400000;
  for (CUmodule* code : {&code_of_a, &code_of_b, &other_code}) {
    *code = reinterpret_cast<CUmodule>(next_code += 16);
  }
  f = driver.add_function({4}, code_of_a);
  fb = driver.add_function({4}, code_of_b);
  never_launched = driver.add_function({4}, code_of_a);
  for (unsigned queue : {kN1, kN2, kBN}) {
    streams_[bit_index(queue)] = add_stream(CU_STREAM_NON_BLOCKING, queue == kBN ? b : a);
  }
  for (unsigned queue : {kK1, kK2, kBK}) {
    streams_[bit_index(queue)] = add_stream(CU_STREAM_DEFAULT, queue == kBK ? b : a);
  }
  n3 = add_stream(CU_STREAM_NON_BLOCKING, a);
  k3 = add_stream(CU_STREAM_DEFAULT, a);
  unknown = driver.add_stream(CU_STREAM_DEFAULT, a);
}

World::World(unsigned open) : open_(open) {
  install(this);
  driver.current = a;
  runtime::forget_thread_context();
  start_once();
  shim::g_mode.store(shim::Mode::kActive);
  make_objects();
  for (unsigned queue : {kN1, kBN}) launch(queue);  // the functions are known from here on
  runtime::flush_all(EntryId::cuCtxSynchronize);
  mark();
  for (unsigned queue = 1; queue < 1u << kQueueCount; queue <<= 1) {
    if ((open & queue) == 0) continue;
    for (int i = 0; i < 2; ++i) REQUIRE(launch(queue) == CUDA_SUCCESS);
  }
  REQUIRE(runs() == mark_);
}

World::~World() {
  is_armed_ = false;
  answers.clear();
  driver.fail("cuLaunchKernel", CUDA_SUCCESS, -1);
  driver.current = a;
  runtime::forget_thread_context();
  runtime::g_active_captures.store(0);
  for (CUcontext context : {a, b}) empty(context);
  runtime::forget_thread_context();
  CHECK(runtime::g_nonempty_queues.load() == 0);
}

CUstream World::add_stream(unsigned flags, CUcontext owner) {
  CUstream made = driver.add_stream(flags, owner);
  // A shim that is not awake has not seen it.
  if (shim::is_active()) runtime::stream_created(made, runtime::context_state(owner), flags);
  return made;
}

CUstream World::stream(unsigned queue) const {
  return streams_[bit_index(queue)];
}

void World::make_current(CUcontext context) {
  driver.current = context;
  runtime::forget_thread_context();
}

CUresult World::launch(unsigned queue, CUfunction function) {
  const CUcontext before = driver.current;
  make_current((queue & kQueuesOfA) != 0 ? a : b);
  const CUresult result = launch_on(stream(queue), function, kFirstGrid + bit_index(queue));
  make_current(before);
  return result;
}

CUresult World::launch_on(CUstream stream, CUfunction function, unsigned grid) {
  int argument = 7;
  void* params[] = {&argument, nullptr};
  auto* entry =
      reinterpret_cast<PFN_cuLaunchKernel_v4000>(shim::wrapper_of(EntryId::cuLaunchKernel));
  return entry(function, grid, 1, 1, 32, 1, 1, 0, stream, params, nullptr);
}

void World::record() {
  for (int sight = 0; sight < 2; ++sight) {
    for (int i = 0; i < 2; ++i) REQUIRE(launch(kN1) == CUDA_SUCCESS);
    runtime::flush_all(EntryId::cuCtxSynchronize);
  }
  REQUIRE(driver.execs.size() == 1);
}

void World::fail_launches() {
  driver.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED, -1);
}

unsigned World::submitted(bool* is_split) {
  int launches[kQueueCount] = {};
  const std::vector<fake::Ran> log = driver.log();
  for (std::size_t i = mark_; i < log.size(); ++i) {
    if (log[i].grid_x - kFirstGrid < kQueueCount) ++launches[log[i].grid_x - kFirstGrid];
  }
  unsigned queues = 0;
  for (unsigned i = 0; i < kQueueCount; ++i) {
    if (launches[i] != 0) queues |= 1u << i;
    *is_split |= launches[i] == 1;
  }
  return queues;
}

bool World::entered(EntryId id, const Arguments& arguments, CUresult* answer) {
  if (!is_armed_) return false;
  if (id == armed_id_ && arguments == armed_arguments_) {
    ++seen_.entered;
    seen_.before = submitted(&seen_.is_split);
    seen_.graphs = driver.execs.size();
    *answer = armed_answer_;
    return true;
  }
  seen_.others.push_back(id);
  auto found = answers.find(id);
  if (found == answers.end()) return false;
  *answer = found->second(arguments);
  return true;
}

Seen World::call(const Row& row, const Arguments& arguments, CUresult answer) {
  seen_ = {};
  armed_id_ = row.id;
  armed_arguments_ = arguments;
  armed_answer_ = answer;
  is_armed_ = true;
  errno = EDOM;
  seen_.result = call_export(row.id, arguments);
  seen_.kept_errno = errno == EDOM;
  is_armed_ = false;
  seen_.after = submitted(&seen_.is_split);
  return seen_;
}

Choice World::usual() const {
  return {{"N1", stream(kN1), kN1, kN1}, a, f, other_code};
}

std::vector<StreamChoice> World::stream_choices() const {
  constexpr unsigned kGroup = kL | kK1 | kK2;
  return {
      {"0", nullptr, kGroup, kL},
      {"legacy", handle(1), kGroup, kGroup},
      {"per-thread", handle(2), kL, kL},
      {"non-blocking", stream(kN1), kN1, kN1},
      {"empty non-blocking", n3, 0, 0},
      {"blocking", stream(kK1), kL | kK1, kL | kK1},
      {"empty blocking", k3, kL, kL},
      {"non-blocking of B", stream(kBN), kBN, kBN, true},
      {"blocking of B", stream(kBK), kBL | kBK, kBL | kBK, true},
      {"unknown", unknown, kL, kL, false, false},
  };
}

CUstream World::stream_named(const std::string& name) const {
  for (const StreamChoice& choice : stream_choices()) {
    if (name == choice.name) return choice.stream;
  }
  FAIL("no stream " << name);
  return nullptr;
}

Arguments World::arguments_for(const Row& row, const Choice& choice) {
  Arguments arguments;
  scratch_ = {};
  std::size_t index = 0;
  for (const Parameter& parameter : parameters_of(row.id)) {
    std::uint64_t& word = arguments.words[parameter.first_word];
    const bool is_place = static_cast<std::size_t>(row.place) == index;
    auto put = [&word](auto value) { std::memcpy(&word, &value, sizeof value); };
    auto* memory = scratch_[index].data();
    auto pointer = [&](auto pointee) {
      std::memcpy(memory, &pointee, sizeof pointee);
      if (!choice.null_pointers) put(memory);
    };
    switch (parameter.kind) {
      case Kind::kStream:
        put(is_place ? choice.stream.stream : n3);
        break;
      case Kind::kStreamPointer:
        pointer(row.place == Place::kPointer2 && index == 2 ? choice.stream.stream
                                                            : handle(0x7f00));
        break;
      case Kind::kContext:
        put(choice.context);
        break;
      case Kind::kContextPointer:
        pointer(fake::Driver::context(99));
        break;
      case Kind::kFunction:
      case Kind::kKernel:
        put(choice.function);
        break;
      case Kind::kModule:
      case Kind::kLibrary:
        put(choice.code);
        break;
      case Kind::kLaunchConfig: {
        CUlaunchConfig config{};
        config.hStream = choice.stream.stream;
        pointer(config);
        break;
      }
      case Kind::kLaunchList: {
        CUDA_LAUNCH_PARAMS launch{};
        launch.hStream = choice.stream.stream;
        pointer(launch);
        break;
      }
      case Kind::kInstantiateParams: {
        CUDA_GRAPH_INSTANTIATE_PARAMS params{};
        params.hUploadStream = choice.stream.stream;
        pointer(params);
        break;
      }
      case Kind::kPointer:
        if (!choice.null_pointers) put(memory);
        break;
      case Kind::kEnum:
        // Every enum has the value 1 but this one, which has one value.
        put(std::uint32_t{row.id == EntryId::cuFlushGPUDirectRDMAWrites ? 0u : 1u});
        break;
      case Kind::kGreenContext:
      case Kind::kHandle:
        put(std::uint64_t{0x5A0000 + 0x1110 * (index + 1)});
        break;
      case Kind::kBytes: {
        auto* bytes = reinterpret_cast<unsigned char*>(&word);
        for (std::size_t i = 0; i < parameter.bytes; ++i) {
          bytes[i] = static_cast<unsigned char>(0x10 * (index + 1) + i + 1);
        }
        break;
      }
    }
    ++index;
  }
  return arguments;
}

Bounds World::bounds(const Row& row, const Choice& choice) const {
  const auto exactly = [this](unsigned queues) { return Bounds{queues & open_, queues & open_}; };
  const bool names_context =
      !parameters_of(row.id).empty() && parameters_of(row.id)[0].kind == Kind::kContext;
  const unsigned of_context = names_context && choice.context == b ? kQueuesOfB : kQueuesOfA;
  switch (row.demand) {
    case Demand::kNothing:
    case Demand::kUntouched:
    case Demand::kTaint:
    case Demand::kAllIfNeverLaunched:
      if (row.demand == Demand::kAllIfNeverLaunched) {
        if (choice.function == never_launched) return exactly(open_);
        if (choice.function == fb) return {0, open_};  // perhaps not in the current context
      }
      return exactly(0);
    case Demand::kStream: {
      const unsigned behind = row.is_own ? choice.stream.own : choice.stream.plain;
      // A stream the shim knows nothing of may belong anywhere.
      return choice.stream.is_known ? exactly(behind) : Bounds{behind & open_, open_};
    }
    case Demand::kLegacyGroup:
      return exactly(kL | kK1 | kK2);
    case Demand::kOwnStream:
      return exactly(kL);
    case Demand::kContext:
    case Demand::kContextIfChanged:
    case Demand::kAttribute: {
      const Kind first =
          parameters_of(row.id).empty() ? Kind::kBytes : parameters_of(row.id)[0].kind;
      // Nothing is queued in the streams of a green context, and its device's context is unknown.
      if (first == Kind::kGreenContext) return {0, open_};
      if (std::string(row.symbol()).starts_with("cuDevicePrimaryCtx")) {
        return {of_context & open_, open_};
      }
      // "Queues that hold the function": those of its context, which need not be the current one.
      if (names_function(row)) {
        return {(choice.function == fb ? kQueuesOfB : kQueuesOfA) & open_, open_};
      }
      return exactly(of_context);
    }
    case Demand::kAll:
    case Demand::kAllIfNew:  // every world has handles of its own
    case Demand::kAllMayLoad:
      return exactly(open_);
    case Demand::kAllOrTimer:
      return {0, open_};
    case Demand::kBeginCapture:
      return {(choice.stream.in_b ? kQueuesOfB : kQueuesOfA) & open_,
              (choice.stream.in_b ? open_ : kQueuesOfA & open_)};
    case Demand::kLaunch:
      break;
  }
  FAIL("no bounds for the demand of " << row.symbol());
  return {};
}

}  // namespace rows
