// SPDX-License-Identifier: Apache-2.0
// What the loader knows of the object (executable, library) that holds an address, from its own
// index, which takes no lock (glibc 2.35 and later): a thread of ours that held the loader's lock
// while the program forks would leave it locked in the child for ever. Any thread, signal handlers
// included.
#pragma once

#include <cstdint>

namespace profiler {

struct LoadedObject {
  std::uintptr_t start, end;
  const void* map;        // its `struct link_map`, which may be gone by now
  std::uintptr_t unwind;  // .eh_frame_hdr; 0: none
};

// Looks for the index; not in a signal handler. False: there is none.
bool start_loaded_objects() noexcept;
bool has_loaded_objects() noexcept;
// False: no object holds the address.
bool find_loaded_object(std::uintptr_t address, LoadedObject* object) noexcept;

}  // namespace profiler
