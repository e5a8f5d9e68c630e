// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rows/recorder.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "shim/exports.h"

namespace rows {
namespace {

Observer* g_observer = nullptr;

template <typename T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, CUstream>) return Kind::kStream;
  if constexpr (std::is_same_v<T, CUstream*>) return Kind::kStreamPointer;
  if constexpr (std::is_same_v<T, CUcontext>) return Kind::kContext;
  if constexpr (std::is_same_v<T, CUcontext*>) return Kind::kContextPointer;
  if constexpr (std::is_same_v<T, CUgreenCtx>) return Kind::kGreenContext;
  if constexpr (std::is_same_v<T, CUfunction>) return Kind::kFunction;
  if constexpr (std::is_same_v<T, CUkernel>) return Kind::kKernel;
  if constexpr (std::is_same_v<T, CUmodule>) return Kind::kModule;
  if constexpr (std::is_same_v<T, CUlibrary>) return Kind::kLibrary;
  if constexpr (std::is_same_v<T, const CUlaunchConfig*>) return Kind::kLaunchConfig;
  if constexpr (std::is_same_v<T, CUDA_LAUNCH_PARAMS*>) return Kind::kLaunchList;
  if constexpr (std::is_same_v<T, CUDA_GRAPH_INSTANTIATE_PARAMS*>) return Kind::kInstantiateParams;
  if constexpr (std::is_pointer_v<T>) {
    // The driver's objects are incomplete types; so is what a function pointer points to.
    using Pointee = std::remove_pointer_t<T>;
    if constexpr (std::is_void_v<Pointee>) {
      return Kind::kPointer;
    } else if constexpr (requires { sizeof(Pointee); } && !std::is_function_v<Pointee>) {
      return Kind::kPointer;
    } else {
      return Kind::kHandle;
    }
  }
  if constexpr (std::is_enum_v<T>) return Kind::kEnum;
  return Kind::kBytes;
}

constexpr std::size_t words_of(std::size_t bytes) {
  return (bytes + 7) / 8;
}

// What depends on the prototype only: rows share it.
template <typename Function>
struct Signature;

template <typename Result, typename... Args>
struct Signature<Result(CUDAAPI*)(Args...)> {
  using Function = Result(CUDAAPI*)(Args...);
  static_assert(std::is_same_v<Result, CUresult>);

  static constexpr auto kParameters = [] {
    std::array<Parameter, sizeof...(Args)> list{};
    std::size_t index = 0;
    std::size_t word = 0;
    ((list[index++] = Parameter{kind_of<Args>(), static_cast<std::uint8_t>(word),
                                static_cast<std::uint8_t>(sizeof(Args))},
      word += words_of(sizeof(Args))),
     ...);
    if (word > kMaxWords) throw "too many words";
    return list;
  }();

  [[gnu::noinline]] static Arguments pack(Args... args) {
    Arguments packed;
    std::size_t word = 0;
    ((std::memcpy(&packed.words[word], &args, sizeof(Args)), word += words_of(sizeof(Args))), ...);
    return packed;
  }

  static CUresult call(void* function, const Arguments& arguments) {
    return call_with(reinterpret_cast<Function>(function), arguments,
                     std::index_sequence_for<Args...>());
  }

 private:
  template <typename T>
  static T take(const Arguments& arguments, std::size_t word) {
    T value;
    std::memcpy(&value, &arguments.words[word], sizeof value);
    return value;
  }
  template <std::size_t... index>
  static CUresult call_with(Function function, [[maybe_unused]] const Arguments& arguments,
                            std::index_sequence<index...>) {
    return function(take<Args>(arguments, kParameters[index].first_word)...);
  }
};

template <EntryId id, typename Function = typename runtime::EntryTraits<id>::Function>
struct Fake;

template <EntryId id, typename... Args>
struct Fake<id, CUresult(CUDAAPI*)(Args...)> {
  using Function = CUresult(CUDAAPI*)(Args...);

  static CUresult CUDAAPI call(Args... args) {
    CUresult answer = CUDA_SUCCESS;
    if (g_observer->entered(id, Signature<Function>::pack(args...), &answer)) return answer;
    return script != nullptr ? script(args...) : CUDA_SUCCESS;
  }

  static void know_slot() {
    if (untouched == nullptr) untouched = runtime::slot_of<id>().get();
  }

  static void put() { runtime::slot_of<id>().set(&call); }

  static void install() {
    const auto& slot = runtime::slot_of<id>();
    const Function held = slot.get();
    if (held != &call) {
      script = held != untouched ? held : nullptr;
      put();
    }
  }

  inline static Function untouched = nullptr;  // what the slot holds in a fresh process
  inline static Function script = nullptr;
};

struct Row {
  std::span<const Parameter> parameters;
  CUresult (*call)(void* function, const Arguments& arguments);
  void (*know_slot)();
  void (*install)();
  void (*put)();
};

constexpr Row kRows[runtime::kEntryCount] = {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  {Signature<runtime::EntryTraits<EntryId::symbol>::Function>::kParameters,     \
   &Signature<runtime::EntryTraits<EntryId::symbol>::Function>::call,           \
   &Fake<EntryId::symbol>::know_slot, &Fake<EntryId::symbol>::install,          \
   &Fake<EntryId::symbol>::put},
#include "runtime/driver_entries.def"
};

const Row& access_to(EntryId id) {
  return kRows[static_cast<std::size_t>(id)];
}

}  // namespace

std::span<const Parameter> parameters_of(EntryId id) {
  return access_to(id).parameters;
}

void put_fake(EntryId id) {
  access_to(id).put();
}

CUresult call_export(EntryId id, const Arguments& arguments) {
  return access_to(id).call(shim::wrapper_of(id), arguments);
}

bool know_slots() {
  for (const Row& each : kRows) each.know_slot();
  return true;
}

void install(Observer* observer) {
  g_observer = observer;
  for (const Row& each : kRows) each.install();
}

}  // namespace rows
