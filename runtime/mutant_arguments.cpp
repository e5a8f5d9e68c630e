// SPDX-License-Identifier: Apache-2.0
// Only in a build with -Dmutants=true: arguments that are read when it is too late. Apart from
// mutants.cpp, so that a test may link that one without the queues.
#include "runtime/mutants.h"
#include "runtime/sequence.h"

namespace runtime {
namespace {

// Of the launch that was noted last, whatever its stream.
struct Noted {
  const Sequence* sequence;
  unsigned index;
  void** kernel_params;
};
constinit Noted g_noted{};

}  // namespace

void note_arguments(const Sequence* sequence, unsigned index, void** kernel_params) noexcept {
  g_noted = {sequence, index, kernel_params};
}

void read_arguments_again(Sequence* sequence) noexcept {
  if (g_noted.sequence != sequence || g_noted.index >= sequence->count) return;
  const LaunchSlot& slot = sequence->slots[g_noted.index];
  if (slot.info->update_arguments(sequence->arguments_of(slot), g_noted.kernel_params)) {
    sequence->mark_dirty(g_noted.index);
  }
}

}  // namespace runtime
