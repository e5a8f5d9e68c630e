// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/csv_output.h"

#include <cinttypes>

#include "tools/cli/report_page.h"

namespace cli {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char byte : text) {
    if (byte == '"') out += '"';
    out += byte;
  }
  return out + "\"";
}

std::string totals_row(const Report& report, const char* table, const std::string& name,
                       const std::string& kind, const CallTotals& totals) {
  CsvLine line;
  line.add(report.file).add(table).add(name).add(kind).add(totals.calls).add(totals.total_ns);
  line.add(totals.calls > 0 ? totals.min_ns : 0).add(totals.quantile_ns(0.5));
  line.add(totals.quantile_ns(0.99)).add(totals.max_ns).add(totals.flushed).add(totals.failed);
  line.add(totals.not_ready).add(totals.submit_ns).add(totals.amount).add(totals.pageable);
  return line.add("").add("").end();
}

std::string stack_of(const Sites& sites, const Site& site) {
  std::string stack;
  for (const Frame& frame : site.frames) {
    stack += (stack.empty() ? "" : ";") + frame_name(sites, frame);
  }
  return stack;
}

}  // namespace

CsvLine& CsvLine::add(const std::string& text) {
  text_ += (is_first_ ? "" : ",") + quoted(text);
  is_first_ = false;
  return *this;
}

std::string csv_head() {
  return "file,table,name,kind,calls,total_ns,min_ns,median_ns,p99_ns,max_ns,flushed,failed,"
         "not_ready,submit_ns,amount,pageable_calls,place,through\n";
}

std::string csv_rows(const Report& report) {
  std::string out;
  const Launches& launches = report.launches;
  out += totals_row(report, "launches", "queueing_calls", "", launches.queueing_calls);
  out += totals_row(report, "launches", "direct_calls", "", launches.direct_calls);
  out += totals_row(report, "launches", "replayed_batches", "", launches.replayed_batches);
  out += totals_row(report, "launches", "one_by_one_batches", "", launches.one_by_one_batches);
  for (const Entry& entry : report.entries) {
    out += totals_row(report, "entries", entry.name, entry.kind, entry.totals);
  }
  if (!report.sites) return out;
  for (const PlaceSum& place : places_of(*report.sites)) {
    CsvLine line;
    line.add(report.file).add("places").add(place.example->entry).add(place.example->kind);
    line.add(place.calls).add(place.total_ns).add("").add("").add("").add(place.max_ns);
    line.add(place.flushed).add("").add("").add("").add(place.bytes).add(place.pageable_calls);
    out += line.add(place.example->place).add(place.example->through.value_or("")).end();
  }
  return out;
}

std::string sites_csv(const Report& report) {
  std::string out =
      "entry,kind,calls,total_ns,max_ns,flushed,failed,not_ready,bytes,pageable_calls,place,"
      "through,"
      "stack\n";
  if (!report.sites) return out;
  for (const Site& site : report.sites->list) {
    CsvLine line;
    line.add(site.entry).add(site.kind).add(site.calls).add(site.total_ns).add(site.max_ns);
    line.add(site.flushed).add(site.failed).add(site.not_ready).add(site.bytes);
    line.add(site.pageable_calls).add(site.place).add(site.through.value_or(""));
    out += line.add(stack_of(*report.sites, site)).end();
  }
  return out;
}

}  // namespace cli
