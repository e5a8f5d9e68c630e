// SPDX-License-Identifier: Apache-2.0
// The host side of the decoder, the same for every way to launch: 356 launches a token, logits and
// next token copied back, each compared with the CPU reference. A Backend allocates, copies,
// launches and waits; single thread.
//   Backend::allocate(bytes) -> void*          device memory
//   Backend::host_buffer(bytes) -> void*       pinned memory
//   Backend::upload(device, host, bytes)       synchronous
//   Backend::download(host, device, bytes)     asynchronous, on the decoder's stream
//   Backend::launch<Kernel>(Shape, args...)    on the decoder's stream, arguments by value
//   Backend::wait()                            until the stream is done
#pragma once

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/programs/decode_model.h"

namespace decode {

enum class Kernel {
  kEmbed,
  kRmsNorm,
  kMatvec,
  kMatvecAdd,
  kRopeCache,
  kAttention,
  kAdd,
  kSwiglu,
  kArgmax,
  kCount
};

struct Shape {
  unsigned grid, block, shared_bytes;
};

struct Options {
  int tokens = 64;
  std::string output;    // raw logits of every token
  bool quiet = false;    // only the summary
  bool time = false;     // host time spent submitting, on stderr
  bool changes = false;  // how many launches differ from the same launch of the previous token
};

bool parse_options(int count, char** arguments, Options& options);

// What each launch of a token was, as bytes, to count what a replay has to change.
class ChangeCounter {
 public:
  void begin_token() {
    index_ = 0;
    ++token_;
  }
  template <typename... Args>
  void note(Kernel kernel, Shape shape, const Args&... args) {
    std::string bytes;
    append(bytes, kernel);
    append(bytes, shape);
    (append(bytes, args), ...);
    if (index_ == previous_.size()) previous_.emplace_back();
    // The first two tokens are seen and recorded; from the third on a difference is a change.
    if (token_ >= 3 && previous_[index_] != bytes) ++changes_;
    previous_[index_++] = std::move(bytes);
  }
  std::uint64_t changes() const { return changes_; }

 private:
  template <typename T>
  static void append(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::vector<std::string> previous_;
  std::size_t index_ = 0;
  int token_ = 0;
  std::uint64_t changes_ = 0;
};

template <typename Backend>
class Decoder {
 public:
  Decoder(Backend& backend, const Model& model, const Options& options)
      : backend_(backend), model_(model), options_(options) {
    weights_ = device_floats(model.weights.size());
    backend.upload(weights_, model.weights.data(), model.weights.size() * sizeof(float));
    const std::size_t cache = std::size_t{kLayers} * kMaxPositions * kKeyDim;
    keys_ = device_floats(cache);
    values_ = device_floats(cache);
    x_ = device_floats(kDim);
    normed_ = device_floats(kDim);
    qkv_ = device_floats(kQkvDim);
    attended_ = device_floats(kDim);
    projected_ = device_floats(kDim);
    gate_ = device_floats(kHidden);
    up_ = device_floats(kHidden);
    logits_ = device_floats(kVocabulary);
    token_ = static_cast<int*>(backend.allocate(sizeof(int)));
    host_logits_ = static_cast<float*>(backend.host_buffer(kVocabulary * sizeof(float)));
    host_token_ = static_cast<int*>(backend.host_buffer(sizeof(int)));
  }

  // One token: returns the next one; the logits are in logits().
  int step(int token, int position) {
    changes_.begin_token();
    const auto start = std::chrono::steady_clock::now();
    submit(token, position);
    backend_.download(host_logits_, logits_, kVocabulary * sizeof(float));
    backend_.download(host_token_, token_, sizeof(int));
    submit_ns_.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    backend_.wait();
    return *host_token_;
  }

  const float* logits() const { return host_logits_; }
  const std::vector<double>& submit_ns() const { return submit_ns_; }
  std::uint64_t launches() const { return launches_; }
  std::uint64_t changes() const { return changes_.changes(); }

 private:
  float* device_floats(std::size_t count) {
    return static_cast<float*>(backend_.allocate(count * sizeof(float)));
  }

  template <Kernel kernel, typename... Args>
  void launch(Shape shape, Args... args) {
    if (options_.changes) changes_.note(kernel, shape, args...);
    ++launches_;
    backend_.template launch<kernel>(shape, args...);
  }

