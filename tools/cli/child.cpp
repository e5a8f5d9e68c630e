// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/cli/failure.h"

extern "C" char** environ;

namespace cli {
namespace {

// argv and envp over strings that live as long.
class Call {
 public:
  Call(const std::vector<std::string>& program, const Environment& changes) {
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
      const std::string text = *variable;
      const std::string name = text.substr(0, text.find('='));
      const bool is_changed = std::any_of(changes.begin(), changes.end(),
                                          [&](const auto& one) { return one.first == name; });
      if (!is_changed) strings_.push_back(text);
    }
    for (const auto& [name, value] : changes) strings_.push_back(name + "=" + value);
    for (std::string& text : strings_) environment_.push_back(text.data());
    environment_.push_back(nullptr);
    program_ = program;
    for (std::string& text : program_) arguments_.push_back(text.data());
    arguments_.push_back(nullptr);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Returns errno when it could not.
  int execute() const noexcept {
    execvpe(arguments_[0], arguments_.data(), environment_.data());
    return errno;
  }

 private:
  std::vector<std::string> strings_;
  std::vector<std::string> program_;
  std::vector<char*> environment_;
  std::vector<char*> arguments_;
};

[[noreturn]] void refuse(const std::string& program, int error) {
  throw Failure(program + ": " + std::strerror(error),
                error == ENOENT ? kNotFound : kCannotExecute);
}

// What can be passed on. Stops and continues act on us as on the child; faults are our own.
sigset_t forwarded_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS, SIGFPE,
                        SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE}) {
    sigdelset(&signals, own);
  }
  return signals;
}

struct Signals {
  sigset_t mask;
  struct sigaction on_child;
};

// Until the child is waited for. Ignored SIGCHLD, which can be inherited, would reap it for us.
Signals hold_signals() {
  Signals before;
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &before.on_child);
  sigset_t held = forwarded_signals();
  sigaddset(&held, SIGCHLD);
  sigprocmask(SIG_BLOCK, &held, &before.mask);
  return before;
}

void restore_signals(const Signals& before) {
  sigaction(SIGCHLD, &before.on_child, nullptr);
  sigprocmask(SIG_SETMASK, &before.mask, nullptr);
}

[[noreturn]] void become_program(const Call& call, const Signals& before, pid_t parent,
                                 int failures) {
  restore_signals(before);
  // A batch system that kills us means the program. Without effect if we are gone already.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) raise(SIGKILL);
  const int error = call.execute();
  [[maybe_unused]] const ssize_t written = write(failures, &error, sizeof error);
  _exit(kLauncherFailed);
}

int wait_and_forward(pid_t child) {
  sigset_t awaited = forwarded_signals();
  sigaddset(&awaited, SIGCHLD);
  for (;;) {
    siginfo_t info = {};
    const int signal = sigwaitinfo(&awaited, &info);
    if (signal < 0) continue;  // EINTR: stopped and continued
    if (signal != SIGCHLD) {
      // The terminal sends its signals to the child too.
      if (info.si_code <= 0) kill(child, signal);
      continue;
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
  }
}

}  // namespace

void replace_process(const std::vector<std::string>& program, const Environment& changes) {
  const Call call(program, changes);
  refuse(program[0], call.execute());
}

int run_child(const std::vector<std::string>& program, const Environment& changes) {
  const Call call(program, changes);
  int failures[2];
  if (pipe2(failures, O_CLOEXEC) != 0) {
    throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno), kLauncherFailed);
  }
  fflush(nullptr);
  const Signals before = hold_signals();
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) become_program(call, before, self, failures[1]);
  const int fork_error = errno;
  close(failures[1]);
  if (child < 0) {
    close(failures[0]);
    throw Failure(std::string("cannot fork: ") + std::strerror(fork_error), kLauncherFailed);
  }
  int error = 0;
  // Ends with the exec, which closes the other side.
  const bool has_failed = read(failures[0], &error, sizeof error) == sizeof error;
  close(failures[0]);
  const int status = wait_and_forward(child);
  if (has_failed) refuse(program[0], error);
  return status;
}

void end_like(int wait_status) {
  fflush(nullptr);
  if (!WIFSIGNALED(wait_status)) exit(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  // The core that matters is the program's.
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  exit(128 + signal);
}

}  // namespace cli
