// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/json_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "profiler/output_file.h"
#include "tools/cli/failure.h"

namespace cli {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw Failure(path + ": cannot write: " + std::strerror(error));
}

bool to_file(void* file, const char* bytes, std::size_t size) noexcept {
  return static_cast<profiler::OutputFile*>(file)->write(bytes, size);
}

// `write` gets the open file and says whether all of it was written.
void write_file(const std::string& path, const std::function<bool(profiler::OutputFile*)>& write) {
  const auto file = std::make_unique<profiler::OutputFile>();
  if (!file->open(path.c_str(), runtime::Patience::kForever)) refuse(path, errno);
  if (!file->close(write(file.get()))) refuse(path, errno);
}

}  // namespace

void write_json(const std::string& path, const std::function<void(profiler::JsonWriter*)>& write) {
  profiler::JsonWriter out(STDOUT_FILENO);
  if (path != "-") {
    return write_file(path, [&](profiler::OutputFile* file) {
      out.start(to_file, file);
      write(&out);
      return out.finish();
    });
  }
  std::fflush(stdout);
  write(&out);
  if (!out.finish()) refuse("standard output", errno);
}

void write_text(const std::string& path, std::string_view text) {
  if (path != "-") {
    return write_file(
        path, [&](profiler::OutputFile* file) { return file->write(text.data(), text.size()); });
  }
  std::fflush(stdout);
  if (!profiler::write_all(STDOUT_FILENO, text.data(), text.size())) {
    refuse("standard output", errno);
  }
}

}  // namespace cli
