// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the reader of JSON reports and what is made of a report. A refusal is one short
// line; what was read shows within 100 columns, merges, and is the same after writing and reading.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/cli/comparison.h"
#include "tools/cli/csv_output.h"
#include "tools/cli/failure.h"
#include "tools/cli/merge.h"
#include "tools/cli/report_file.h"
#include "tools/cli/report_json.h"
#include "tools/cli/report_page.h"

namespace {

void require(bool claim) {
  if (!claim) __builtin_trap();
}

std::string json_of(const cli::Report& report) {
  static const int file = memfd_create("report", MFD_CLOEXEC);
  require(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
  profiler::JsonWriter out(file);
  cli::write_report(report, &out);
  require(out.finish());
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_CUR)), '\0');
  require(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  return text;
}

void require_narrow(const std::string& text) {
  std::size_t column = 0;
  for (const char byte : text) {
    column = byte == '\n' ? 0 : column + 1;
    require(column <= 100);
  }
}

void use(const cli::Report& report) {
  cli::View view;
  view.has_stacks = true;
  require_narrow(cli::text_of(cli::page_of(report, view), false));
  (void)cli::markdown_of(cli::page_of(report, {}));
  (void)cli::csv_rows(report);
  (void)cli::sites_csv(report);
  require(cli::compare(report, report, {}).regressions.empty());
  // The first writing may cut texts at a zero byte; from then on nothing changes.
  const std::string json = json_of(cli::parse_report(json_of(report), ""));
  require(json_of(cli::parse_report(json, "")) == json);
  (void)cli::merge({report, report});  // a Failure when counts pass 2^64
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    use(cli::parse_report(text, "x.json"));
  } catch (const cli::Failure& failure) {
    const std::string line = failure.what();
    require(!line.empty() && line.size() < 400 && line.find('\n') == line.npos);
  }
  return 0;
}
