// SPDX-License-Identifier: Apache-2.0
// Writes the operation log. The file is opened at the first question, in append mode, so that lines
// of several threads do not mix.

#include "tools/softgpu/driver/log.h"

#include <fcntl.h>

#include <cstring>

#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/output_file.h"
#include "tools/softgpu/driver/trace.h"

namespace softgpu {
namespace {

// Null: nobody wants one.
const LineLog* operation_log() {
  static const LineLog* const log = []() -> const LineLog* {
    if (options().log_path.empty()) return nullptr;
    const int file = open_output(options().log_path, O_WRONLY | O_APPEND);
    return file >= 0 ? new LineLog(file, "") : nullptr;
  }();
  return log;
}

// Writes the allocation that `word` points into; false if there is none.
bool describe_pointer(std::uint64_t word, std::string* text) {
  const auto allocation = find_allocation(word);
  if (allocation == nullptr) return false;
  *text +=
      'a' + std::to_string(allocation->ordinal) + '+' + std::to_string(word - allocation->base);
  return true;
}

}  // namespace

bool is_logging() {
  return operation_log() != nullptr || is_tracing();
}

void log_operation(std::uint64_t stream_ordinal, std::uint64_t sequence, std::string_view text) {
  const LineLog* const log = operation_log();
  if (log == nullptr) return;
  std::string line = std::to_string(stream_ordinal >> 32) + '.' +
                     std::to_string(stream_ordinal & 0xffffffff) + ' ' + std::to_string(sequence) +
                     ' ';
  line.append(text);
  log->write(line);
}

std::string describe_bytes(const void* bytes, std::size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto* const data = static_cast<const unsigned char*>(bytes);
  std::string text;
  for (std::size_t i = 0; i < size;) {
    std::uint64_t word = 0;
    if (i % 8 == 0 && i + 8 <= size) {
      std::memcpy(&word, data + i, 8);
      if (i > 0) text += ' ';
      if (describe_pointer(word, &text)) {
        i += 8;
        continue;
      }
    } else if (i % 8 == 0 && i > 0) {
      text += ' ';
    }
    const std::size_t end = std::min(size, i / 8 * 8 + 8);
    for (; i < end; ++i) {
      text += kDigits[data[i] >> 4];
      text += kDigits[data[i] & 15];
    }
  }
  return text;
}

std::string describe_address(std::uint64_t address) {
  std::string text;
  if (!describe_pointer(address, &text)) text = "host";
  return text;
}

}  // namespace softgpu
