// SPDX-License-Identifier: Apache-2.0
#include "runtime/handle_map.h"

#include <map>
#include <random>

#include "tests/unit/catch.h"

using runtime::HandleMap;

namespace {

const void* handle(std::uintptr_t number) {
  return reinterpret_cast<const void*>(number * 16);
}

}  // namespace

TEST_CASE("a map of handles keeps what a map keeps") {
  HandleMap<int> map;
  std::map<const void*, int> wanted;
  std::mt19937 random(1);
  for (int step = 0; step < 20000; ++step) {
    const void* key = handle(1 + random() % 400);
    if (random() % 8 == 0) {
      const std::uintptr_t residue = random() % 7;
      const auto goes = [residue](const void* each) {
        return reinterpret_cast<std::uintptr_t>(each) / 16 % 7 == residue;
      };
      map.remove_if([&](const void* each, int) { return goes(each); });
      std::erase_if(wanted, [&](const auto& each) { return goes(each.first); });
    }
    int* value = map.find_or_add(key);
    REQUIRE(value != nullptr);
    REQUIRE(*value == (wanted.count(key) != 0 ? wanted[key] : 0));
    *value = wanted[key] = step + 1;
  }
  for (std::uintptr_t i = 1; i <= 400; ++i) {
    const int* found = map.find(handle(i));
    CHECK((found != nullptr) == (wanted.count(handle(i)) != 0));
    if (found != nullptr) CHECK(*found == wanted[handle(i)]);
  }
  CHECK(map.any([](const void*, int value) { return value > 0; }));
}

TEST_CASE("no handle is in no map") {
  HandleMap<int> map;
  CHECK(map.find(nullptr) == nullptr);
  REQUIRE(map.find_or_add(handle(1)) != nullptr);
  map.remove_if([](const void*, int) { return true; });
  for (std::uintptr_t value : {0, 1}) {
    CHECK(map.find(reinterpret_cast<const void*>(value)) == nullptr);
    CHECK(map.find_or_add(reinterpret_cast<const void*>(value)) == nullptr);
  }
  CHECK(map.find(handle(1)) == nullptr);
  CHECK_FALSE(map.any([](const void*, int) { return true; }));
}
