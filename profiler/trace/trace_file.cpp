// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "profiler/json_writer.h"

namespace profiler {

bool TraceFile::start(int file, std::uint64_t most_bytes) noexcept {
  file_ = file;
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
  errno = 0;
  if (error_ == 0 && !write_all(file_, buffer_.data(), buffered_)) {
    error_ = errno != 0 ? errno : EIO;
    bytes_dropped_ += buffered_;
  }
  buffered_ = 0;
}

bool TraceFile::rewrite(const void* first, std::size_t size) noexcept {
  const auto* bytes = static_cast<const char*>(first);
  for (std::size_t done = 0; done < size;) {
    const ssize_t written = pwrite(file_, bytes + done, size - done, static_cast<off_t>(done));
    if (written > 0) {
      done += static_cast<std::size_t>(written);
    } else if (written == 0 || errno != EINTR) {
      if (error_ == 0) error_ = written == 0 ? EIO : errno;
      break;
    }
  }
  if (error_ == 0) return true;
  errno = error_;
  return false;
}

}  // namespace profiler
