// SPDX-License-Identifier: Apache-2.0
// Generates random driver-API programs from seeds and runs them one after another in this process.
// stdout is what they observed; nothing in it depends on timing. tools/fuzz compares two such runs.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/generator.h"
#include "tests/fuzz/world.h"

namespace {

constexpr char kUsage[] =
    "usage: random_programs [--seed S] [--count N] [--threads 1..8] [--spin] [--no-faults]\n"
    "                       [--only A,B-C,...] [--print] [--coverage FILE]\n"
    "  --seed      the first program's seed (1); the next ones count up\n"
    "  --count     how many programs (1)\n"
    "  --threads   host threads of every program; else the seed chooses 1 to 4\n"
    "  --spin      programs may poll mapped memory\n"
    "  --no-faults no kernel faults\n"
    "  --only      keep these steps of the program and run what is left\n"
    "  --print     print the programs instead of running them\n"
    "  --coverage  append how often each kind of step ran\n";

struct Settings {
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
  fuzz::GeneratorOptions options;
  std::vector<int> only;
  bool has_only = false, prints = false;
  const char* coverage = nullptr;
};

bool parse_number(const char* text, std::uint64_t* value) {
  char* end = nullptr;
  *value = std::strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == '\0';
}

bool parse_list(const char* text, std::vector<int>* list) {
  while (*text != '\0') {
    char* end = nullptr;
    const long first = std::strtol(text, &end, 10);
    if (end == text) return false;
    long last = first;
    if (*end == '-') {
      text = end + 1;
      last = std::strtol(text, &end, 10);
      if (end == text) return false;
    }
    for (long number = first; number <= last && number < fuzz::kMaxSteps; ++number) {
      list->push_back(static_cast<int>(number));
    }
    if (*end == ',') ++end;
    text = end;
  }
  return true;
}

bool parse(int count, char** arguments, Settings* settings) {
  for (int i = 1; i < count; ++i) {
    const char* const name = arguments[i];
    const char* const value = i + 1 < count ? arguments[i + 1] : "";
    std::uint64_t number = 0;
    if (std::strcmp(name, "--print") == 0) {
      settings->prints = true;
      continue;
    }
    if (std::strcmp(name, "--spin") == 0) {
      settings->options.polls_memory = true;
      continue;
    }
    if (std::strcmp(name, "--no-faults") == 0) {
      settings->options.has_faults = false;
      continue;
    }
    ++i;
    if (std::strcmp(name, "--seed") == 0 && parse_number(value, &number)) {
      settings->seed = number;
    } else if (std::strcmp(name, "--count") == 0 && parse_number(value, &number)) {
      settings->count = number;
    } else if (std::strcmp(name, "--threads") == 0 && parse_number(value, &number) && number >= 1 &&
               number <= fuzz::kMaxThreads) {
      settings->options.threads = static_cast<int>(number);
    } else if (std::strcmp(name, "--only") == 0 && parse_list(value, &settings->only)) {
      settings->has_only = true;
    } else if (std::strcmp(name, "--coverage") == 0 && *value != '\0') {
      settings->coverage = value;
    } else {
      return false;
    }
  }
  return true;
}

void write_coverage(const char* path, const std::vector<std::uint64_t>& counts) {
  std::FILE* const file = std::fopen(path, "a");
  if (file == nullptr) {
    std::fprintf(stderr, "random_programs: cannot write %s\n", path);
    return;
  }
  for (std::size_t i = 0; i < fuzz::kKinds; ++i) {
    std::fprintf(file, "%s %llu\n", fuzz::kKindInfo[i].name,
                 static_cast<unsigned long long>(counts[i]));
  }
  std::fclose(file);
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  if (!parse(count, arguments, &settings)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (!settings.prints && cuInit(0) != CUDA_SUCCESS) {
    std::fprintf(stderr, "random_programs: cuInit failed\n");
    return 2;
  }
  std::vector<std::uint64_t> counts(fuzz::kKinds);
  for (std::uint64_t i = 0; i < settings.count; ++i) {
    const std::uint64_t seed = settings.seed + i;
    fuzz::Program program = fuzz::generate(seed, settings.options);
    if (settings.has_only) program = fuzz::keep_only(program, settings.only);
    std::printf("program %llu\n", static_cast<unsigned long long>(seed));
    if (settings.prints) {
      fuzz::print(program);
      continue;
    }
    // What a program that hangs or dies had printed tells which one it was.
    std::fflush(stdout);
    fuzz::execute(program);
    for (const fuzz::Step& step : program.steps) ++counts[static_cast<std::size_t>(step.kind)];
  }
  if (settings.coverage != nullptr) write_coverage(settings.coverage, counts);
  std::printf("done\n");
  return 0;
}
