// SPDX-License-Identifier: Apache-2.0
// The decoder's weights, made from a fixed seed, and the CPU reference that says what each token
// must be. Plain host code, single thread, no CUDA.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/programs/decode_math.h"

namespace decode {

// Offsets in floats into `Model::weights`; every layer has the same layout.
struct LayerOffsets {
  std::size_t attention_norm, qkv, output, feed_norm, gate, up, down;
};

struct Model {
  std::vector<float> weights;
  std::size_t embedding = 0, final_norm = 0, logits = 0, frequencies = 0;
  std::vector<LayerOffsets> layers;
};

Model make_model();

class Reference {
 public:
  explicit Reference(const Model& model);
  // Runs one token at the next position and returns the logits.
  const std::vector<float>& step(int token);
  int next_token() const;

 private:
  void attend(std::size_t layer);

  const Model& model_;
  int position_ = 0;
  std::vector<float> x_, normed_, qkv_, attended_, projected_, gate_, up_, logits_;
  std::vector<float> keys_, values_;  // [layer][position][key_dim]
};

}  // namespace decode
