// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in tests/programs/scenario_kernels.cu, all derived from one key.
#include <cstring>

#include "tests/fuzz/world.h"

namespace fuzz {

template <typename T>
void Arguments::add(T value) {
  size_ = (size_ + alignof(T) - 1) / alignof(T) * alignof(T);
  std::memcpy(bytes_ + size_, &value, sizeof value);
  parameters_[count_++] = bytes_ + size_;
  size_ += sizeof value;
}

Arguments::Arguments(int kernel, CUdeviceptr b0, CUdeviceptr b1, CUdeviceptr b2, int key) {
  struct Block {
    unsigned words[24];
  };
  const unsigned value = static_cast<unsigned>(key);
  const int count = 1 + key % kWords;
  if (kernel != kEmpty) add(b0);
  switch (kernel) {
    case kAffine:
      add(value * 2 + 1);
      add(value);
      add(count);
      break;
    case kMix:
      add(b1);
      add(value);
      add(count);
      break;
    case kWide:
      add(b1);
      add(b2);
      add(static_cast<unsigned long long>(value) << 20);
      add(-static_cast<long long>(value));
      add(value * 0.5);
      add(value);
      add(count);
      break;
    case kNarrow:
      add(static_cast<unsigned char>(value));
      add(static_cast<unsigned short>(value >> 3));
      add(value % 2 == 1);
      add(static_cast<unsigned long long>(value) * 77);
      add(static_cast<signed char>(value >> 5));
      break;
    case kByValue: {
      Block block;
      for (unsigned i = 0; i < 24; ++i) block.words[i] = value * (i + 1);
      add(block);
      add(count);
      break;
    }
    case kRelay:
      add(value);
      add(count);
      break;
    case kCountUp:
    case kPublish:
    case kWhere:
    case kKernelCount:  // the one that the host spins on
      add(value);
      break;
    default:
      break;
  }
  extra_[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
  extra_[1] = bytes_;
  extra_[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
  extra_[3] = &size_;
  extra_[4] = CU_LAUNCH_PARAM_END;
}

void Arguments::overwrite() {
  std::memset(bytes_, 0xee, sizeof bytes_);
}

}  // namespace fuzz
