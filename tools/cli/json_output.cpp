// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/json_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"

namespace cli {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw Failure(path + ": cannot write: " + std::strerror(error));
}

// `write` gets an open file and says whether all of it was written.
void write_file(const std::string& path, const std::function<bool(int)>& write) {
  struct stat status = {};
  // A device or a pipe cannot be replaced by a file.
  const bool is_special = stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  const std::string temporary = is_special ? path : path + "." + std::to_string(getpid()) + ".tmp";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) refuse(path, errno);
  int error = write(file) ? 0 : errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && !is_special && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return log(LogLevel::kDebug, "wrote " + path);
  if (!is_special) unlink(temporary.c_str());
  refuse(path, error);
}

}  // namespace

void write_json(const std::string& path, const std::function<void(profiler::JsonWriter*)>& write) {
  const auto write_to = [&](int file) {
    profiler::JsonWriter out(file);
    write(&out);
    return out.finish();
  };
  if (path != "-") return write_file(path, write_to);
  std::fflush(stdout);
  if (!write_to(STDOUT_FILENO)) refuse("standard output", errno);
}

void write_text(const std::string& path, std::string_view text) {
  const auto write_to = [&](int file) {
    return profiler::write_all(file, text.data(), text.size());
  };
  if (path != "-") return write_file(path, write_to);
  std::fflush(stdout);
  if (!write_to(STDOUT_FILENO)) refuse("standard output", errno);
}

}  // namespace cli
