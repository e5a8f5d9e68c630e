// SPDX-License-Identifier: Apache-2.0
// The counters file: one line per entry with a right-aligned decimal of fixed width, incremented in
// place.

#include "tools/softgpu/driver/counters.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/output_file.h"

namespace softgpu {
namespace {

constexpr std::size_t kLines = kEntryCount + kMisuseCount;
constexpr std::size_t kWidth = 16;  // digits: enough for a call per ns over months

struct Counters {
  std::atomic_flag is_busy;
  std::atomic<char*> text{nullptr};                // the mapping; null: not counting
  std::array<std::uint32_t, kLines> last_digit{};  // where in the text
};
Counters& counters() {
  static Counters* const instance = new Counters();
  return *instance;
}

std::string empty_table(Counters& state) {
  std::string text = "{\n";
  for (std::size_t i = 0; i < kLines; ++i) {
    text += '"';
    text += i < kEntryCount ? kEntryTable[i].symbol
                            : std::string("misuse: ") + name(static_cast<Misuse>(i - kEntryCount));
    text += "\": ";
    text.append(kWidth - 1, ' ');
    state.last_digit[i] = static_cast<std::uint32_t>(text.size());
    text += i + 1 < kLines ? "0,\n" : "0\n";
  }
  return text + "}\n";
}

void count(std::size_t line) {
  Counters& state = counters();
  char* const text = state.text.load(std::memory_order_acquire);
  if (text == nullptr) return;
  while (state.is_busy.test_and_set(std::memory_order_acquire)) {
  }
  char* digit = text + state.last_digit[line];
  while (*digit == '9') *digit-- = '0';
  *digit = *digit == ' ' ? '1' : static_cast<char>(*digit + 1);
  state.is_busy.clear(std::memory_order_release);
}

}  // namespace

bool start_counters() {
  if (options().counters_path.empty()) return false;
  const int file = open_output(options().counters_path, O_RDWR);
  if (file < 0) return false;
  const std::string text = empty_table(counters());
  char* mapped = nullptr;
  if (write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    void* const memory = mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) mapped = static_cast<char*>(memory);
  }
  close(file);
  if (mapped == nullptr) say("cannot write the counters file");
  counters().text.store(mapped, std::memory_order_release);
  return mapped != nullptr;
}

void count_call(EntryId id) {
  count(static_cast<std::size_t>(id));
}

void count_misuse(Misuse kind) {
  count(kEntryCount + static_cast<std::size_t>(kind));
}

void stop_counters() {
  counters().text.store(nullptr, std::memory_order_release);
  counters().is_busy.clear();
}

}  // namespace softgpu
