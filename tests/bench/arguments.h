// SPDX-License-Identifier: Apache-2.0
// The eight arguments of the benchmark's launch, and the lower bound of any queue: lock a mutex,
// compare each argument by its size with what the recording holds, keep what differs, forward
// nothing.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace bench {

struct Arguments {
  CUdeviceptr out = 0, a = 0, b = 0;
  std::uint64_t c = 1;
  std::int64_t d = 2;
  double e = 3;
  unsigned f = 4;
  int count = 32;
  void* list[8] = {&out, &a, &b, &c, &d, &e, &f, &count};

  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
};

class LowerBound {
 public:
  explicit LowerBound(std::size_t launches) : recorded_(launches) {}
  void rewind() { next_ = 0; }
  // The signature of cuLaunchKernel, so that the caller pays the same. The first walks the
  // recording, as a replay must; the second compares with one record that never leaves the cache,
  // and no shape.
  static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, CUstream stream, void** parameters, void** extra);
  static CUresult launch_one_record(CUfunction function, unsigned grid_x, unsigned grid_y,
                                    unsigned grid_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, unsigned shared_bytes, CUstream stream,
                                    void** parameters, void** extra);

 private:
  struct Recorded {
    CUfunction function = nullptr;
    unsigned grid_x = 0, grid_y = 0, grid_z = 0, block_x = 0, block_y = 0, block_z = 0,
             shared_bytes = 0;
    std::uint64_t wide[6] = {};
    std::uint32_t narrow[2] = {};
    bool changed = false;
  };
  bool keep(CUfunction function, const unsigned (&shape)[7], void** parameters);

  static bool compare(Recorded& at, void** parameters);

  std::mutex mutex_;
  std::vector<Recorded> recorded_;
  std::size_t next_ = 0;
};

// What LowerBound::launch works on.
extern LowerBound* g_lower_bound;

}  // namespace bench
