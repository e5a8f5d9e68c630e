// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/driver/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/softgpu/driver/line_log.h"

namespace softgpu {

int open_output(std::string path, int flags) {
  if (const std::size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  const int file = open(path.c_str(), flags | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    say("cannot write %s: %s", path.c_str(), std::strerror(errno));
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

}  // namespace softgpu
