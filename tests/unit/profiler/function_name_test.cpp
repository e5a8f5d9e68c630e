// SPDX-License-Identifier: Apache-2.0
// Which parentheses of a function's name are its parameters.
#include "profiler/function_name.h"

#include "tests/unit/catch.h"

using profiler::without_parameters;

TEST_CASE("a function's name ends where its parameters begin") {
  const struct {
    const char* whole;
    const char* name;
  } cases[] = {
      {"main", "main"},
      {"solve(int)", "solve"},
      {"a::(anonymous namespace)::f(int (*)(char)) const", "a::(anonymous namespace)::f"},
      {"f(int)::{lambda()#1}::operator()() const", "f(int)::{lambda()#1}::operator()"},
      {"a::operator()(int)", "a::operator()"},
      {"f<int, (Mode)3>(std::vector<int>) [clone .part.0]", "f<int, (Mode)3>"},
      {"operator><int>(A<int>, B)", "operator><int>"},
  };
  for (const auto& one : cases) CHECK(without_parameters(one.whole) == one.name);
}

TEST_CASE("a name without parameters stays whole") {
  for (const char* name :
       {"", "f<int, (Mode)3>", "f<(Mode)3>::g<(Mode)4>", "operator()", "a::operator()", ")", "(x)",
        "f)", "(anonymous namespace)::f", "a::(anonymous namespace)::f"}) {
    CHECK(without_parameters(name) == name);
  }
}
