// SPDX-License-Identifier: Apache-2.0
// Reference-counted client objects that graphs keep alive. Driver lock held, except in the
// destructor callbacks, which run on one thread of their own without it.
#pragma once

#include <cstdint>

#include "tools/softgpu/driver/state.h"

namespace softgpu {

struct UserObject {
  CUuserObject handle = nullptr;
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  std::uint64_t references = 0;         // in all
  std::uint64_t caller_references = 0;  // of these, the client's own
};

using UserObjectTable = ObjectTable<UserObject, CUuserObject, HandleKind::kUserObject>;
UserObjectTable& user_objects();

// Drops references; with the last one the destructor is queued and the handle dies.
void release_references(UserObject& object, std::uint64_t count);

}  // namespace softgpu
