// SPDX-License-Identifier: Apache-2.0
// While a thread holds one, dl_iterate_phdr (the linker's --wrap leads it here) shows that thread a
// single object: an executable without a name at address 0, which is how libbacktrace comes to read
// the one file that its state was created with. Everybody else sees the loader's list.
#pragma once

namespace profiler {

class OneFile {
 public:
  OneFile() noexcept;
  ~OneFile();
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;
};

}  // namespace profiler
