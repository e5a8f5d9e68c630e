// SPDX-License-Identifier: Apache-2.0
// A C++ library that a host without C++ loads late: it throws, across its own frames and across
// threads, and must find its own unwinder and run-time types.
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

struct Unwound {
  explicit Unwound(int& count) : count_(count) {}
  ~Unwound() { ++count_; }
  Unwound(const Unwound&) = delete;
  Unwound& operator=(const Unwound&) = delete;

 private:
  int& count_;
};

[[gnu::noinline]] void fail(int depth, int& unwound) {
  const Unwound guard(unwound);
  if (depth == 0) throw std::out_of_range("at the bottom");
  fail(depth - 1, unwound);
}

int caught(int depth) {
  int unwound = 0;
  try {
    fail(depth, unwound);
  } catch (const std::logic_error& error) {
    return std::string(error.what()) == "at the bottom" ? unwound : -1;
  }
  return -2;
}

}  // namespace

// 2 * (depth + 1) when all went well.
extern "C" [[gnu::visibility("default")]] int throw_and_catch(int depth) {
  int sum = caught(depth);
  std::exception_ptr carried;
  std::thread([&] {
    sum += caught(depth);
    try {
      throw std::runtime_error("carried");
    } catch (...) {
      carried = std::current_exception();
    }
  }).join();
  try {
    std::rethrow_exception(carried);
  } catch (const std::runtime_error&) {
    return sum;
  }
}