  void matvec(float* out, const float* matrix, const float* x, int rows, int columns) {
    const unsigned blocks = static_cast<unsigned>(rows + 31) / 32;
    launch<Kernel::kMatvec>({blocks, 32, 0}, out, matrix, x, rows, columns);
  }

  void rms_norm(const float* weight) {
    launch<Kernel::kRmsNorm>({1, kDim, 0}, normed_, static_cast<const float*>(x_), weight, kEpsilon,
                             kDim);
  }

  void submit(int token, int position) {
    const float* weights = weights_;
    launch<Kernel::kEmbed>({1, kDim, 0}, x_, weights + model_.embedding, token, kDim);
    for (int layer = 0; layer < kLayers; ++layer) submit_layer(layer, position);
    rms_norm(weights + model_.final_norm);
    matvec(logits_, weights + model_.logits, normed_, kVocabulary, kDim);
    launch<Kernel::kArgmax>({1, 32, 0}, token_, static_cast<const float*>(logits_), kVocabulary);
  }

  void submit_layer(int layer, int position) {
    const LayerOffsets& at = model_.layers[static_cast<std::size_t>(layer)];
    const float* weights = weights_;
    float* keys = keys_ + std::ptrdiff_t{layer} * kMaxPositions * kKeyDim;
    float* values = values_ + std::ptrdiff_t{layer} * kMaxPositions * kKeyDim;
    rms_norm(weights + at.attention_norm);
    matvec(qkv_, weights + at.qkv, normed_, kQkvDim, kDim);
    launch<Kernel::kRopeCache>({1, 32, 0}, qkv_, keys + position * kKeyDim,
                               values + position * kKeyDim, weights + model_.frequencies, position,
                               kDim, kKeyDim, kHeadDim);
    // Shared memory grows by steps of 16 positions, as a real decoder's scratch would.
    const unsigned shared_bytes = static_cast<unsigned>(position / 16 + 1) * 16 * sizeof(float);
    launch<Kernel::kAttention>({kHeads, 32, shared_bytes}, attended_,
                               static_cast<const float*>(qkv_), static_cast<const float*>(keys),
                               static_cast<const float*>(values), position + 1, kHeadDim, kKeyDim,
                               kHeads / kKeyHeads, kScale);
    matvec(projected_, weights + at.output, attended_, kDim, kDim);
    launch<Kernel::kAdd>({1, kDim, 0}, x_, static_cast<const float*>(projected_), kDim);
    rms_norm(weights + at.feed_norm);
    matvec(gate_, weights + at.gate, normed_, kHidden, kDim);
    matvec(up_, weights + at.up, normed_, kHidden, kDim);
    launch<Kernel::kSwiglu>({1, kHidden, 0}, gate_, static_cast<const float*>(up_), kHidden);
    launch<Kernel::kMatvecAdd>({1, kDim, 0}, x_, weights + at.down,
                               static_cast<const float*>(gate_), kDim, kHidden);
  }

  static constexpr float kScale = 0.353553391F;  // 1 / sqrt(kHeadDim)

  Backend& backend_;
  const Model& model_;
  const Options& options_;
  float *weights_, *keys_, *values_, *x_, *normed_, *qkv_, *attended_, *projected_, *gate_, *up_,
      *logits_;
  int* token_;
  float* host_logits_;
  int* host_token_;
  ChangeCounter changes_;
  std::vector<double> submit_ns_;
  std::uint64_t launches_ = 0;
};

// Compares each token with the reference, prints and keeps the outputs.
class Checker {
 public:
  Checker(const Model& model, const Options& options);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // `next` follows `token`; false when it differs from the reference.
  bool check(int position, int token, int next, const float* logits);
  // The summary; returns the exit status.
  int finish(std::uint64_t launches, std::uint64_t changes, std::vector<double> submit_ns);

 private:
  Reference reference_;
  const Options& options_;
  std::FILE* output_ = nullptr;
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
  float largest_difference_ = 0;
  bool failed_ = false;
};

template <typename Backend>
int run(Backend& backend, const Options& options) {
  const Model model = make_model();
  Decoder<Backend> decoder(backend, model, options);
  Checker checker(model, options);
  int token = 1;
  for (int position = 0; position < options.tokens; ++position) {
    const int next = decoder.step(token, position);
    if (!checker.check(position, token, next, decoder.logits())) break;
    token = next;
  }
  return checker.finish(decoder.launches(), decoder.changes(), decoder.submit_ns());
}

}  // namespace decode
