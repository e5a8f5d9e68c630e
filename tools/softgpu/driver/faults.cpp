// SPDX-License-Identifier: Apache-2.0
// Parses the list of faults and counts the calls it speaks of.

#include "tools/softgpu/driver/faults.h"

#include <atomic>

#include "tools/softgpu/driver/error_names.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/parse.h"

namespace softgpu {
namespace {

bool parse_calls(std::string_view text, Fault* fault) {
  if (text == "*") {
    fault->last = ~0ull;
    return true;
  }
  const bool goes_on = text.ends_with('+');
  if (goes_on) text.remove_suffix(1);
  if (!parse_number<std::uint64_t>(text, 1, ~0ull, &fault->first)) return false;
  fault->last = goes_on ? ~0ull : fault->first;
  return true;
}

bool parse_fault(std::string_view text, Fault* fault) {
  const std::string_view name = take_until(':', &text);
  const std::string_view calls = take_until(':', &text);
  fault->is_any = name == "any";
  if (!fault->is_any && !find_entry_id(name, &fault->entry)) return false;
  if (!parse_calls(calls, fault)) return false;
  if (text.empty()) return true;
  const ErrorRow* const error = find_error(text);
  if (error == nullptr || error->code == CUDA_SUCCESS) return false;
  fault->code = error->code;
  return true;
}

}  // namespace

bool parse_faults(std::string_view text, std::vector<Fault>* faults) {
  if (text.ends_with(',')) return false;
  std::vector<Fault> parsed;
  do {
    Fault fault;
    if (!parse_fault(take_until(',', &text), &fault)) return false;
    parsed.push_back(fault);
  } while (!text.empty());
  faults->swap(parsed);
  return true;
}

CUresult next_fault(EntryId entry) {
  // Relaxed: only the numbers count.
  static std::atomic<std::uint64_t> calls[kEntryCount], all;
  const std::uint64_t call =
      calls[static_cast<std::size_t>(entry)].fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t call_of_all = all.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const Fault& fault : options().faults) {
    if (!fault.is_any && fault.entry != entry) continue;
    const std::uint64_t number = fault.is_any ? call_of_all : call;
    if (number >= fault.first && number <= fault.last) return fault.code;
  }
  return CUDA_SUCCESS;
}

}  // namespace softgpu
