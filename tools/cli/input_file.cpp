// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 30;

}  // namespace

std::string read_input(const std::string& path) {
  const bool is_stdin = path == "-";
  const int file = is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Failure(path + ": cannot open: " + std::strerror(errno));
  std::string bytes;
  char buffer[65536];
  ssize_t length = 0;
  while (bytes.size() <= kMostBytes &&
         ((length = read(file, buffer, sizeof buffer)) > 0 || (length < 0 && errno == EINTR))) {
    if (length > 0) bytes.append(buffer, static_cast<std::size_t>(length));
  }
  const int error = errno;
  if (!is_stdin) close(file);
  if (length < 0) throw Failure(path + ": cannot read: " + std::strerror(error));
  log(LogLevel::kDebug, "read " + input_name(path) + ", " + grouped(bytes.size()) + " bytes");
  if (bytes.size() > kMostBytes) throw Failure(path + ": it is larger than 4 GiB");
  return bytes;
}

std::string input_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

}  // namespace cli
