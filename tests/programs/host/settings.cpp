// SPDX-License-Identifier: Apache-2.0
// Programs that do as they please with their arguments, their environment and their folder once
// CUDA has started. What: "title" writes a title over arguments and environment, as setproctitle
// does; "wipe" fills the variables with rubbish where they lie; "clear" and "unset" empty the
// environment; "folder" goes to /; "grow" sets variables all the time, over several reports;
// "leader" ends its first thread; "before" does as "title" before CUDA starts.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/programs/host/tiny.h"

namespace {

char* g_start;
char* g_end;

void find_area(int count, char** argv) {
  g_start = argv[0];
  g_end = argv[count - 1] + std::strlen(argv[count - 1]) + 1;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (*variable == g_end) g_end += std::strlen(*variable) + 1;
  }
}

void write_title() {
  std::size_t count = 0;
  while (environ[count] != nullptr) ++count;
  auto** copy = static_cast<char**>(std::malloc((count + 1) * sizeof(char*)));
  for (std::size_t i = 0; i < count; ++i) copy[i] = strdup(environ[i]);
  copy[count] = nullptr;
  environ = copy;
  std::memset(g_start, 0, g_end - g_start);
  std::snprintf(g_start, g_end - g_start, "engine: worker 0/1 (idle) %0200d", 7);
}

void wipe() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::memset(*variable, '#', std::strlen(*variable));
  }
}

void unset_all() {
  for (const char* name :
       {"CAJETA_XPU_REPORT", "CAJETA_PROFILER_OUT", "RANK", "CAJETA_XPU_DEFER"}) {
    unsetenv(name);
  }
}

// With the library's profile each signal is one more report, written meanwhile by its thread.
void grow() {
  char name[16];
  struct sigaction action {};
  sigaction(SIGUSR1, nullptr, &action);
  const bool has_reports = action.sa_handler != SIG_DFL;
  for (int i = 0; i < 30000; ++i) {
    std::snprintf(name, sizeof name, "V%07d", i);
    setenv(name, "x", 1);
    if (i % 3000 == 0) clearenv();
    if (i % 4 == 0 && has_reports) raise(SIGUSR1);
  }
}

void finish() {
  for (unsigned i = 0; i < 100; ++i) tiny::bump(1);
  std::printf("%u\n", tiny::cell());
}

void* finish_without_leader(void* leader) {
  pthread_join(*static_cast<pthread_t*>(leader), nullptr);
  CHECK(cuCtxSetCurrent(tiny::g_context));
  finish();
  std::exit(0);
}

void leave_to_another() {
  static pthread_t self = pthread_self();
  pthread_t thread;
  pthread_create(&thread, nullptr, finish_without_leader, &self);
  pthread_exit(nullptr);
}

}  // namespace

int main(int count, char** argv) {
  const std::string what = argv[1];
  find_area(count, argv);
  if (what == "before") write_title();
  tiny::start();
  tiny::bump(1);
  if (what == "title") write_title();
  if (what == "wipe") wipe();
  if (what == "clear") clearenv();
  if (what == "unset") unset_all();
  if (what == "folder" && chdir("/") != 0) return 1;
  if (what == "grow") grow();
  if (what == "leader") leave_to_another();
  finish();
}
