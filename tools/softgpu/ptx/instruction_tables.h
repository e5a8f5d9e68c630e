// SPDX-License-Identifier: Apache-2.0
// The vocabulary of PTX as data: what each suffix may mean, and which suffixes and types each
// instruction accepts. instructions.cpp reads them; a new instruction is one row here unless its
// operands are unusual.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "tools/softgpu/ptx/ir.h"

namespace softgpu::ptx {

using TypeSet = std::uint32_t;  // bit = Type

// What a suffix may mean. One word can mean several things; the family decides which.
enum SuffixClass : std::uint32_t {
  kRound = 1u << 0,
  kIntRound = 1u << 1,
  kFtz = 1u << 2,
  kSat = 1u << 3,
  kApprox = 1u << 4,
  kFull = 1u << 5,
  kMulMode = 1u << 6,
  kCompare = 1u << 7,
  kBoolean = 1u << 8,
  kSpace = 1u << 9,
  kOrder = 1u << 10,
  kScope = 1u << 11,
  kCache = 1u << 12,
  kVector = 1u << 13,
  kAtomOp = 1u << 14,
  kShuffle = 1u << 15,
  kVote = 1u << 16,
  kBarrierOp = 1u << 17,
  kPrmt = 1u << 18,
  kTestp = 1u << 19,
  kClamp = 1u << 20,
  kShift = 1u << 21,
  kShiftamt = 1u << 22,
  kCarry = 1u << 23,
  kTo = 1u << 24,
  kSync = 1u << 25,
  kAligned = 1u << 26,
  kNanMode = 1u << 27,
  kAbsolute = 1u << 28,
  kRelu = 1u << 29,
  kSatfinite = 1u << 30,
  kIgnored = 1u << 31,
};
// .uni and .noftz occur only where the classes they share a bit with make no sense.
constexpr std::uint32_t kUniform = kShiftamt;
constexpr std::uint32_t kNoFtz = kTestp;

struct Meaning {
  std::uint32_t type = 0;  // SuffixClass
  std::uint8_t value = 0;
};

using Meanings = std::array<Meaning, 3>;

struct Family {
  Opcode op;
  const char* operands;  // see Form; null: own syntax
  std::uint32_t suffixes = 0;
  std::uint32_t required = 0;  // classes that must occur
  TypeSet types = 0;           // 0: takes no type
  TypeSet source_types = 0;    // 0: takes one type only
};

const std::unordered_map<std::string_view, Meanings>& suffix_table();

// Keyed by the opcode, or by the opcode and the words that select another instruction
// ("bar.warp.sync").
const std::unordered_map<std::string_view, Family>& family_table();

}  // namespace softgpu::ptx
