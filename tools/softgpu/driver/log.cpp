// SPDX-License-Identifier: Apache-2.0
// Writes the operation log. The file is opened at the first question; every line is one write to a
// file in append mode, so lines of several threads do not mix and none is lost when the process is
// killed.

#include "tools/softgpu/driver/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/output_file.h"
#include "tools/softgpu/driver/trace.h"

namespace softgpu {
namespace {

int log_file() {
  static const int file =
      options().log_path.empty() ? -1 : open_output(options().log_path, O_WRONLY | O_APPEND);
  return file;
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

int open_output(std::string path, int flags) {
  if (const std::size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  const int file = open(path.c_str(), flags | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    std::fprintf(stderr, "softgpu: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
  }
  return file;
}

void write_fully(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool is_logging() {
  return log_file() >= 0 || is_tracing();
}

void log_operation(std::uint64_t stream_ordinal, std::uint64_t sequence, std::string_view text) {
  if (log_file() < 0) return;
  std::string line = std::to_string(stream_ordinal >> 32) + '.' +
                     std::to_string(stream_ordinal & 0xffffffff) + ' ' + std::to_string(sequence) +
                     ' ';
  line.append(text);
  line += '\n';
  write_fully(log_file(), line);
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
