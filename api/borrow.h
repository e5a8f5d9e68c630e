// SPDX-License-Identifier: Apache-2.0
// Which launches still borrow which buffers. Each launch takes a ticket of its stream; a buffer
// keeps the last ticket of up to four streams, and is borrowed while one of them is newer than
// what a synchronisation of that stream has waited for. Any thread; allocates nothing; holds a lock
// for a few instructions only.
#pragma once

#include "api/objects.h"

namespace api {

// All work given to the stream so far.
Mark mark_of(const Stream& stream) noexcept;
// A synchronisation has waited for what the mark stands for.
void finish(const Mark& mark) noexcept;
// The host has waited for the stream up to the mark, and so for what the stream had waited for.
void finish_stream(Stream& stream, const Mark& mark) noexcept;
// The stream waits for the mark from here on.
void cover(Stream& stream, const Mark& mark) noexcept;

// A launch with this ticket uses the buffer.
void borrow(Buffer& buffer, const Stream& stream, std::uint64_t ticket) noexcept;
bool is_borrowed(Buffer& buffer) noexcept;
// Calls `visit(stream)` for each stream that borrows the buffer, as far as they are known one by
// one. Without the buffer's lock.
template <typename Visit>
void for_each_borrower(Buffer& buffer, Visit visit) noexcept;

// A mark that no synchronisation has waited for yet; null: none.
Stream* unfinished(const Mark& mark) noexcept;

template <typename Visit>
void for_each_borrower(Buffer& buffer, Visit visit) noexcept {
  Mark borrowers[Buffer::kBorrowers];
  {
    runtime::QueueGuard guard(buffer.lock);
    for (std::size_t i = 0; i < Buffer::kBorrowers; ++i) borrowers[i] = buffer.borrowers[i];
  }
  for (const Mark& mark : borrowers) {
    if (Stream* stream = unfinished(mark)) visit(*stream);
  }
}

}  // namespace api
