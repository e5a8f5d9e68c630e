// SPDX-License-Identifier: Apache-2.0
#include "profiler/report_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

namespace profiler {

bool ReportFile::open(const char* pattern, const PathValues& values) noexcept {
  if (!expand_path(pattern, values, path_, sizeof path_)) {
    path_[0] = '\0';
    errno = ENAMETOOLONG;
    return false;
  }
  snprintf(temporary_, sizeof temporary_, "%s.%d.tmp", path_, values.pid);
  file_ = ::open(temporary_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  return file_ >= 0;
}

bool ReportFile::close(bool is_written) noexcept {
  int failure = is_written ? 0 : errno;
  if (::close(file_) != 0 && failure == 0) failure = errno;
  file_ = -1;
  if (failure == 0 && rename(temporary_, path_) != 0) failure = errno;
  if (failure == 0) return true;
  unlink(temporary_);
  errno = failure;
  return false;
}

}  // namespace profiler
