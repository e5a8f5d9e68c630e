// SPDX-License-Identifier: Apache-2.0
// A program that changes, before or after its first CUDA call, what its settings were read from:
// environment before|after WHAT. Prints the cell's value.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "tests/programs/host/tiny.h"

extern char** environ;

namespace {

struct Area {
  char* begin;
  char* end;
};

// Arguments and environment lie one behind the other.
Area title_area(int count, char** arguments) {
  Area area{arguments[0], arguments[count - 1] + std::strlen(arguments[count - 1]) + 1};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (*entry == area.end) area.end = *entry + std::strlen(*entry) + 1;
  }
  return area;
}

void move_environment() {
  int count = 0;
  while (environ[count] != nullptr) ++count;
  char** moved = static_cast<char**>(std::malloc((count + 1) * sizeof *moved));
  for (int i = 0; i < count; ++i) moved[i] = strdup(environ[i]);
  moved[count] = nullptr;
  environ = moved;
}

void write_title(Area area) {
  std::memset(area.begin, 0, area.end - area.begin);
  std::snprintf(area.begin, area.end - area.begin, "engine: worker 0 (idle) serving %0900d", 7);
}

// Another thread that never stops changing the environment; the array and the texts move.
void change_for_ever() {
  std::thread([] {
    char name[32];
    for (int i = 0;; ++i) {
      std::snprintf(name, sizeof name, "V%07d", i % 3000);
      if (i % 3000 == 0) clearenv();
      setenv(name, "x", 1);
    }
  }).detach();
}

void change(std::string_view what, int count, char** arguments) {
  const Area area = title_area(count, arguments);
  if (what == "title") {
    move_environment();
    write_title(area);
  } else if (what == "smash") {
    write_title(area);
  } else if (what == "clear") {
    clearenv();
  } else if (what == "set") {
    setenv("CAJETA_XPU_REPORT", "set.json", 1);
  } else if (what == "chdir") {
    if (chdir("/") != 0) std::_Exit(91);
  } else if (what == "rename") {
    // The folder that it was started in gets another name.
    char folder[4096];
    if (getcwd(folder, sizeof folder) == nullptr) std::_Exit(92);
    if (rename(folder, (std::string(folder) + ".moved").c_str()) != 0) std::_Exit(93);
  } else if (what == "chroot") {
    if (mkdir("root", 0700) != 0 || chroot("root") != 0 || chdir("/") != 0) std::_Exit(77);
  } else if (what == "race") {
    change_for_ever();
  } else if (what == "snapshots") {
    // One thread: what would read the environment is a thread of the library.
    for (int i = 0; i < 40000; ++i) {
      char name[32];
      std::snprintf(name, sizeof name, "V%07d", i);
      if (i % 3000 == 0) clearenv();
      setenv(name, "x", 1);
      if (i % 4 == 0) raise(SIGURG);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::string_view when = arguments[1];
  const std::string what = arguments[2];
  if (when == "before") change(what, count, arguments);
  tiny::start();
  tiny::bump(1);
  if (when == "after") change(what, count, arguments);
  for (int i = 0; i < 100; ++i) tiny::bump(1);
  std::printf("%u\n", tiny::cell());
}
