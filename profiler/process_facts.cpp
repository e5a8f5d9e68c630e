// SPDX-License-Identifier: Apache-2.0
#include "profiler/process_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace profiler {

void blank_controls(char* text) noexcept {
  for (; *text != '\0'; ++text) {
    if (static_cast<unsigned char>(*text) < ' ' || *text == 0x7f) *text = ' ';
  }
}

void read_process_facts(ProcessFacts* facts) noexcept {
  char* command = facts->command;
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, command, sizeof facts->command - 1);
  if (file >= 0) close(file);
  if (length < 0) length = 0;
  command[length] = '\0';
  const char* slash = strrchr(command, '/');  // within argument 0: it ends at the first zero byte
  snprintf(facts->executable, sizeof facts->executable, "%.60s",
           slash != nullptr ? slash + 1 : command);
  for (ssize_t i = 0; i + 1 < length; ++i) {
    if (command[i] == '\0') command[i] = ' ';
  }
  blank_controls(command);
  memset(facts->host, 0, sizeof facts->host);
  if (gethostname(facts->host, sizeof facts->host - 1) != 0) strcpy(facts->host, "?");
}

}  // namespace profiler
