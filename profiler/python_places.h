// SPDX-License-Identifier: Apache-2.0
// The places of Python calls, each kept once: file, function and line of a call that came before
// are found again without looking at the interpreter. Tables of fixed size; entries stay, as code
// objects do not. Any thread; no lock, no wait, no allocation; errno kept.
#pragma once

#include "profiler/python_frame.h"

namespace profiler {

// Of the call that this thread is in. Null: no Python, not to be read, or no room.
const PythonPlace* python_place_of(const PythonCall& call) noexcept;
// Whether places have found no room.
bool python_places_are_full() noexcept;

}  // namespace profiler
