// SPDX-License-Identifier: Apache-2.0
// Weights from a fixed seed and the CPU reference. Every sum runs in the order of the kernels in
// decode.cu.
#include "tests/programs/decode_model.h"

#include <array>
#include <cmath>

namespace decode {
namespace {

// splitmix64: small, and the same everywhere.
class Random {
 public:
  // Uniform in [-1, 1), exactly representable.
  float next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<float>(static_cast<std::int32_t>((z ^ (z >> 31)) >> 40) - (1 << 23)) /
           (1 << 23);
  }

 private:
  std::uint64_t state_ = 20240607;
};

std::size_t append(Model& model, Random& random, int count, float scale, float offset = 0) {
  const std::size_t start = model.weights.size();
  for (int i = 0; i < count; ++i) model.weights.push_back(offset + scale * random.next());
  return start;
}

void rms_norm(std::vector<float>& out, const std::vector<float>& x, const float* weight) {
  std::array<float, kDim> squares;
  for (int i = 0; i < kDim; ++i) squares[i] = x[i] * x[i];
  for (int stride = kDim / 2; stride > 0; stride /= 2) {
    for (int i = 0; i < stride; ++i) squares[i] = squares[i] + squares[i + stride];
  }
  const float scale = 1.0F / std::sqrt(squares[0] / static_cast<float>(kDim) + kEpsilon);
  for (int i = 0; i < kDim; ++i) out[i] = x[i] * scale * weight[i];
}

float row_product(const float* matrix, const std::vector<float>& x, int rows, int row) {
  float sum = 0;
  for (std::size_t column = 0; column < x.size(); ++column) {
    sum = sum + matrix[column * rows + row] * x[column];
  }
  return sum;
}

void matvec(std::vector<float>& out, const float* matrix, const std::vector<float>& x) {
  const int rows = static_cast<int>(out.size());
  for (int row = 0; row < rows; ++row) out[row] = row_product(matrix, x, rows, row);
}

// What 32 lanes get from a butterfly of shuffles.
float warp_sum(std::array<float, 32> lanes) {
  for (int mask = 16; mask > 0; mask /= 2) {
    std::array<float, 32> next;
    for (int lane = 0; lane < 32; ++lane) next[lane] = lanes[lane] + lanes[lane ^ mask];
    lanes = next;
  }
  return lanes[0];
}

}  // namespace

Model make_model() {
  Model model;
  Random random;
  model.embedding = append(model, random, kVocabulary * kDim, 1.0F);
  for (int layer = 0; layer < kLayers; ++layer) {
    LayerOffsets offsets{};
    offsets.attention_norm = append(model, random, kDim, 0.1F, 1.0F);
    offsets.qkv = append(model, random, kQkvDim * kDim, 0.35F);
    offsets.output = append(model, random, kDim * kDim, 0.1F);
    offsets.feed_norm = append(model, random, kDim, 0.1F, 1.0F);
    offsets.gate = append(model, random, kHidden * kDim, 0.3F);
    offsets.up = append(model, random, kHidden * kDim, 0.3F);
    offsets.down = append(model, random, kDim * kHidden, 0.08F);
    model.layers.push_back(offsets);
  }
  model.final_norm = append(model, random, kDim, 0.1F, 1.0F);
  model.logits = append(model, random, kVocabulary * kDim, 0.5F);
  model.frequencies = model.weights.size();
  float frequency = 1.0F;
  for (int i = 0; i < kHeadDim / 2; ++i, frequency *= 0.1F) model.weights.push_back(frequency);
  return model;
}

Reference::Reference(const Model& model)
    : model_(model),
      x_(kDim),
      normed_(kDim),
      qkv_(kQkvDim),
      attended_(kDim),
      projected_(kDim),
      gate_(kHidden),
      up_(kHidden),
      logits_(kVocabulary),
      keys_(std::size_t{kLayers} * kMaxPositions * kKeyDim),
      values_(keys_.size()) {}

void Reference::attend(std::size_t layer) {
  const float* frequencies = model_.weights.data() + model_.frequencies;
  float* keys = keys_.data() + layer * kMaxPositions * kKeyDim;
  float* values = values_.data() + layer * kMaxPositions * kKeyDim;
  for (int pair = 0; pair < (kDim + kKeyDim) / 2; ++pair) {
    const float angle = static_cast<float>(position_) * frequencies[pair % (kHeadDim / 2)];
    const float c = cosine(angle), s = sine(angle);
    const float a = qkv_[2 * pair], b = qkv_[2 * pair + 1];
    float* target =
        2 * pair < kDim ? &qkv_[2 * pair] : keys + position_ * kKeyDim + (2 * pair - kDim);
    target[0] = a * c - b * s;
    target[1] = a * s + b * c;
  }
  for (int i = 0; i < kKeyDim; ++i) values[position_ * kKeyDim + i] = qkv_[kDim + kKeyDim + i];

  const float scale = 1.0F / std::sqrt(static_cast<float>(kHeadDim));
  for (int head = 0; head < kHeads; ++head) {
    const int offset = head / (kHeads / kKeyHeads) * kHeadDim;
    std::vector<float> scores(position_ + 1);
    float highest = -1e30F;
    for (int t = 0; t <= position_; ++t) {
      float sum = 0;
      for (int d = 0; d < kHeadDim; ++d) {
        sum = sum + qkv_[head * kHeadDim + d] * keys[t * kKeyDim + offset + d];
      }
      scores[t] = sum * scale;
      highest = scores[t] > highest ? scores[t] : highest;
    }
    std::array<float, 32> totals{};
    for (int t = 0; t <= position_; ++t) {
      scores[t] = exponential(scores[t] - highest);
      totals[t % 32] = totals[t % 32] + scores[t];
    }
    const float total = warp_sum(totals);
    for (int d = 0; d < kHeadDim; ++d) {
      float sum = 0;
      for (int t = 0; t <= position_; ++t) sum = sum + scores[t] * values[t * kKeyDim + offset + d];
      attended_[head * kHeadDim + d] = sum / total;
    }
  }
}

const std::vector<float>& Reference::step(int token) {
  const float* weights = model_.weights.data();
  for (int i = 0; i < kDim; ++i) x_[i] = weights[model_.embedding + token * kDim + i];
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    const LayerOffsets& offsets = model_.layers[layer];
    rms_norm(normed_, x_, weights + offsets.attention_norm);
    matvec(qkv_, weights + offsets.qkv, normed_);
    attend(layer);
    matvec(projected_, weights + offsets.output, attended_);
    for (int i = 0; i < kDim; ++i) x_[i] = x_[i] + projected_[i];
    rms_norm(normed_, x_, weights + offsets.feed_norm);
    matvec(gate_, weights + offsets.gate, normed_);
    matvec(up_, weights + offsets.up, normed_);
    for (int i = 0; i < kHidden; ++i) gate_[i] = gate_[i] * sigmoid(gate_[i]) * up_[i];
    for (int row = 0; row < kDim; ++row) {
      x_[row] = x_[row] + row_product(weights + offsets.down, gate_, kDim, row);
    }
  }
  rms_norm(normed_, x_, weights + model_.final_norm);
  matvec(logits_, weights + model_.logits, normed_);
  ++position_;
  return logits_;
}

int Reference::next_token() const {
  int best = 0;
  for (int i = 1; i < kVocabulary; ++i) {
    if (logits_[i] > logits_[best]) best = i;
  }
  return best;
}

}  // namespace decode
