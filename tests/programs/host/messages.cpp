// SPDX-License-Identifier: Apache-2.0
// A little work, and what a program may have done to standard error before its first CUDA call:
//   plain              nothing
//   reuse MODE FILE    closes it and opens FILE, which so becomes descriptor 2, with r, w or a in
//                      MODE as O_RDWR, O_WRONLY or O_APPEND; its output goes there
//   replace FILE       puts FILE over it (dup2), as a program does that logs to a file
//   close FILE         closes what it does not know, after its first calls, and opens FILE, in
//   which
//                      its output is; then it looks driver entries up
//   small              makes the first call on a thread with the smallest stack
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>

#include "tests/programs/host/tiny.h"

namespace {

void reuse(const char* mode, const char* path) {
  int flags = O_CREAT | O_TRUNC;
  flags |= *mode == 'r' ? O_RDWR : *mode == 'w' ? O_WRONLY : O_WRONLY | O_APPEND;
  close(STDERR_FILENO);
  if (open(path, flags, 0644) != STDERR_FILENO) std::_Exit(91);
  if (write(STDERR_FILENO, "header\n", 7) != 7) std::_Exit(92);
}

void replace(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (dup2(file, STDERR_FILENO) != STDERR_FILENO) std::_Exit(91);
  close(file);
}

void close_others(const char* path) {
  (void)dlsym(RTLD_DEFAULT, "cuInit");
  for (int file = 3; file < 1024; ++file) close(file);
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int other = file + 1; other < 30; ++other) dup2(file, other);
  for (const char* name : {"cuMemAlloc_v2", "cuLaunchKernel", "cuNothing"}) {
    (void)dlsym(RTLD_DEFAULT, name);
    void* entry = nullptr;
    CUdriverProcAddressQueryResult answer;
    (void)cuGetProcAddress(name, &entry, 12000, 0, &answer);
  }
  dprintf(file, "descriptor %d\n", file);
}

void* first_call(void*) {
  int version;
  CHECK(cuDriverGetVersion(&version));
  return nullptr;
}

void call_on_small_stack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, first_call, nullptr) != 0) std::_Exit(93);
  pthread_join(thread, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  const char* const what = count > 1 ? arguments[1] : "plain";
  if (std::strcmp(what, "reuse") == 0) reuse(arguments[2], arguments[3]);
  if (std::strcmp(what, "replace") == 0) replace(arguments[2]);
  if (std::strcmp(what, "small") == 0) call_on_small_stack();
  tiny::start();
  if (std::strcmp(what, "close") == 0) close_others(arguments[2]);
  for (int i = 0; i < 100; ++i) tiny::bump(1);
  std::printf("%u\n", tiny::cell());
  if (std::strcmp(what, "reuse") == 0) dprintf(STDERR_FILENO, "result %u\n", tiny::cell());
}
