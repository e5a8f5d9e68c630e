// SPDX-License-Identifier: Apache-2.0
// How an entry of the public interface fails: a code, and one line for the thread that called.
#pragma once

#include <cerrno>

#include "cajeta/xpu.h"

namespace api {

// Keeps the line and returns the code.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char* format, ...) noexcept;

// The handle is none of `kind`, or ended.
int fail_handle(const char* call, const char* kind) noexcept;

// What the driver said of `call`, unchanged.
int told(int result, const char* call) noexcept;

// An entry leaves errno as it was.
class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept : value_(errno) {}
  ~ErrnoKeeper() { errno = value_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int value_;
};

}  // namespace api
