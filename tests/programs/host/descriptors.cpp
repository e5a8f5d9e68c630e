// SPDX-License-Identifier: Apache-2.0
// Programs that close descriptors they do not know and open files of their own under the numbers:
// KIND PREFIX, where each data file is PREFIX.N. The files must hold what was written here.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/programs/host/tiny.h"

namespace {

const char* g_prefix;

int open_data(int number) {
  const std::string path = std::string(g_prefix) + "." + std::to_string(number);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0) std::_Exit(91);
  dprintf(file, "data %d\n", number);
  return file;
}

int limit_of_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(limit.rlim_cur);
}

void close_unknown() {
  for (int file = 3; file < limit_of_files(); ++file) close(file);
}

void work() {
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 50; ++j) tiny::bump(1);
    tiny::cell();
  }
}

// Six files where descriptors were closed, with work before and behind.
void write_six() {
  std::vector<int> files;
  for (int i = 0; i < 6; ++i) files.push_back(open_data(i));
  work();
  for (const int file : files) dprintf(file, "result %u\n", tiny::cell());
}

// A table of driver entries from before, as servers have it.
void look_up_then_close() {
  void* init = nullptr;
  CUdriverProcAddressQueryResult found;
  CHECK(cuGetProcAddress("cuInit", &init, 12000, 0, &found));
  close_unknown();
  CHECK(reinterpret_cast<CUresult (*)(unsigned)>(init)(0));
  tiny::start();
  write_six();
}

void start_then_close() {
  tiny::start();
  work();
  close_unknown();
  write_six();
}

// Every number that there is leads to a file of the program.
void take_every_number() {
  tiny::start();
  work();
  const int file = open_data(0);
  for (int number = 3; number < limit_of_files(); ++number) {
    if (number != file) dup2(file, number);
  }
  work();
  dprintf(file, "result %u\n", tiny::cell());
}

// Called by code that has neither unwind tables nor a frame pointer, as compilers at run time make
// it: push rbx; mov rbx, rdi; call rbx; pop rbx; ret.
void work_under_unknown_code() {
#ifdef __x86_64__
  static const unsigned char kCode[] = {0x53, 0x48, 0x89, 0xfb, 0xff, 0xd3, 0x5b, 0xc3};
  void* code =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) std::_Exit(94);
  std::memcpy(code, kCode, sizeof kCode);
  reinterpret_cast<void (*)(void (*)())>(code)(work);
#else
  work();
#endif
}

// At the numbers that libunwind's pipe had: one to read, one to write.
void unwind_unknown_code() {
  tiny::start();
  work_under_unknown_code();
  const int first = open_data(0), second = open_data(1);
  close_unknown();
  const int again = open_data(0);
  lseek(again, 0, SEEK_SET);
  const int other = open_data(1);
  work_under_unknown_code();
  dprintf(other, "numbers of before: %s\n", first >= 0 && second >= 0 ? "yes" : "no");
  std::printf("%ld %ld\n", static_cast<long>(lseek(again, 0, SEEK_CUR)),
              static_cast<long>(lseek(other, 0, SEEK_CUR)));
}

void standard_error_is_data() {
  close(STDERR_FILENO);
  const int file = open_data(0);
  tiny::start();
  work();
  dprintf(file, "%d: result %u\n", file, tiny::cell());
}

// The parent forgets nothing, the child closes all of it and goes on without CUDA.
void fork_server() {
  tiny::start();
  work();
  for (int i = 0; i < 3; ++i) {
    if (fork() != 0) continue;
    close_unknown();
    const int file = open_data(i);
    dprintf(file, "child\n");
    exit(0);
  }
  work();
  std::printf("%u\n", tiny::cell());
}

void become_a_daemon() {
  if (fork() != 0) _exit(0);
  setsid();
  if (chdir("/") != 0) std::_Exit(92);
  for (int file = 0; file < limit_of_files(); ++file) close(file);
  for (int i = 0; i < 3; ++i) open("/dev/null", O_RDWR);
  tiny::start();
  write_six();
  open_data(6);  // all is written
}

}  // namespace

int main(int, char** arguments) {
  const char* kind = arguments[1];
  g_prefix = arguments[2];
  const struct {
    const char* name;
    void (*run)();
  } kinds[] = {{"looked_up", look_up_then_close}, {"started", start_then_close},
               {"every", take_every_number},      {"stderr", standard_error_is_data},
               {"fork_server", fork_server},      {"daemon", become_a_daemon},
               {"unwound", unwind_unknown_code}};
  for (const auto& each : kinds) {
    if (std::strcmp(each.name, kind) == 0) each.run();
  }
}
