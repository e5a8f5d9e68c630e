// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_file.h"

#include <cerrno>
#include <cstring>

namespace profiler {

bool TraceFile::start(TraceOutput* output, std::uint64_t most_bytes) noexcept {
  output_ = output;
  most_bytes_ = most_bytes;
  return buffer_.map();
}

bool TraceFile::append(const void* packets, std::size_t size) noexcept {
  if (bytes_ + reserved_ + size > most_bytes_) is_full_ = true;
  if (is_closed()) {
    bytes_dropped_ += size;
    return false;
  }
  put(static_cast<const char*>(packets), size);
  return true;
}

bool TraceFile::append_reserved(const void* packets, std::size_t size) noexcept {
  if (error_ != 0 || bytes_ + size > most_bytes_) {
    bytes_dropped_ += size;
    return false;
  }
  reserved_ -= size < reserved_ ? size : reserved_;
  put(static_cast<const char*>(packets), size);
  return true;
}

void TraceFile::put(const char* bytes, std::size_t size) noexcept {
  bytes_ += size;
  while (size > 0) {
    if (buffered_ == kBufferBytes) send();
    const std::size_t room = kBufferBytes - buffered_;
    const std::size_t part = size < room ? size : room;
    std::memcpy(buffer_.data() + buffered_, bytes, part);
    buffered_ += part;
    bytes += part;
    size -= part;
  }
}

void TraceFile::send() noexcept {
  if (error_ == 0 && buffered_ > 0) {
    error_ = output_->append(buffer_.data(), buffered_);
    if (error_ != 0) bytes_dropped_ += buffered_;
  }
  buffered_ = 0;
}

bool TraceFile::rewrite(const void* first, std::size_t size, bool is_last) noexcept {
  const auto* bytes = static_cast<const char*>(first);
  int failure = 0;
  if (output_->can_rewrite()) {
    failure = output_->rewrite(bytes, size);
  } else if (is_last && error_ == 0) {
    failure = output_->append(bytes, size);
  }
  if (error_ == 0) error_ = failure;
  if (error_ == 0) return true;
  errno = error_;
  return false;
}

}  // namespace profiler
