// SPDX-License-Identifier: Apache-2.0
// Plans short pieces of program (a loop of launches, a hand-over, a capture, ...) for each thread
// and lets the model accept or drop their steps one by one, threads interleaved.
#include "tests/fuzz/generator.h"

#include <cstdio>
#include <utility>

#include "tests/fuzz/planner.h"

namespace fuzz {
namespace {

int choose_threads(Random& random) {
  const int percent = random.below(100);
  return percent < 50 ? 1 : percent < 75 ? 2 : percent < 87 ? 3 : 4;
}

}  // namespace

Program generate(std::uint64_t seed, const GeneratorOptions& options) {
  Random random(seed);
  Program program;
  program.threads = options.threads > 0 ? options.threads : choose_threads(random);
  program.polls_memory = options.polls_memory;
  program.has_faults = options.has_faults;
  Planner planner(random, program);
  planner.begin();
  const int wanted = random.between(40, 110) + 15 * program.threads;
  int thread = 0;
  // The second bound: a program whose plans are all refused ends short.
  for (int tries = 0; static_cast<int>(program.steps.size()) < wanted && tries < 20 * wanted;
       ++tries) {
    if (random.percent(35)) thread = random.below(program.threads);
    planner.advance(thread);
  }
  planner.end();
  return program;
}

// Captures that would be left open are ended.
Program keep_only(const Program& program, const std::vector<int>& numbers) {
  Program smaller;
  smaller.threads = program.threads;
  smaller.polls_memory = program.polls_memory;
  smaller.has_faults = program.has_faults;
  std::vector<bool> is_kept(kMaxSteps, false);
  for (const int number : numbers) {
    if (number >= 0 && number < kMaxSteps) is_kept[static_cast<std::size_t>(number)] = true;
  }
  Model model(program.threads, program.polls_memory);
  for (const Step& step : program.steps) {
    if (is_kept[static_cast<std::size_t>(step.number)] && model.apply(step)) {
      smaller.steps.push_back(step);
    }
  }
  int next = program.steps.empty() ? 0 : program.steps.back().number + 1;
  for (const CaptureModel& capture : std::vector<CaptureModel>(model.captures)) {
    if (!capture.is_active) continue;
    Step step;
    step.kind = Kind::k_capture_end;
    step.thread = capture.thread;
    step.at = {capture.origin, kNoGraph};
    step.number = next++;
    if (model.apply(step)) smaller.steps.push_back(step);
  }
  return smaller;
}

void print(const Program& program) {
  std::printf("threads %d\n", program.threads);
  for (const Step& step : program.steps) {
    const KindInfo& info = kKindInfo[static_cast<std::size_t>(step.kind)];
    std::printf("%3d  thread %d  %s", step.number, step.thread, info.name);
    const char* name = info.arguments;
    for (std::size_t i = 0; *name != '\0'; ++i) {
      int length = 0;
      while (name[length] != '\0' && name[length] != ' ') ++length;
      std::printf(" %.*s=%d", length, name, step[i]);
      name += length;
      while (*name == ' ') ++name;
    }
    std::printf("\n");
  }
}

}  // namespace fuzz
