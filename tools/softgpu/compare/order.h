// SPDX-License-Identifier: Apache-2.0
// The happens-before order of one trace, as vector clocks. Operations are spread over chains, each
// of which is ordered in itself; a clock says how far along every chain an operation comes after.
// Costs operations times chains, and there are about as many chains as streams and graph branches
// that run at once.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/softgpu/compare/trace.h"

namespace softgpu::compare {

// Whose observations order a later submission: those that the submitting thread made of its own
// operations, those that it made, or those of any thread.
enum class Reading { kOwn, kStrict, kLiberal };

// Element c: how many operations of chain c come first. Missing elements are 0.
using Clock = std::vector<std::uint32_t>;

class Order {
 public:
  // `void_queries`, by wait: answers that order nothing. Empty: none.
  Order(const Trace& trace, Reading reading, const std::vector<bool>& void_queries = {});

  bool is_before(OperationIndex first, OperationIndex second) const {
    return first != second && covers(clocks_[second], first);
  }
  // Whether `operation` is among the first ones of its chain that `clock` counts.
  bool covers(const Clock& clock, OperationIndex operation) const {
    const std::uint32_t chain = chain_[operation];
    return chain < clock.size() && clock[chain] >= position_[operation];
  }

  const Clock& clock(OperationIndex operation) const { return clocks_[operation]; }
  // What was done when a wait ended or a query was answered: its goals and all before them, and in
  // the liberal reading whatever was known to be done.
  const Clock& seen(std::uint32_t wait) const { return seen_[wait]; }

  std::uint32_t chain(OperationIndex operation) const { return chain_[operation]; }
  std::uint32_t position(OperationIndex operation) const { return position_[operation]; }  // from 1
  const std::vector<std::vector<OperationIndex>>& chains() const { return chains_; }

 private:
  std::uint32_t choose_chain(const Clock& clock, const Operation& operation) const;
  void submit(OperationIndex index, const Operation& operation, const Clock& host);

  std::vector<Clock> clocks_, seen_;
  std::vector<std::uint32_t> chain_, position_;  // by operation
  std::vector<std::vector<OperationIndex>> chains_;
};

}  // namespace softgpu::compare
