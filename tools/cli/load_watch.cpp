// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/load_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>

namespace cli {

LoadWatch::LoadWatch(const std::string& library)
    : events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (events_ < 0 || inotify_add_watch(events_, library.c_str(), IN_OPEN) >= 0) return;
  close(events_);
  events_ = -1;
}

LoadWatch::~LoadWatch() {
  if (events_ >= 0) close(events_);
}

bool LoadWatch::was_ignored() const {
  if (events_ < 0) return false;
  alignas(inotify_event) char buffer[sizeof(inotify_event) + 256];
  return read(events_, buffer, sizeof buffer) < 0 && errno == EAGAIN;
}

}  // namespace cli
