// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/control_flow.h"

#include <random>
#include <set>

#include "tests/unit/softgpu_ptx/ptx_text.h"

namespace softgpu::ptx {
namespace {

constexpr std::uint32_t kNothing = 0xffffffff;
using Edges = std::vector<std::vector<std::uint32_t>>;

std::vector<Block> graph(const Edges& edges) {
  std::vector<Block> blocks;
  for (const auto& successors : edges) blocks.push_back({0, 1, successors});
  return blocks;
}

// The definition: b post-dominates a if no path from a to the exit avoids b.
bool reaches_exit_without(const Edges& edges, std::uint32_t from, std::uint32_t avoid) {
  std::set<std::uint32_t> seen;
  std::vector<std::uint32_t> todo = {from};
  while (!todo.empty()) {
    const std::uint32_t b = todo.back();
    todo.pop_back();
    if (b == avoid || !seen.insert(b).second) continue;
    if (b == edges.size()) return true;
    todo.insert(todo.end(), edges[b].begin(), edges[b].end());
  }
  return false;
}

void check_definition(const Edges& edges) {
  const auto next = immediate_post_dominators(graph(edges));
  const auto exit = static_cast<std::uint32_t>(edges.size());
  REQUIRE(next.size() == edges.size());
  for (std::uint32_t a = 0; a < exit; ++a) {
    CAPTURE(a, next[a]);
    std::vector<std::uint32_t> dominators;
    for (std::uint32_t b = 0; b <= exit; ++b) {
      if (b != a && (b == exit || !reaches_exit_without(edges, a, b))) dominators.push_back(b);
    }
    // The immediate one is post-dominated by all others.
    for (std::uint32_t b : dominators) {
      if (b != next[a] && b != exit) CHECK_FALSE(reaches_exit_without(edges, next[a], b));
    }
    CHECK(std::find(dominators.begin(), dominators.end(), next[a]) != dominators.end());
  }
}

TEST_CASE("post-dominators of a diamond", "[ptx][flow]") {
  const Edges edges = {{1, 2}, {3}, {3}, {4}};
  CHECK(immediate_post_dominators(graph(edges)) == std::vector<std::uint32_t>{3, 3, 3, 4});
}

TEST_CASE("post-dominators of a loop", "[ptx][flow]") {
  const Edges edges = {{1}, {2, 3}, {1}, {4}};  // 1 is the header, 3 follows the loop
  CHECK(immediate_post_dominators(graph(edges)) == std::vector<std::uint32_t>{1, 3, 1, 4});
}

TEST_CASE("post-dominators with several exits", "[ptx][flow]") {
  const Edges edges = {{1, 2}, {4}, {3, 4}, {4}};  // 4 is the exit
  CHECK(immediate_post_dominators(graph(edges)) == std::vector<std::uint32_t>{4, 4, 4, 4});
}

TEST_CASE("post-dominators of an irreducible graph", "[ptx][flow]") {
  const Edges edges = {{1, 2}, {2, 3}, {1}, {4}};  // the loop 1-2 has two entries
  CHECK(immediate_post_dominators(graph(edges)) == std::vector<std::uint32_t>{1, 3, 1, 4});
  check_definition(edges);
}

TEST_CASE("an endless loop has post-dominators too", "[ptx][flow]") {
  const Edges edges = {{1, 3}, {2}, {1}, {4}};
  const auto next = immediate_post_dominators(graph(edges));
  for (std::uint32_t parent : next) CHECK(parent <= 4);
  CHECK(next[3] == 4);
}

TEST_CASE("post-dominators of random graphs match the definition", "[ptx][flow]") {
  std::mt19937 random(7);
  int checked = 0;
  for (int round = 0; round < 600; ++round) {
    const std::uint32_t size = 1 + random() % 12;
    Edges edges(size);
    for (auto& successors : edges) {
      std::set<std::uint32_t> set;
      for (unsigned i = 0; i <= random() % 3; ++i) set.insert(random() % (size + 1));
      successors.assign(set.begin(), set.end());
    }
    bool is_endless = false;  // the definition says nothing of blocks that never reach the exit
    for (std::uint32_t b = 0; b < size; ++b)
      is_endless |= !reaches_exit_without(edges, b, kNothing);
    if (is_endless) continue;
    ++checked;
    CAPTURE(round);
    check_definition(edges);
  }
  CHECK(checked > 200);
}

TEST_CASE("branches know where their lanes meet again", "[ptx][flow]") {
  const auto module =
      parse(kernel_text("setp.eq.u32 %p1, %r1, 0;\n"    // 0
                        "@%p1 bra ELSE;\n"              // 1
                        "add.u32 %r2, %r1, 1;\n"        // 2
                        "bra.uni END;\n"                // 3
                        "ELSE: add.u32 %r2, %r1, 2;\n"  // 4
                        "END: @%p1 bra OUT;\n"          // 5
                        "add.u32 %r2, %r1, 2;\n"        // 6
                        "ret;\n"                        // 7
                        "OUT: trap;\n"));               // 8
  const Function& f = *module->kernels()[0].function;
  CHECK(f.code[1].target == 4);
  CHECK(f.code[1].reconverge == 5);
  CHECK(f.code[3].target == 5);
  CHECK(f.code[3].reconverge == 5);
  CHECK(f.code[3].uniform);
  CHECK(f.code[5].target == 8);
  CHECK(f.code[5].reconverge == f.code.size());
}

TEST_CASE("a branch table's lanes meet after it", "[ptx][flow]") {
  const auto module =
      parse(kernel_text("T: .branchtargets A, B, A;\n"
                        "brx.idx %r1, T;\n"          // 0
                        "A: add.u32 %r2, %r1, 1;\n"  // 1
                        "bra END;\n"                 // 2
                        "B: add.u32 %r2, %r1, 2;\n"  // 3
                        "END: st.global.u32 [%rd1], %r2;\n"));
  const Function& f = *module->kernels()[0].function;
  CHECK(f.code[0].op == Opcode::kBrx);
  CHECK(f.tables.at(f.code[0].target) == std::vector<std::uint32_t>{1, 3, 1});
  CHECK(f.code[0].reconverge == 4);
}

TEST_CASE("a predicated ret keeps the fall-through alive", "[ptx][flow]") {
  const auto module = parse(kernel_text("@%p1 bra L;\n@%p2 ret;\nL: st.global.u32 [%rd1], %r2;\n"));
  const Function& f = *module->kernels()[0].function;
  CHECK(f.code[0].reconverge == f.code.size());  // a lane may leave before L
  CHECK(f.code.back().op == Opcode::kRet);
  CHECK(f.code.back().guard == kNoGuard);
}

TEST_CASE("labels belong to their braces", "[ptx][flow]") {
  const auto module =
      parse(kernel_text("{ L: add.u32 %r1, %r1, 1; @%p1 bra L; }\n"
                        "{ L: add.u32 %r1, %r1, 1; @%p1 bra L; @%p2 bra END; }\n"
                        "END: ret;"));
  const Function& f = *module->kernels()[0].function;
  CHECK(f.code[1].target == 0);
  CHECK(f.code[3].target == 2);
  CHECK(f.code[4].target == 5);
  CHECK(parse_error(kernel_text("{ L: ret; }\nbra L;")) == "ptx:8: unknown label 'L'");
}

}  // namespace
}  // namespace softgpu::ptx
