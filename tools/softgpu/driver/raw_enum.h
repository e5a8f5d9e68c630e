// SPDX-License-Identifier: Apache-2.0
// Reads enumerations that come from a client, which may hold any number: loading such a value as
// its enumeration type is undefined. Any thread.
#pragma once

#include <cstring>

namespace softgpu {

// Taken by reference, so that no caller loads the value either.
template <class Enum>
int raw(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

}  // namespace softgpu
