// SPDX-License-Identifier: Apache-2.0
// A report file that readers see whole or not at all: written under a temporary name beside it,
// then renamed. No allocation; one thread at a time.
#pragma once

#include <cstddef>

#include "profiler/report_path.h"

namespace profiler {

class ReportFile {
 public:
  // Expands the pattern and opens the temporary file. False with errno.
  [[nodiscard]] bool open(const char* pattern, const PathValues& values) noexcept;
  int file() const noexcept { return file_; }
  // `is_written`: everything arrived, else errno says why not. Closes, and renames or removes.
  [[nodiscard]] bool close(bool is_written) noexcept;
  // The name asked for; empty when it does not fit.
  const char* path() const noexcept { return path_; }

 private:
  static constexpr std::size_t kPathBytes = 4096;

  int file_ = -1;
  char path_[kPathBytes] = "";
  char temporary_[kPathBytes + 24] = "";
};

}  // namespace profiler
