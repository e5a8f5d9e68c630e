// SPDX-License-Identifier: Apache-2.0
// Formats: Linux Standard Base 5.0, "Exception Frames", and DWARF 5, section 6.4. What compilers do
// not write for x86-64 (other encodings, other registers as the frame) is taken as unknown.
#include "profiler/trace/unwind_rules.h"

#include <elf.h>
#include <link.h>

#include <cstddef>

#include "profiler/loaded_object.h"
#include "profiler/trace/own_bytes.h"

namespace profiler {

#if defined(__x86_64__)
namespace {

// DWARF's numbers.
constexpr std::uint64_t kRbp = 6;
constexpr std::uint64_t kRsp = 7;
constexpr std::uint64_t kReturnAddress = 16;

// Encodings of pointers (DW_EH_PE_…).
constexpr std::uint8_t kOmitted = 0xff;
constexpr std::uint8_t kSizeMask = 0x0f;
constexpr std::uint8_t kUnsignedMask = 0x07;
constexpr std::uint8_t kRelativeMask = 0x70;
constexpr std::uint8_t kRelativeToPlace = 0x10;
constexpr std::uint8_t kSortedTable = 0x3b;  // data-relative, 4 bytes, signed

// A pointer; `encoding` without the part that says what it is relative to.
std::uint64_t sized(OwnBytes& bytes, std::uint8_t encoding) noexcept {
  switch (encoding & kSizeMask) {
    case 0x00:
    case 0x04:
    case 0x0c:
      return bytes.value<std::uint64_t>();
    case 0x02:
      return bytes.value<std::uint16_t>();
    case 0x03:
      return bytes.value<std::uint32_t>();
    case 0x0a:
      return static_cast<std::uint64_t>(std::int64_t{bytes.value<std::int16_t>()});
    case 0x0b:
      return static_cast<std::uint64_t>(std::int64_t{bytes.value<std::int32_t>()});
    default:
      bytes.fail();
      return 0;
  }
}

// The common part of the descriptions of an object file's functions.
struct Common {
  std::uint32_t code_unit = 1;
  std::int32_t data_unit = 1;
  std::uint8_t encoding = 0;
  bool has_augmentation = false;
  bool is_signal_frame = false;
  std::uintptr_t program = 0, program_end = 0;
};

// The part of the object that is one piece of its file with the table: there may be holes between
// such pieces. The first one begins with the file's header.
UnwindTable segment_of(const UnwindTable& object) noexcept {
  ElfW(Ehdr) file;
  __builtin_memcpy(&file, reinterpret_cast<const void*>(object.start), sizeof file);
  if (__builtin_memcmp(file.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (file.e_phentsize != sizeof(ElfW(Phdr)) || file.e_phoff + file.e_phnum * 64u > 4096) return {};
  const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(object.start + file.e_phoff);
  // Addresses in the file are told from the first piece's.
  std::uintptr_t base = 0;
  for (std::size_t i = 0; i < file.e_phnum; ++i) {
    const ElfW(Phdr)& header = headers[i];
    if (header.p_type != PT_LOAD) continue;
    if (header.p_offset == 0) base = object.start - header.p_vaddr;
    const std::uintptr_t start = base + header.p_vaddr;
    if (object.header < start || object.header - start >= header.p_filesz) continue;
    return {object.header, start + header.p_filesz, start};
  }
  return {};
}

// The function that starts last at or before `address`; 0: none.
std::uintptr_t find_description(const UnwindTable& table, std::uintptr_t address) noexcept {
  OwnBytes header(table.header, table.end);
  const auto version = header.value<std::uint8_t>();
  const auto frame_encoding = header.value<std::uint8_t>();
  const auto count_encoding = header.value<std::uint8_t>();
  const auto table_encoding = header.value<std::uint8_t>();
  if (version != 1 || table_encoding != kSortedTable || count_encoding == kOmitted) return 0;
  sized(header, frame_encoding);
  std::uint64_t count = sized(header, count_encoding);
  if (!header.is_good() || count == 0) return 0;

  struct Row {
    std::int32_t start, description;
  };
  const std::uintptr_t rows = header.at();
  if (count > (table.end - rows) / sizeof(Row)) return 0;
  const auto row = [rows](std::uint64_t number) noexcept {
    Row value;
    __builtin_memcpy(&value, reinterpret_cast<const Row*>(rows) + number, sizeof value);
    return value;
  };
  const auto wanted = static_cast<std::int64_t>(address - table.header);
  std::uint64_t first = 0;  // at or before the row that is looked for, if there is one
  while (count > 1) {
    const std::uint64_t half = count / 2;
    const bool is_behind = row(first + half).start <= wanted;
    if (is_behind) first += half;
    count = is_behind ? count - half : half;
  }
  if (row(first).start > wanted) return 0;
  return table.header + static_cast<std::uintptr_t>(std::intptr_t{row(first).description});
}

// Sets the end of the entry that `bytes` is at.
bool enter(OwnBytes& bytes) noexcept {
  const auto length = bytes.value<std::uint32_t>();
  if (length == 0 || length == 0xffffffffu) return false;
  bytes.limit(bytes.at() + length);
  return bytes.is_good();
}

bool read_common(std::uintptr_t at, std::uintptr_t end, Common* common) noexcept {
  OwnBytes bytes(at, end);
  if (!enter(bytes) || bytes.value<std::uint32_t>() != 0) return false;
  const std::uint8_t version = bytes.byte();
  if (version != 1 && version != 3) return false;
  char augmentation[8] = {};
  for (std::size_t i = 0;; ++i) {
    const auto letter = static_cast<char>(bytes.byte());
    if (letter == 0) break;
    if (i + 1 >= sizeof augmentation) return false;
    augmentation[i] = letter;
  }
  common->code_unit = static_cast<std::uint32_t>(bytes.unsigned_leb());
  common->data_unit = static_cast<std::int32_t>(bytes.signed_leb());
  const std::uint64_t return_register = version == 1 ? bytes.byte() : bytes.unsigned_leb();
  if (return_register != kReturnAddress) return false;
  if (augmentation[0] == 'z') {
    common->has_augmentation = true;
    const std::uint64_t size = bytes.unsigned_leb();
    common->program = bytes.at() + size;
  } else if (augmentation[0] != 0) {
    return false;
  } else {
    common->program = bytes.at();
  }
  for (const char* letter = augmentation; *letter != 0; ++letter) {
    if (*letter == 'R') common->encoding = bytes.byte();
    if (*letter == 'L') bytes.byte();
    if (*letter == 'S') common->is_signal_frame = true;
    if (*letter == 'P') sized(bytes, bytes.byte());
  }
  common->program_end = bytes.end();
  return bytes.is_good() && common->program <= bytes.end();
}

class Program {
 public:
  Program(const UnwindFunction& function, std::uintptr_t wanted) noexcept
      : function_(function),
        at_(function.start),
        wanted_(wanted),
        state_(function.initial),
        initial_(function.initial) {}

  // Up to the row of the wanted instruction.
  bool run(std::uintptr_t from, std::uintptr_t end) noexcept {
    OwnBytes bytes(from, end);
    while (!bytes.is_at_end() && at_ <= wanted_) {
      if (!step(bytes, bytes.byte())) return false;
    }
    return bytes.is_good();
  }
  const UnwindState& state() const noexcept { return state_; }

 private:
  static constexpr std::size_t kRemembered = 8;

  bool advance(std::uint64_t units) noexcept {
    at_ += units * function_.code_unit;
    return true;
  }
  bool set_frame(std::uint64_t number, std::int64_t offset) noexcept {
    state_.is_known = number == kRsp || number == kRbp;
    state_.rule.frame = UnwindRule::Frame::kRegister;
    state_.rule.is_from_frame_pointer = number == kRbp;
    state_.rule.offset = static_cast<std::int32_t>(offset);
    return true;
  }
  bool set_saved(std::uint64_t number, std::int64_t offset) noexcept {
    if (number == kReturnAddress) state_.returns = offset == -8;
    if (number != kRbp) return true;
    state_.rule.frame_pointer = UnwindRule::FramePointer::kAtFrame;
    state_.rule.frame_pointer_offset = static_cast<std::int32_t>(offset);
    return true;
  }
  // The register holds its value still, or none that matters.
  bool set_kept(std::uint64_t number) noexcept {
    if (number == kRbp) state_.rule.frame_pointer = UnwindRule::FramePointer::kKept;
    return true;
  }
  bool set_initial(std::uint64_t number) noexcept {
    if (number == kRbp) {
      state_.rule.frame_pointer = initial_.rule.frame_pointer;
      state_.rule.frame_pointer_offset = initial_.rule.frame_pointer_offset;
    }
    if (number == kReturnAddress) state_.returns = initial_.returns;
    return true;
  }
  void read_frame_expression(OwnBytes expression) noexcept;
  void read_saved_expression(std::uint64_t number, OwnBytes expression) noexcept;
  bool step(OwnBytes& bytes, std::uint8_t code) noexcept;
  bool step_expression(OwnBytes& bytes, std::uint8_t code) noexcept;

  const UnwindFunction& function_;
  std::uintptr_t at_, wanted_;
  UnwindState state_, initial_;
  UnwindState remembered_[kRemembered];
  std::size_t depth_ = 0;
};

// The three that are in use: register + offset, what lies there + a constant (functions that align
// their stack), and the linker's for its jump tables, whose push makes the frame larger halfway.
void Program::read_frame_expression(OwnBytes expression) noexcept {
  state_.is_known = false;
  const std::uint8_t base = expression.byte();
  if (base != 0x70 + kRsp && base != 0x70 + kRbp) return;
  const std::int64_t offset = expression.signed_leb();
  set_frame(base - 0x70u, offset);
  if (expression.is_at_end()) return;
  state_.is_known = false;
  const std::uint8_t next = expression.byte();
  if (next == 0x06) {  // dereference
    std::uint64_t addend = 0;
    if (!expression.is_at_end() && expression.byte() == 0x23) addend = expression.unsigned_leb();
    state_.rule.frame = UnwindRule::Frame::kLoaded;
    state_.rule.addend = static_cast<std::int32_t>(addend);
    state_.is_known = expression.is_good() && expression.is_at_end();
    return;
  }
  // breg16 0, lit15, and, lit<n>, ge, lit3, shl, plus
  const bool is_linkers = next == 0x80 && expression.byte() == 0 && expression.byte() == 0x3f &&
                          expression.byte() == 0x1a;
  const std::uint8_t threshold = expression.byte();
  if (!is_linkers || threshold < 0x30 || threshold > 0x3f || expression.byte() != 0x2a) return;
  if (expression.byte() != 0x33 || expression.byte() != 0x24) return;
  state_.is_known = expression.byte() == 0x22 && expression.is_good();
  if ((wanted_ & 15) >= threshold - 0x30u) state_.rule.offset += 8;
}

void Program::read_saved_expression(std::uint64_t number, OwnBytes expression) noexcept {
  if (number == kReturnAddress) state_.returns = false;
  if (number != kRbp) return;
  const std::uint8_t base = expression.byte();
  const std::int64_t offset = expression.signed_leb();
  state_.rule.frame_pointer = UnwindRule::FramePointer::kAtFramePointer;
  state_.rule.frame_pointer_offset = static_cast<std::int32_t>(offset);
  if (base != 0x70 + kRbp || !expression.is_at_end()) set_kept(number);
}

bool Program::step_expression(OwnBytes& bytes, std::uint8_t code) noexcept {
  const std::uint64_t number = code == 0x0f ? 0 : bytes.unsigned_leb();
  const std::uint64_t size = bytes.unsigned_leb();
  OwnBytes expression = bytes;
  bytes.skip(size);
  if (!bytes.is_good()) return false;
  expression.limit(bytes.at());
  if (code == 0x0f) read_frame_expression(expression);
  if (code == 0x10) read_saved_expression(number, expression);
  return true;
}

bool Program::step(OwnBytes& bytes, std::uint8_t code) noexcept {
  const std::uint64_t low = code & 0x3fu;
  switch (code & 0xc0) {
    case 0x40:
      return advance(low);
    case 0x80:
      return set_saved(low, static_cast<std::int64_t>(bytes.unsigned_leb()) * function_.data_unit);
    case 0xc0:
      return set_initial(low);
  }
  switch (code) {
    case 0x00:
      return true;  // nop
    case 0x02:
      return advance(bytes.value<std::uint8_t>());  // advance_loc1, 2, 4
    case 0x03:
      return advance(bytes.value<std::uint16_t>());
    case 0x04:
      return advance(bytes.value<std::uint32_t>());
    case 0x05: {  // offset_extended
      const std::uint64_t number = bytes.unsigned_leb();
      return set_saved(number,
                       static_cast<std::int64_t>(bytes.unsigned_leb()) * function_.data_unit);
    }
    case 0x06:
      return set_initial(bytes.unsigned_leb());  // restore_extended
    case 0x07: {                                 // undefined
      const std::uint64_t number = bytes.unsigned_leb();
      if (number == kReturnAddress) state_.returns = false;
      return set_kept(number);
    }
    case 0x08:
      return set_kept(bytes.unsigned_leb());  // same_value
    case 0x09: {                              // register
      const std::uint64_t number = bytes.unsigned_leb();
      bytes.unsigned_leb();
      if (number == kReturnAddress) state_.is_known = false;
      return set_kept(number);
    }
    case 0x0a:  // remember_state
      if (depth_ == kRemembered) return false;
      remembered_[depth_++] = state_;
      return true;
    case 0x0b:  // restore_state
      if (depth_ == 0) return false;
      state_ = remembered_[--depth_];
      return true;
    case 0x0c: {  // def_cfa
      const std::uint64_t number = bytes.unsigned_leb();
      return set_frame(number, static_cast<std::int64_t>(bytes.unsigned_leb()));
    }
    case 0x0d:
      return set_frame(bytes.unsigned_leb(), state_.rule.offset);  // def_cfa_register
    case 0x0e:                                                     // def_cfa_offset
      state_.rule.offset = static_cast<std::int32_t>(bytes.unsigned_leb());
      return true;
    case 0x0f:
    case 0x10:
    case 0x16:
      return step_expression(bytes, code);
    case 0x11: {  // offset_extended_sf
      const std::uint64_t number = bytes.unsigned_leb();
      return set_saved(number, bytes.signed_leb() * function_.data_unit);
    }
    case 0x12: {  // def_cfa_sf
      const std::uint64_t number = bytes.unsigned_leb();
      return set_frame(number, bytes.signed_leb() * function_.data_unit);
    }
    case 0x13:  // def_cfa_offset_sf
      state_.rule.offset = static_cast<std::int32_t>(bytes.signed_leb() * function_.data_unit);
      return true;
    case 0x14:
    case 0x15:  // val_offset
      bytes.unsigned_leb();
      bytes.unsigned_leb();
      return true;
    case 0x2e:
      bytes.unsigned_leb();
      return true;  // GNU_args_size
    default:
      return false;
  }
}

}  // namespace

bool start_unwind_rules() noexcept {
  return start_loaded_objects();
}

UnwindTable find_unwind_table(std::uintptr_t address) noexcept {
  LoadedObject found;
  if (!find_loaded_object(address, &found)) return {};
  if (found.unwind < found.start || found.unwind >= found.end) return {};
  return {found.unwind, found.end, found.start};
}

bool find_unwind_function(const UnwindTable& object, std::uintptr_t address,
                          UnwindFunction* function) noexcept {
  const UnwindTable table = segment_of(object);
  if (table.header == 0) return false;
  const std::uintptr_t description = find_description(table, address);
  if (description < table.start || description >= table.end) return false;
  OwnBytes bytes(description, table.end);
  if (!enter(bytes)) return false;
  const std::uintptr_t common_field = bytes.at();
  const auto back = bytes.value<std::uint32_t>();
  Common common;
  if (back == 0 || back > common_field - table.start) return false;
  if (!read_common(common_field - back, table.end, &common)) return false;

  const std::uintptr_t start_field = bytes.at();
  function->start = sized(bytes, common.encoding);
  const std::uint8_t relative = common.encoding & kRelativeMask;
  if (relative == kRelativeToPlace) function->start += start_field;
  if (relative != kRelativeToPlace && relative != 0) return false;
  function->end = function->start + sized(bytes, common.encoding & kUnsignedMask);
  if (common.has_augmentation) bytes.skip(bytes.unsigned_leb());
  function->program = bytes.at();
  function->program_end = bytes.end();
  function->code_unit = common.code_unit;
  function->data_unit = common.data_unit;
  function->is_signal_frame = common.is_signal_frame;
  function->initial = {};
  if (!bytes.is_good() || address < function->start || address >= function->end) return false;

  Program program(*function, address);
  if (!program.run(common.program, common.program_end)) return false;
  function->initial = program.state();
  return true;
}

UnwindRule read_unwind_rule(const UnwindFunction& function, std::uintptr_t address) noexcept {
  if (function.is_signal_frame) return {UnwindRule::Frame::kSignal};
  Program program(function, address);
  if (!program.run(function.program, function.program_end)) return {};
  const UnwindState& state = program.state();
  if (!state.returns) return {UnwindRule::Frame::kOutermost};
  return state.is_known ? state.rule : UnwindRule{};
}

#else

bool start_unwind_rules() noexcept {
  return false;
}
UnwindTable find_unwind_table(std::uintptr_t) noexcept {
  return {};
}
bool find_unwind_function(const UnwindTable&, std::uintptr_t, UnwindFunction*) noexcept {
  return false;
}
UnwindRule read_unwind_rule(const UnwindFunction&, std::uintptr_t) noexcept {
  return {};
}

#endif

}  // namespace profiler
