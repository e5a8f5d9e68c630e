// SPDX-License-Identifier: Apache-2.0
// A report's file by its pattern. No allocation; one thread at a time.
#pragma once

#include <cstddef>

#include "profiler/output_file.h"
#include "profiler/report_path.h"

namespace profiler {

class ReportFile {
 public:
  // Remembers which file the pattern means, if it names a descriptor of the process: what is there
  // later may be another.
  void remember(const char* pattern) noexcept;
  // Expands the pattern and opens it. False with errno.
  [[nodiscard]] bool open(const char* pattern, const PathValues& values) noexcept;
  OutputFile& output() noexcept { return output_; }
  // The name asked for; empty when it does not fit.
  const char* path() const noexcept { return path_; }

 private:
  static constexpr std::size_t kPathBytes = 4096;

  OutputFile output_;
  struct stat descriptor_ {};  // st_mode 0: the pattern names none, or a closed one
  char path_[kPathBytes] = "";
};

}  // namespace profiler
