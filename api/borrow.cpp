// SPDX-License-Identifier: Apache-2.0
#include "api/borrow.h"

namespace api {

using runtime::QueueGuard;

Mark mark_of(const Stream& stream) noexcept {
  return {stream.line->handle, stream.line->launched.load()};
}

void finish(const Mark& mark) noexcept {
  Stream* stream = g_streams.find(mark.stream);
  if (stream == nullptr) return;
  std::uint64_t finished = stream->finished.load();
  while (finished < mark.ticket && !stream->finished.compare_exchange_weak(finished, mark.ticket)) {
  }
}

void finish_stream(Stream& stream, const Mark& mark) noexcept {
  finish(mark);
  Cover covers[Stream::kCovers];
  {
    QueueGuard guard(stream.line->covers_lock);
    for (std::size_t i = 0; i < Stream::kCovers; ++i) covers[i] = stream.line->covers[i];
  }
  for (const Cover& covered : covers) {
    if (covered.since <= mark.ticket) finish(covered.mark);
  }
}

void cover(Stream& stream, const Mark& mark) noexcept {
  if (unfinished(mark) == nullptr) return;
  const std::uint64_t since = stream.line->launched.fetch_add(1) + 1;
  QueueGuard guard(stream.line->covers_lock);
  Cover* place = nullptr;
  for (Cover& known : stream.line->covers) {
    if (known.mark.stream == mark.stream) {
      if (known.mark.ticket < mark.ticket) known = {mark, since};
      return;
    }
    if (unfinished(known.mark) == nullptr) place = &known;
  }
  if (place != nullptr) *place = {mark, since};
}

Stream* unfinished(const Mark& mark) noexcept {
  Stream* stream = g_streams.find(mark.stream);
  return stream != nullptr && stream->finished.load() < mark.ticket ? stream : nullptr;
}

void borrow(Buffer& buffer, const Stream& stream, std::uint64_t ticket) noexcept {
  const Mark mark{stream.line->handle, ticket};
  QueueGuard guard(buffer.lock);
  Mark* place = nullptr;
  for (Mark& known : buffer.borrowers) {
    if (known.stream == mark.stream) {
      if (known.ticket < ticket) known.ticket = ticket;
      return;
    }
    if (unfinished(known) == nullptr) place = &known;
  }
  if (place != nullptr) {
    *place = mark;
    return;
  }
  buffer.is_widely_borrowed = true;
  buffer.wide_since = buffer.device->syncs_begun.load();
}

bool is_borrowed(Buffer& buffer) noexcept {
  QueueGuard guard(buffer.lock);
  if (buffer.is_widely_borrowed && buffer.device->syncs_done.load() <= buffer.wide_since) {
    return true;
  }
  buffer.is_widely_borrowed = false;
  for (const Mark& mark : buffer.borrowers) {
    if (unfinished(mark) != nullptr) return true;
  }
  return false;
}

}  // namespace api
