// SPDX-License-Identifier: Apache-2.0
// One pass over the operations in order of submission. Memory is cut into segments at every border
// of an access, so that whole buffers cost as much as single granules; a segment remembers who
// wrote and who read it, chain by chain.
#include "tools/softgpu/compare/conflicts.h"

#include <algorithm>
#include <unordered_map>

namespace softgpu::compare {

namespace {

// The accesses of one kind to one segment by the operations of one chain, in order.
struct Lane {
  std::uint32_t chain = 0;
  std::vector<OperationIndex> operations;
  std::vector<std::uint32_t> checked;  // of writers: how far each reader lane was held against it
};

struct Segment {
  std::vector<Lane> writers, readers;
};

Lane& lane_of(std::vector<Lane>* lanes, std::uint32_t chain) {
  for (Lane& lane : *lanes) {
    if (lane.chain == chain) return lane;
  }
  lanes->push_back({chain, {}, {}});
  return lanes->back();
}

// The borders of the segments of every allocation, and where its segments start among all.
class Layout {
 public:
  struct Borders {
    std::vector<std::uint64_t> starts;  // first granule of each segment; the last is an end
    std::size_t base = 0;
  };

  explicit Layout(const Trace& trace) {
    for (const Operation& operation : trace.operations) {
      for (const Access& access : operation.accesses) {
        std::vector<std::uint64_t>& starts = borders_[access.allocation].starts;
        starts.push_back(access.first);
        starts.push_back(access.last + 1);
        if (starts.size() >= kTidyAt) tidy(&starts);
      }
    }
    for (auto& [allocation, borders] : borders_) {
      tidy(&borders.starts);
      borders.base = count_;
      count_ += borders.starts.size();
    }
  }

  std::size_t count() const { return count_; }
  const Borders& of(std::uint64_t allocation) const { return borders_.at(allocation); }

 private:
  // Bounds the copies of the same borders that many operations bring.
  static constexpr std::size_t kTidyAt = std::size_t{1} << 20;

  static void tidy(std::vector<std::uint64_t>* starts) {
    std::sort(starts->begin(), starts->end());
    starts->erase(std::unique(starts->begin(), starts->end()), starts->end());
  }

  std::unordered_map<std::uint64_t, Borders> borders_;
  std::size_t count_ = 0;
};

class Sweep {
 public:
  Sweep(const Trace& trace, const Order& order, const std::function<void(const Conflict&)>& ordered,
        const std::function<void(const Conflict&)>& racing)
      : trace_(trace),
        order_(order),
        ordered_(ordered),
        racing_(racing),
        layout_(trace),
        segments_(layout_.count()),
        last_writer_(layout_.count(), kNone) {}

  void run() {
    for (current_ = 0; current_ < trace_.operations.size(); ++current_) visit();
  }

 private:
  static constexpr OperationIndex kNone = ~OperationIndex{0};

  // Writes first: who also reads a segment that it writes is a writer of it.
  void visit() {
    const std::vector<Access>& accesses = trace_.operations[current_].accesses;
    for (const Access& access : accesses) {
      if (access.kind != AccessKind::kRead) for_each_segment(access, &Sweep::write);
    }
    for (const Access& access : accesses) {
      if (access.kind == AccessKind::kRead) for_each_segment(access, &Sweep::read);
    }
  }

  void for_each_segment(const Access& access, void (Sweep::*touch)(std::size_t segment)) {
    const Layout::Borders& borders = layout_.of(access.allocation);
    const auto& starts = borders.starts;
    auto start = std::lower_bound(starts.begin(), starts.end(), access.first);
    conflict_.allocation = access.allocation;
    is_update_ = access.kind == AccessKind::kUpdate;
    for (; *start <= access.last; ++start) {
      conflict_.granule = *start;
      (this->*touch)(borders.base + static_cast<std::size_t>(start - starts.begin()));
    }
  }

  // How many operations of the lane come before the current one.
  std::size_t count_before(const Lane& lane) const {
    const auto& all = lane.operations;
    if (all.empty() || order_.covers(clock(), all.back())) return all.size();
    return static_cast<std::size_t>(
        std::partition_point(all.begin(), all.end(),
                             [&](OperationIndex i) { return order_.covers(clock(), i); }) -
        all.begin());
  }
  const Clock& clock() const { return order_.clock(current_); }

  void report(const std::function<void(const Conflict&)>& to, OperationIndex first) {
    if (first == current_) return;
    conflict_.first = first;
    conflict_.second = current_;
    to(conflict_);
  }

  // The last writer of every chain: the earlier ones come before it.
  void compare_with_writers(const Segment& segment) {
    for (const Lane& lane : segment.writers) {
      const std::size_t before = count_before(lane);
      if (before > 0) report(ordered_, lane.operations[before - 1]);
      if (before < lane.operations.size() && !(is_update_ && is_updater(lane.operations[before]))) {
        report(racing_, lane.operations[before]);
      }
    }
  }

  void read(std::size_t index) {
    if (last_writer_[index] == current_) return;
    Segment& segment = segments_[index];
    compare_with_writers(segment);
    std::vector<OperationIndex>& lane =
        lane_of(&segment.readers, order_.chain(current_)).operations;
    if (lane.empty() || lane.back() != current_) lane.push_back(current_);
  }

  // Readers of a chain need not be ordered for each other, so each is held against the first writer
  // after it on every chain of writers.
  void write(std::size_t index) {
    Segment& segment = segments_[index];
    if (last_writer_[index] == current_) return;
    compare_with_writers(segment);
    Lane& own = lane_of(&segment.writers, order_.chain(current_));
    own.checked.resize(segment.readers.size());
    for (std::size_t i = 0; i < segment.readers.size(); ++i) {
      const std::vector<OperationIndex>& readers = segment.readers[i].operations;
      const std::size_t before = count_before(segment.readers[i]);
      for (std::size_t k = own.checked[i]; k < before; ++k) report(ordered_, readers[k]);
      own.checked[i] = static_cast<std::uint32_t>(std::max<std::size_t>(own.checked[i], before));
      if (before < readers.size()) report(racing_, readers[before]);
    }
    own.operations.push_back(current_);
    last_writer_[index] = current_;
  }

  // Touches the segment by atomic updates only.
  bool is_updater(OperationIndex index) const {
    for (const Access& access : trace_.operations[index].accesses) {
      if (access.allocation == conflict_.allocation && access.kind == AccessKind::kWrite &&
          access.first <= conflict_.granule && conflict_.granule <= access.last) {
        return false;
      }
    }
    return true;
  }

  const Trace& trace_;
  const Order& order_;
  const std::function<void(const Conflict&)>& ordered_;
  const std::function<void(const Conflict&)>& racing_;
  const Layout layout_;
  std::vector<Segment> segments_;
  std::vector<OperationIndex> last_writer_;  // by segment
  OperationIndex current_ = 0;
  Conflict conflict_;
  bool is_update_ = false;
};

}  // namespace

void find_conflicts(const Trace& trace, const Order& order,
                    const std::function<void(const Conflict&)>& ordered,
                    const std::function<void(const Conflict&)>& racing) {
  Sweep(trace, order, ordered, racing).run();
}

}  // namespace softgpu::compare
