// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/driver_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cli {
namespace {

// A first cuInit takes seconds on machines with many devices.
constexpr int kPatienceMs = 60'000;

template <typename Function>
Function find(void* driver, const char* name) {
  return reinterpret_cast<Function>(dlsym(driver, name));
}

void ask(DriverAnswer* answer) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) {
    const char* problem = dlerror();
    std::snprintf(answer->problem, sizeof answer->problem, "%s", problem);
    return;
  }
  link_map* map = nullptr;
  if (dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0) {
    std::snprintf(answer->path, sizeof answer->path, "%s", map->l_name);
  }
  const auto get_version = find<int (*)(int*)>(driver, "cuDriverGetVersion");
  if (get_version != nullptr) get_version(&answer->version);
  const auto init = find<int (*)(unsigned)>(driver, "cuInit");
  const auto count = find<int (*)(int*)>(driver, "cuDeviceGetCount");
  const auto name = find<int (*)(char*, int, int)>(driver, "cuDeviceGetName");
  if (init == nullptr || count == nullptr || name == nullptr) {
    std::snprintf(answer->problem, sizeof answer->problem, "it lacks cuInit or cuDeviceGetCount");
    return;
  }
  answer->init_result = init(0);
  if (answer->init_result != 0 || count(&answer->devices) != 0 || answer->devices == 0) return;
  name(answer->device, sizeof answer->device, 0);
}

[[noreturn]] void ask_and_leave(int to) {
  // What the driver prints is not ours to show.
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  unsetenv("LD_PRELOAD");
  DriverAnswer answer;
  ask(&answer);
  [[maybe_unused]] const ssize_t written = write(to, &answer, sizeof answer);
  _exit(0);
}

}  // namespace

bool probe_driver(DriverAnswer* answer, std::string* died) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return *died = std::strerror(errno), false;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) ask_and_leave(ends[1]);
  close(ends[1]);
  pollfd ready = {ends[0], POLLIN, 0};
  const bool is_ready = child > 0 && poll(&ready, 1, kPatienceMs) > 0;
  // Smaller than PIPE_BUF: whole or not at all.
  static_assert(sizeof(DriverAnswer) <= 4096);
  const bool is_whole = is_ready && read(ends[0], answer, sizeof *answer) == sizeof *answer;
  close(ends[0]);
  if (child < 0) return *died = "fork failed", false;
  if (!is_ready) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (is_whole) return true;
  *died = !is_ready             ? "cuInit does not return"
          : WIFSIGNALED(status) ? std::string("it crashes: ") + strsignal(WTERMSIG(status))
                                : "it ends the process";
  return false;
}

}  // namespace cli
