// SPDX-License-Identifier: Apache-2.0
#include "profiler/process_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstddef>

namespace profiler {

void blank_controls(char* text) noexcept {
  for (; *text != '\0'; ++text) {
    if (static_cast<unsigned char>(*text) < ' ' || *text == 0x7f) *text = ' ';
  }
}

namespace {

// Not of this process but of this thread: that of the process is empty once its first thread has
// ended.
void read_command(char* command, std::size_t capacity) noexcept {
  const int file = open("/proc/thread-self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, command, capacity - 1);
  if (file >= 0) close(file);
  if (length < 0) length = 0;
  command[length] = '\0';
  for (ssize_t i = 0; i + 1 < length; ++i) {
    if (command[i] == '\0') command[i] = ' ';
  }
  blank_controls(command);
}

// Argument 0 may be a title by now. Without /proc it is what the kernel was told to execute.
void read_executable(char* executable, std::size_t capacity) noexcept {
  constexpr char kDeleted[] = " (deleted)";
  char link[1024];
  const ssize_t length = readlink("/proc/thread-self/exe", link, sizeof link - 1);
  link[length > 0 ? length : 0] = '\0';
  const char* path = link;
  if (length <= 0) path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (path == nullptr) path = "";
  const char* slash = strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  std::size_t size = strlen(name);
  if (path == link && size > strlen(kDeleted) && access(link, F_OK) != 0 &&
      strcmp(name + size - strlen(kDeleted), kDeleted) == 0) {
    size -= strlen(kDeleted);
  }
  snprintf(executable, capacity, "%.*s", static_cast<int>(size < 60 ? size : 60), name);
}

}  // namespace

void read_process_facts(ProcessFacts* facts) noexcept {
  read_command(facts->command, sizeof facts->command);
  read_executable(facts->executable, sizeof facts->executable);
  memset(facts->host, 0, sizeof facts->host);
  if (gethostname(facts->host, sizeof facts->host - 1) != 0) strcpy(facts->host, "?");
}

}  // namespace profiler
