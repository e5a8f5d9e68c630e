// SPDX-License-Identifier: Apache-2.0
// A driver of recording fakes, one in every slot of runtime::real, and a way to call every entry
// through its exported wrapper with arguments given as words. All templates over the table are in
// recorder.cpp. Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/driver.h"

namespace rows {

using runtime::EntryId;

// What a parameter is to the hooks; what they never look into is kPointer or kBytes.
enum class Kind : std::uint8_t {
  kStream,
  kStreamPointer,
  kContext,
  kContextPointer,
  kGreenContext,
  kFunction,
  kKernel,
  kModule,
  kLibrary,
  kLaunchConfig,
  kLaunchList,
  kInstantiateParams,
  kPointer,  // to data
  kHandle,   // to an object of the driver or a function
  kEnum,
  kBytes,
};

struct Parameter {
  Kind kind;
  std::uint8_t first_word;
  std::uint8_t bytes;
};

// Every argument in words of its own, the rest of its last word zero. recorder.cpp sees to it that
// every entry's fit.
inline constexpr std::size_t kMaxWords = 24;
struct Arguments {
  std::array<std::uint64_t, kMaxWords> words{};
  bool operator==(const Arguments&) const = default;
};

std::span<const Parameter> parameters_of(EntryId id);

// Puts the fake of one entry back into its slot.
void put_fake(EntryId id);

// Calls the exported symbol of the entry.
CUresult call_export(EntryId id, const Arguments& arguments);

// Sees every call that reaches the driver. Returns true when it has answered it; else the scripted
// entry of fake::Driver does, or CUDA_SUCCESS.
class Observer {
 public:
  virtual bool entered(EntryId id, const Arguments& arguments, CUresult* answer) = 0;

 protected:
  ~Observer() = default;
};

// Remembers what the slots hold in a fresh process. Before the first fake::Driver is made.
bool know_slots();
// Puts the recording fakes in front of what the slots hold. After each fake::Driver is made.
void install(Observer* observer);

}  // namespace rows
