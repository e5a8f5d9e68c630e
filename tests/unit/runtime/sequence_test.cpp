// SPDX-License-Identifier: Apache-2.0
#include "runtime/sequence.h"

#include <vector>

#include "runtime/context_state.h"
#include "tests/unit/catch.h"

using runtime::FunctionInfo;
using runtime::LaunchShape;
using runtime::Sequence;

namespace {

constexpr LaunchShape kShape{{1, 1, 1}, {32, 1, 1}, 0};

struct Function {
  FunctionInfo info;
  Function(std::uint64_t token, std::vector<std::uint16_t> sizes) {
    info.token = token;
    info.handle = handle();
    std::uint16_t offset = 0;
    for (std::uint16_t size : sizes) {
      REQUIRE(info.parameters.push_back({offset, size}));
      offset = static_cast<std::uint16_t>(offset + (size + 7) / 8 * 8);
    }
    info.argument_bytes = offset;
  }
  CUfunction handle() { return reinterpret_cast<CUfunction>(info.token << 4); }
};

template <typename... Args>
bool add(Sequence& sequence, Function& function, Args... args) {
  void* params[] = {static_cast<void*>(&args)..., nullptr};
  runtime::LaunchSlot* slot = sequence.append(&function.info, kShape);
  return slot != nullptr && function.info.update_arguments(sequence.arguments_of(*slot), params);
}

bool is_dirty(const Sequence& sequence, std::uint32_t index) {
  return (sequence.dirty[index / 64] >> (index % 64) & 1) != 0;
}

}  // namespace

TEST_CASE("arguments of every size are compared and copied") {
  struct Big {
    char bytes[40];
  };
  Function function(1, {8, 4, 2, 1, 40});
  std::vector<std::byte> stored(function.info.argument_bytes);
  std::uint64_t a = 1;
  float b = 2;
  short c = 3;
  char d = 4;
  Big e{};
  void* params[] = {&a, &b, &c, &d, &e};
  auto update = [&] { return function.info.update_arguments(stored.data(), params); };
  CHECK(update());
  CHECK_FALSE(update());
  a = 10;
  CHECK(update());
  b = 20;
  CHECK(update());
  c = 30;
  CHECK(update());
  d = 40;
  CHECK(update());
  e.bytes[39] = 1;
  CHECK(update());
  CHECK_FALSE(update());
  CHECK(std::memcmp(stored.data(), &a, sizeof a) == 0);
}

TEST_CASE("identity is the functions in their order, not the values") {
  Function f(1, {8}), g(2, {8});
  Sequence first, second, third;
  for (Sequence* sequence : {&first, &second, &third}) REQUIRE(sequence->start());
  add(first, f, std::uint64_t{1});
  add(first, g, std::uint64_t{2});
  add(second, f, std::uint64_t{3});
  add(second, g, std::uint64_t{4});
  add(third, g, std::uint64_t{1});
  add(third, f, std::uint64_t{2});
  CHECK(first.hash() == second.hash());
  CHECK(first.same_prefix(second, 2));
  CHECK(first.hash() != third.hash());
  CHECK_FALSE(first.same_prefix(third, 2));
  CHECK_FALSE(first.same_prefix(third, 1));
  CHECK(first.slots[2].key == runtime::kNoLaunch);  // the end marker
}

TEST_CASE("taking values marks exactly the launches that differ") {
  Function f(1, {8});
  Sequence kept, now;
  REQUIRE(kept.start());
  REQUIRE(now.start());
  for (std::uint64_t i = 0; i < 200; ++i) {
    add(kept, f, i + 1);
    add(now, f, i % 7 == 0 ? i + 1000 : i + 1);
  }
  kept.take_values(now, 200);
  for (std::uint32_t i = 0; i < 200; ++i) {
    CHECK(is_dirty(kept, i) == (i % 7 == 0));
    CHECK(std::memcmp(kept.arguments_of(kept.slots[i]), now.arguments_of(now.slots[i]), 8) == 0);
  }
}

TEST_CASE("a copied prefix stands on its own") {
  Function f(1, {8}), g(2, {4});
  Sequence from, copy;
  REQUIRE(from.start());
  add(from, f, std::uint64_t{5});
  add(from, g, 6);
  add(from, f, std::uint64_t{7});
  REQUIRE(copy.copy_prefix(from, 2));
  CHECK(copy.count == 2);
  CHECK(copy.hash() == from.slots[1].prefix_hash);
  from.arguments.clear();
  int value = 0;
  std::memcpy(&value, copy.arguments_of(copy.slots[1]), sizeof value);
  CHECK(value == 6);
}

TEST_CASE("the sides of an order group exclude each other") {
  runtime::OrderGroup group;
  CHECK(group.try_open_blocking());
  CHECK(group.try_open_blocking());
  CHECK_FALSE(group.try_open_legacy());
  group.close_blocking();
  CHECK_FALSE(group.try_open_legacy());
  group.close_blocking();
  CHECK(group.try_open_legacy());
  CHECK(group.is_legacy_open());
  CHECK_FALSE(group.try_open_blocking());
  group.close_legacy();
  CHECK(group.try_open_blocking());
}
