// SPDX-License-Identifier: Apache-2.0
// Traces for tests: packets as the profiler writes them, and one small trace with known sums.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli_test {

// Each function adds packets to `bytes`. Names are interned as they come.
class TraceBuilder {
 public:
  using Numbers = std::vector<std::pair<std::string, std::uint64_t>>;
  struct Line {
    std::string function, file;
    std::uint64_t line = 0;
  };

  std::string bytes;

  using Texts = std::vector<std::pair<std::string, std::string>>;
  void add_header(const Numbers& numbers, const Texts& texts = {});
  void add_thread(std::uint64_t tid, const std::string& name);
  void add_context(std::uint64_t number);
  void add_stream(std::uint64_t number, std::uint64_t context, const std::string& name);
  // A frame; its path without the leading slash.
  std::uint64_t frame(const std::string& path, std::uint64_t offset);
  // Outermost first.
  std::uint64_t stack(const std::vector<std::uint64_t>& frames, bool is_packed = false);
  void add_call(const std::string& category, std::uint64_t tid, const std::string& entry,
                std::uint64_t start_ns, std::uint64_t end_ns, std::uint64_t moved = 0);
  struct Launch {
    std::uint64_t number, tid, start_ns, end_ns, stack, stream, device_start_ns, device_end_ns;
    std::string kernel;
  };
  void add_launch(const Launch& launch);
  void add_sample(std::uint64_t tid, std::uint64_t time_ns, std::uint64_t stack,
                  std::uint64_t weight = 1);
  void add_symbols(const std::string& path, std::uint64_t offset, const std::vector<Line>& lines);
  // Packets of other tools, and fields that no reader knows.
  void add_foreign();
  // As another tool begins its packets.
  void add_start();

 private:
  std::uint64_t iid_of(std::uint32_t kind, const std::string& text);
  void add_packet(const std::string& packet, std::uint64_t timestamp, std::uint64_t flags);
  void intern(std::uint32_t kind, const std::string& entry);
  void add_interned();
  std::string event(std::uint64_t type, std::uint64_t track, const std::string& category,
                    const std::string& name);

  std::uint64_t sequence_ = 1;
  std::string interned_;
  std::vector<std::pair<std::pair<std::uint32_t, std::string>, std::uint64_t>> iids_;
  std::uint64_t next_iid_ = 1;
};

// Two threads, two streams, three kernels; see trace_summary_test.cpp for what it adds up to.
TraceBuilder sample_trace();

}  // namespace cli_test
