// SPDX-License-Identifier: Apache-2.0
// One way of living and dying per argument, for door_test.py: what the exit report says of it. Each
// but `none` makes exactly three calls of cuCtxSynchronize in the process that counts.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using Init = CUresult (*)(unsigned int);
using Synchronize = CUresult (*)();

Synchronize g_synchronize;

bool call(int times) {
  for (int time = 0; time < times; ++time) {
    errno = EDOM;
    if (g_synchronize() != CUDA_SUCCESS || errno != EDOM) return false;
  }
  return true;
}

int child_status(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int fork_child() {
  const pid_t child = fork();
  if (child == 0) exit(call(5) ? 0 : 1);
  return child_status(child) == 0 && call(1) ? 0 : 1;
}

int vfork_child() {
  const pid_t child = vfork();
  if (child == 0) _exit(7);
  return child_status(child) == 7 && call(1) ? 0 : 1;
}

int leave_from_thread() {
  std::thread([] { exit(call(1) ? 0 : 1); }).join();
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const char* how = count == 2 ? arguments[1] : "";
  if (std::strcmp(how, "none") == 0) return dlsym(RTLD_DEFAULT, "getenv") != nullptr ? 0 : 1;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 1;
  auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  g_synchronize = reinterpret_cast<Synchronize>(dlsym(driver, "cuCtxSynchronize"));
  if (init == nullptr || g_synchronize == nullptr) return 1;
  if (std::strcmp(how, "unseen_init") == 0) return call(3) ? 0 : 1;
  if (init(0) != CUDA_SUCCESS || !call(2)) return 1;
  if (std::strcmp(how, "fork") == 0) return fork_child();
  if (std::strcmp(how, "vfork") == 0) return vfork_child();
  if (std::strcmp(how, "thread") == 0) return leave_from_thread();
  if (!call(1)) return 1;
  if (std::strcmp(how, "_exit") == 0) _exit(0);
  if (std::strcmp(how, "_Exit") == 0) _Exit(0);
  return std::strcmp(how, "return") == 0 ? 0 : 2;
}
