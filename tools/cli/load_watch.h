// SPDX-License-Identifier: Apache-2.0
// Whether a loader opened the library while the watch stood: inotify on the file, so that neither
// the program nor the library takes part. Another process that loads it at the time counts too.
#pragma once

#include <string>

namespace cli {

class LoadWatch {
 public:
  explicit LoadWatch(const std::string& library);
  LoadWatch(const LoadWatch&) = delete;
  LoadWatch& operator=(const LoadWatch&) = delete;
  ~LoadWatch();

  // True when nobody opened it; false when somebody did or that cannot be told.
  bool was_ignored() const;

 private:
  int events_;
};

}  // namespace cli
