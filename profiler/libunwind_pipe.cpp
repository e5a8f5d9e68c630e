// SPDX-License-Identifier: Apache-2.0
#include "profiler/libunwind_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace profiler {
namespace {

// -1: it has none that we know of, as where another thread opened a file at the same moment.
int g_ends[2] = {-1, -1};
int g_expected[2] = {-1, -1};
ino_t g_inode = 0;

bool is_pipe(int file, ino_t inode) noexcept {
  struct stat status {};
  return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_ino == inode;
}

}  // namespace

// The two numbers that a pipe gets if it is opened next.
void expect_libunwind_pipe() noexcept {
  for (int& end : g_expected) end = open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const int end : g_expected) {
    if (end >= 0) close(end);
  }
}

void find_libunwind_pipe() noexcept {
  struct stat status {};
  if (g_expected[0] < 0 || g_expected[1] < 0 || fstat(g_expected[0], &status) != 0) return;
  g_inode = status.st_ino;
  if (!is_pipe(g_expected[0], g_inode) || !is_pipe(g_expected[1], g_inode)) return;
  g_ends[0] = g_expected[0];
  g_ends[1] = g_expected[1];
}

bool is_libunwind_pipe_gone() noexcept {
  return g_ends[0] >= 0 && (!is_pipe(g_ends[0], g_inode) || !is_pipe(g_ends[1], g_inode));
}

}  // namespace profiler
