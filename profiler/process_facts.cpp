// SPDX-License-Identifier: Apache-2.0
#include "profiler/process_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "runtime/process_start.h"

namespace profiler {
namespace {

ProcessFacts g_facts;
constinit std::atomic<bool> g_are_taken{false};

// Of a library whose constructor has not run.
ssize_t ask_for_command(char* command, std::size_t capacity) noexcept {
  const int file = open("/proc/thread-self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, command, capacity);
  if (file >= 0) close(file);
  return length;
}

void ask(ProcessFacts* facts) noexcept {
  const runtime::ProcessStart& start = runtime::process_start();
  char* command = facts->command;
  constexpr std::size_t kCapacity = sizeof facts->command - 1;
  auto length = static_cast<ssize_t>(std::min(start.command_size, kCapacity));
  memcpy(command, start.command, static_cast<std::size_t>(length));
  if (length == 0) length = ask_for_command(command, kCapacity);
  if (length < 0) length = 0;
  command[length] = '\0';
  const char* slash = strrchr(command, '/');  // within argument 0: it ends at the first zero byte
  snprintf(facts->executable, sizeof facts->executable, "%.60s",
           start.program[0] != '\0' ? start.program
           : slash != nullptr       ? slash + 1
                                    : command);
  for (ssize_t i = 0; i + 1 < length; ++i) {
    if (command[i] == '\0') command[i] = ' ';
  }
  blank_controls(command);
  memset(facts->host, 0, sizeof facts->host);
  if (gethostname(facts->host, sizeof facts->host - 1) != 0) strcpy(facts->host, "?");
}

}  // namespace

void blank_controls(char* text) noexcept {
  for (; *text != '\0'; ++text) {
    if (static_cast<unsigned char>(*text) < ' ' || *text == 0x7f) *text = ' ';
  }
}

void take_process_facts() noexcept {
  ask(&g_facts);
  g_are_taken.store(true, std::memory_order_release);
}

void read_process_facts(ProcessFacts* facts) noexcept {
  if (g_are_taken.load(std::memory_order_acquire)) {
    *facts = g_facts;
  } else {
    ask(facts);
  }
}

}  // namespace profiler
