// SPDX-License-Identifier: Apache-2.0
// Options, comparison with the reference, and what the decoder prints. stdout depends on the
// results alone, so that two runs can be compared; times go to stderr.
#include "tests/programs/decode_run.h"

#include <cmath>

namespace decode {
namespace {

constexpr float kTolerance = 1e-4F;

std::uint64_t hash_bytes(std::uint64_t hash, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
  return hash;
}

bool parse_tokens(const char* text, int& tokens) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < 1 || value > kMaxPositions) {
    std::fprintf(stderr, "decode: --tokens wants a number from 1 to %d, not '%s'\n", kMaxPositions,
                 text);
    return false;
  }
  tokens = static_cast<int>(value);
  return true;
}

}  // namespace

bool parse_options(int count, char** arguments, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const bool has_value = i + 1 < count;
    if (name == "--tokens" && has_value) {
      if (!parse_tokens(arguments[++i], options.tokens)) return false;
    } else if (name == "--output" && has_value) {
      options.output = arguments[++i];
    } else if (name == "--quiet") {
      options.quiet = true;
    } else if (name == "--time") {
      options.time = true;
    } else if (name == "--changes") {
      options.changes = true;
    } else {
      std::fprintf(stderr,
                   "usage: decode [--tokens N] [--output FILE] [--quiet] [--time] [--changes]\n");
      return false;
    }
  }
  return true;
}

Checker::Checker(const Model& model, const Options& options)
    : reference_(model), options_(options) {
  if (options.output.empty()) return;
  output_ = std::fopen(options.output.c_str(), "wb");
  if (output_ == nullptr) {
    std::fprintf(stderr, "decode: cannot write %s\n", options.output.c_str());
    failed_ = true;
  }
}

Checker::~Checker() {
  if (output_ != nullptr) std::fclose(output_);
}

bool Checker::check(int position, int token, int next, const float* logits) {
  const std::vector<float>& expected = reference_.step(token);
  for (int i = 0; i < kVocabulary; ++i) {
    const float difference = std::fabs(logits[i] - expected[static_cast<std::size_t>(i)]);
    // Written so that a NaN counts as the largest difference.
    if (!(difference <= largest_difference_)) largest_difference_ = difference;
  }
  const std::size_t size = kVocabulary * sizeof(float);
  hash_ = hash_bytes(hash_, logits, size);
  hash_ = hash_bytes(hash_, &next, sizeof next);
  if (output_ != nullptr && std::fwrite(logits, 1, size, output_) != size) failed_ = true;
  if (!options_.quiet) {
    std::printf("token %d: %d logits %016" PRIx64 "\n", position, next,
                hash_bytes(0xcbf29ce484222325ULL, logits, size));
  }
  const bool right = next == reference_.next_token() && largest_difference_ <= kTolerance;
  if (!right) {
    std::printf("token %d: got %d, the reference says %d; logits differ by %g\n", position, next,
                reference_.next_token(), static_cast<double>(largest_difference_));
    failed_ = true;
  }
  return right;
}

int Checker::finish(std::uint64_t launches, std::uint64_t changes, std::vector<double> submit_ns) {
  std::printf("launches %" PRIu64 "\n", launches);
  if (options_.changes) std::printf("changes %" PRIu64 "\n", changes);
  std::printf("reference: %s, largest logit difference %g\n", failed_ ? "differs" : "equal",
              static_cast<double>(largest_difference_));
  std::printf("output %016" PRIx64 "\n", hash_);
  if (options_.time && !submit_ns.empty()) {
    std::sort(submit_ns.begin(), submit_ns.end());
    std::fprintf(stderr, "submit_us_per_token median %.3f min %.3f max %.3f\n",
                 submit_ns[submit_ns.size() / 2] / 1000, submit_ns.front() / 1000,
                 submit_ns.back() / 1000);
  }
  return failed_ ? 1 : 0;
}

}  // namespace decode
