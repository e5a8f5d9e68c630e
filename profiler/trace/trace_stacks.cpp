// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_stacks.h"

#include <algorithm>

#include "profiler/loaded_object.h"

namespace profiler {
namespace {

namespace interned = perfetto::interned;

// What a frame's names may take of the trace when it is full: two of them, see trace_symbols.h.
constexpr std::size_t kNameReserve = 768;

// What lies at the address: it may mean something else after a library was unloaded.
std::uint64_t object_at(std::uintptr_t address, LoadedObject* last) noexcept {
  if ((address < last->start || address >= last->end) && !find_loaded_object(address, last)) {
    *last = {};
    return 0;
  }
  return hash_next(reinterpret_cast<std::uintptr_t>(last->map), last->start ^ last->unwind);
}

std::uint64_t module_iid(std::uint16_t module) noexcept {
  if (module == kPythonModule) return kMaxModules + 2;
  return std::min<std::uint64_t>(module, kMaxModules) + 1;
}

}  // namespace

const char* trace_path(std::uint16_t module) noexcept {
  if (module == kPythonModule) return "[python]";
  const Module* found = module_at(module);
  if (found == nullptr) return "[anonymous]";
  return found->path[0] != '\0' ? found->path : "[unknown]";
}

std::uintptr_t file_address(const TraceFrame& frame) noexcept {
  if (frame.module == kPythonModule) {
    return reinterpret_cast<const PythonPlace*>(frame.address)->number;
  }
  const Module* module = module_at(frame.module);
  return module != nullptr ? frame.address - module->base : frame.address;
}

bool TraceStacks::start(TraceFile* file, ProtobufWriter* out) noexcept {
  file_ = file;
  out_ = out;
  return frame_ids_.map() && stack_ids_.map() && frames_.map() && recent_.map() && write_opening();
}

void TraceStacks::release() noexcept {
  frame_ids_.unmap();
  stack_ids_.unmap();
  frames_.unmap();
  recent_.unmap();
}

bool TraceStacks::write_opening() noexcept {
  if (!write_module(kNoModule)) return false;
  out_->clear();
  {
    const TracePacket packet(out_);
    const ProtobufMessage data(out_, perfetto::packet::kInternedData);
    add_interned_text(out_, interned::kFunctionName, 1, "(table full)");
    {
      const ProtobufMessage frame(out_, interned::kFrame);
      out_->add(interned::kIid, kFullFrame);
      out_->add(perfetto::frame::kFunctionName, 1);
      out_->add(perfetto::frame::kMapping, module_iid(kNoModule));
    }
    const ProtobufMessage stack(out_, interned::kCallstack);
    out_->add(interned::kIid, kFullStack);
    out_->add(perfetto::callstack::kFrame, kFullFrame);
  }
  return file_->append(out_->data(), out_->size());
}

std::uint64_t TraceStacks::find(const TraceStack& stack, bool is_first_exact) noexcept {
  if (file_->is_closed()) return 0;
  std::uintptr_t returns[kTraceDepth];
  std::size_t depth = 0;
  std::uint64_t key = 0;
  LoadedObject last{};
  for (std::size_t i = 0; i < stack.depth && depth < kTraceDepth; ++i) {
    if (stack.addresses[i] == 0) continue;
    returns[depth] = stack.addresses[i] + (is_first_exact && i == 0 ? 1 : 0);
    key = hash_next(key, returns[depth] + object_at(returns[depth] - 1, &last));
    ++depth;
  }
  if (depth == 0 && stack.python == nullptr) return 0;
  key = hash_next(key, reinterpret_cast<std::uintptr_t>(stack.python));
  Recent& recent = recent_[key % kRecent];
  if (recent.iid == 0 || recent.key != key) recent = {key, write(returns, depth, stack.python)};
  return recent.iid;
}

std::uint64_t TraceStacks::write(const std::uintptr_t* returns, std::size_t depth,
                                 const PythonPlace* python) noexcept {
  std::uint16_t modules[kTraceDepth];
  find_modules(returns, modules, depth, WhoseStack::kOther);
  for (std::size_t i = 0; i < depth; ++i) {
    if (!write_module(modules[i])) return 0;
  }
  if (python != nullptr && !write_module(kPythonModule)) return 0;
  out_->clear();
  std::uint64_t key = depth;
  std::uint64_t iid;
  {
    const TracePacket packet(out_);
    const ProtobufMessage data(out_, perfetto::packet::kInternedData);
    std::uint64_t frames[kTraceDepth];
    for (std::size_t i = 0; i < depth; ++i) {
      frames[i] = write_frame({returns[i] - 1, modules[i]});
      key = hash_next(key, frames[i]);
    }
    std::uint64_t innermost = 0;
    if (python != nullptr) {
      innermost = write_frame({reinterpret_cast<std::uintptr_t>(python), kPythonModule});
      key = hash_next(key, innermost);
    }
    iid = stack_ids_.find(key);
    if (iid != 0) return iid;  // then its frames are known, too
    iid = stack_ids_.is_full() ? kFullStack : stack_ids_.add(key);
    if (iid != kFullStack) {
      const ProtobufMessage stack(out_, interned::kCallstack);
      out_->add(interned::kIid, iid);
      for (std::size_t i = depth; i > 0; --i) out_->add(perfetto::callstack::kFrame, frames[i - 1]);
      if (innermost != 0) out_->add(perfetto::callstack::kFrame, innermost);
    }
  }
  if (iid == kFullStack && frame_ids_.count() == frame_count_) return iid;
  if (!file_->append(out_->data(), out_->size())) return 0;
  file_->reserve((frame_ids_.count() - frame_count_) * kNameReserve);
  frame_count_ = frame_ids_.count();
  return iid;
}

// Known frames write nothing.
std::uint64_t TraceStacks::write_frame(const TraceFrame& frame) noexcept {
  // Addresses of programs have 47 bits.
  const std::uint64_t key = frame.address + (std::uint64_t{frame.module} << 48);
  std::uint64_t iid = frame_ids_.find(key);
  if (iid != 0) return iid;
  if (frame_ids_.is_full()) return kFullFrame;
  iid = frame_ids_.add(key);
  frames_[iid - 1] = frame;
  const ProtobufMessage message(out_, interned::kFrame);
  out_->add(interned::kIid, iid);
  out_->add(perfetto::frame::kMapping, module_iid(frame.module));
  out_->add(perfetto::frame::kAddress, file_address(frame));
  return iid;
}

bool TraceStacks::write_module(std::uint16_t module) noexcept {
  const std::uint64_t iid = module_iid(module);
  if (is_module_written_[iid - 1]) return true;
  const Module* found = module_at(module);
  const char* path = trace_path(module);
  out_->clear();
  {
    const TracePacket packet(out_);
    const ProtobufMessage data(out_, perfetto::packet::kInternedData);
    // Readers put a slash before each part of a path.
    add_interned_text(out_, interned::kMappingPath, iid, path[0] == '/' ? path + 1 : path);
    const bool has_build_id = found != nullptr && found->build_id_bytes > 0;
    if (has_build_id) {
      const ProtobufMessage entry(out_, interned::kBuildId);
      out_->add(interned::kIid, iid);
      out_->add_bytes(interned::kText, found->build_id, found->build_id_bytes);
    }
    const ProtobufMessage mapping(out_, interned::kMapping);
    out_->add(interned::kIid, iid);
    if (has_build_id) out_->add(perfetto::mapping::kBuildId, iid);
    if (found != nullptr) {
      out_->add(perfetto::mapping::kStart, found->start);
      out_->add(perfetto::mapping::kEnd, found->end);
    }
    out_->add(perfetto::mapping::kPath, iid);
  }
  is_module_written_[iid - 1] = file_->append(out_->data(), out_->size());
  return is_module_written_[iid - 1];
}

}  // namespace profiler
