// SPDX-License-Identifier: Apache-2.0
#include "profiler/report_file.h"

#include <cerrno>

namespace profiler {

void ReportFile::remember(const char* pattern) noexcept {
  const int descriptor = named_descriptor(pattern);
  if (descriptor < 0 || fstat(descriptor, &descriptor_) != 0) descriptor_ = {};
}

bool ReportFile::open(const char* pattern, const PathValues& values) noexcept {
  if (!expand_path(pattern, values, path_, sizeof path_)) {
    path_[0] = '\0';
    errno = ENAMETOOLONG;
    return false;
  }
  const int descriptor = named_descriptor(path_);
  struct stat now {};
  if (descriptor >= 0 && (fstat(descriptor, &now) != 0 || now.st_dev != descriptor_.st_dev ||
                          now.st_ino != descriptor_.st_ino)) {
    errno = EBADF;
    return false;
  }
  return output_.open(path_);
}

}  // namespace profiler
