// SPDX-License-Identifier: Apache-2.0
// Copies: checks, the documented host-side rules, and the operation. step() runs without the driver
// lock and touches only its own fields and memory.

#include "tools/softgpu/driver/copy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "tools/softgpu/driver/array.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/simple_operation.h"
#include "tools/softgpu/driver/stream.h"

namespace softgpu {
namespace {

// Random order interleaves copies with other work in pieces of this size; otherwise a piece only
// bounds how long one step takes.
constexpr std::size_t kRandomPiece = std::size_t{64} << 10;
constexpr std::size_t kPiece = std::size_t{16} << 20;

// One end of a copy.
struct Side {
  CUmemorytype type;
  std::uint64_t address;
  std::size_t x, y, z, pitch, height;

  std::size_t offset_of_row(std::size_t row, std::size_t slice) const {
    return ((z + slice) * height + y + row) * pitch + x;
  }
};

Side side_of(const Array& array, std::size_t x, std::size_t y, std::size_t z) {
  return {CU_MEMORYTYPE_ARRAY, array.base, x, y, z, array.pitch, array.rows};
}

Side source_of(const CopyWork& work) {
  const CUDA_MEMCPY3D& p = work.parameters;
  if (work.source_array != nullptr) {
    return side_of(*work.source_array, p.srcXInBytes, p.srcY, p.srcZ);
  }
  const auto address = p.srcMemoryType == CU_MEMORYTYPE_HOST
                           ? reinterpret_cast<std::uint64_t>(p.srcHost)
                           : static_cast<std::uint64_t>(p.srcDevice);
  return {p.srcMemoryType, address, p.srcXInBytes, p.srcY, p.srcZ, p.srcPitch, p.srcHeight};
}

Side destination_of(const CopyWork& work) {
  const CUDA_MEMCPY3D& p = work.parameters;
  if (work.destination_array != nullptr) {
    return side_of(*work.destination_array, p.dstXInBytes, p.dstY, p.dstZ);
  }
  const auto address = p.dstMemoryType == CU_MEMORYTYPE_HOST
                           ? reinterpret_cast<std::uint64_t>(p.dstHost)
                           : static_cast<std::uint64_t>(p.dstDevice);
  return {p.dstMemoryType, address, p.dstXInBytes, p.dstY, p.dstZ, p.dstPitch, p.dstHeight};
}

bool is_empty(const CUDA_MEMCPY3D& p) {
  return p.WidthInBytes == 0 || p.Height == 0 || p.Depth == 0;
}

std::size_t row_count(const CUDA_MEMCPY3D& p) {
  return p.Height * p.Depth;
}

// Offset of the first byte and of the byte after the last one.
std::pair<std::size_t, std::size_t> span_of(const Side& side, const CUDA_MEMCPY3D& p) {
  return {side.offset_of_row(0, 0), side.offset_of_row(p.Height - 1, p.Depth - 1) + p.WidthInBytes};
}

enum class Place { kDevice, kPinned, kPageable };

Place place_of(const Side& side, const CUDA_MEMCPY3D& p) {
  const auto [begin, end] = span_of(side, p);
  const auto allocation = find_allocation(side.address + begin, end - begin);
  if (allocation == nullptr) {
    const bool is_host = side.type == CU_MEMORYTYPE_HOST || side.type == CU_MEMORYTYPE_UNIFIED;
    return is_host ? Place::kPageable : Place::kDevice;
  }
  return allocation->is_host() ? Place::kPinned : Place::kDevice;
}

// No offset within the side, and no address, exceeds 64 bits.
bool is_addressable(const Side& side, const CUDA_MEMCPY3D& p) {
  std::size_t last = 0, end = 0;
  return !__builtin_add_overflow(side.z, p.Depth - 1, &last) &&
         !__builtin_mul_overflow(last, side.height, &last) &&
         !__builtin_add_overflow(last, side.y, &last) &&
         !__builtin_add_overflow(last, p.Height - 1, &last) &&
         !__builtin_mul_overflow(last, side.pitch, &end) &&
         !__builtin_add_overflow(end, side.x, &end) &&
         !__builtin_add_overflow(end, p.WidthInBytes, &end) &&
         !__builtin_add_overflow(end, side.address, &end);
}

bool is_within(std::size_t offset, std::size_t count, std::size_t limit) {
  return offset <= limit && count <= limit - offset;
}

CUresult check_array(const Array& array, const Side& side, const CUDA_MEMCPY3D& p) {
  const bool is_whole =
      side.x % array.element_size == 0 && p.WidthInBytes % array.element_size == 0;
  const bool is_inside = is_within(side.x, p.WidthInBytes, array.row_bytes) &&
                         is_within(side.y, p.Height, array.rows) &&
                         is_within(side.z, p.Depth, array.slices);
  return is_whole && is_inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A row pitch of 0 or a height of 0 is legal where it does not matter.
Side normalised(Side side, const CUDA_MEMCPY3D& p) {
  if (side.pitch == 0) side.pitch = side.x + p.WidthInBytes;
  if (side.height == 0) side.height = side.y + p.Height;
  return side;
}

CUresult check_memory(const Side& given, const CUDA_MEMCPY3D& p) {
  if (given.type < CU_MEMORYTYPE_HOST || given.type > CU_MEMORYTYPE_UNIFIED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (is_empty(p)) return CUDA_SUCCESS;
  const bool has_rows = p.Height > 1 || p.Depth > 1;
  if (has_rows && given.pitch < given.x + p.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  if (p.Depth > 1 && given.height < given.y + p.Height) return CUDA_ERROR_INVALID_VALUE;
  const Side side = normalised(given, p);
  if (side.address == 0 || !is_addressable(side, p)) return CUDA_ERROR_INVALID_VALUE;
  const auto [begin, end] = span_of(side, p);
  const bool is_live = find_allocation(side.address + begin, end - begin) != nullptr;
  const bool must_be_live =
      side.type == CU_MEMORYTYPE_DEVICE || is_device_address(side.address + begin);
  if (must_be_live && !is_live) return CUDA_ERROR_INVALID_VALUE;
  if (side.type == CU_MEMORYTYPE_HOST && is_device_address(side.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult check_side(const Array* array, const Side& side, const CUDA_MEMCPY3D& p) {
  if (array == nullptr) return check_memory(side, p);
  return is_empty(p) ? CUDA_SUCCESS : check_array(*array, side, p);
}

std::shared_ptr<const Array> live_array(CUarray handle) {
  auto array = find_array(handle);
  if (array == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return array;
}

class CopyOperation final : public SimpleOperation {
 public:
  CopyOperation(const CopyWork& work, std::uint64_t stream_ordinal, std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence),
        parameters_(work.parameters),
        staged_(work.staged),
        source_(normalised(source_of(work), parameters_)),
        destination_(normalised(destination_of(work), parameters_)) {
    if (staged_ != nullptr) {
      source_ = {CU_MEMORYTYPE_HOST,
                 reinterpret_cast<std::uint64_t>(staged_->data()),
                 0,
                 0,
                 0,
                 parameters_.WidthInBytes,
                 parameters_.Height};
    }
    if (is_logging()) set_log_text(describe());
  }

  bool step() override {
    if (is_empty(parameters_)) return true;
    if (from_ == nullptr && !resolve()) return fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    std::size_t budget = options().order == Order::kRandom ? kRandomPiece : kPiece;
    while (row_ < row_count(parameters_)) {
      const std::size_t part = std::min(budget, parameters_.WidthInBytes - column_);
      const std::size_t row = row_ % parameters_.Height, slice = row_ / parameters_.Height;
      std::memmove(to_ + destination_.offset_of_row(row, slice) + column_,
                   from_ + source_.offset_of_row(row, slice) + column_, part);
      column_ += part;
      budget -= part;
      if (column_ == parameters_.WidthInBytes) {
        column_ = 0;
        ++row_;
      }
      if (budget == 0) break;
    }
    return row_ == row_count(parameters_);
  }

 private:
  bool resolve() {
    from_ = resolve(source_, &source_owner_);
    to_ = resolve(destination_, &destination_owner_);
    if (from_ == nullptr || to_ == nullptr) return false;
    if (trace != nullptr) {
      touch_rows(ptx::AccessKind::kLoad, source_, source_owner_.get());
      touch_rows(ptx::AccessKind::kStore, destination_, destination_owner_.get());
    }
    return true;
  }

  void touch_rows(ptx::AccessKind kind, const Side& side, const Allocation* owner) {
    if (owner == nullptr) return;  // pageable
    for (std::size_t row = 0; row < row_count(parameters_); ++row) {
      const std::size_t offset =
          side.offset_of_row(row % parameters_.Height, row / parameters_.Height);
      touch(kind, *owner, side.address - owner->base + offset, parameters_.WidthInBytes);
    }
  }

  // Where the host finds the byte at offset 0 of a side; null when the range is gone.
  std::byte* resolve(const Side& side, std::shared_ptr<const Allocation>* owner) const {
    const auto [begin, end] = span_of(side, parameters_);
    *owner = find_allocation(side.address + begin, end - begin);
    if (*owner != nullptr) return (*owner)->bytes + (side.address - (*owner)->base);
    if (side.type == CU_MEMORYTYPE_DEVICE || side.type == CU_MEMORYTYPE_ARRAY ||
        is_device_address(side.address)) {
      return nullptr;
    }
    return reinterpret_cast<std::byte*>(side.address);
  }

  std::string describe() const {
    const std::string source = staged_ != nullptr ? "host" : describe(source_);
    return "copy " + std::to_string(parameters_.WidthInBytes) + "x" +
           std::to_string(parameters_.Height) + "x" + std::to_string(parameters_.Depth) + " " +
           source + " -> " + describe(destination_);
  }

  static std::string describe(const Side& side) {
    std::string text = describe_address(side.address);
    if (side.type == CU_MEMORYTYPE_ARRAY) {
      text += '[' + std::to_string(side.x) + ',' + std::to_string(side.y) + ',' +
              std::to_string(side.z) + ']';
    }
    return text;
  }

  const CUDA_MEMCPY3D parameters_;
  const std::shared_ptr<const std::vector<std::byte>> staged_;
  Side source_, destination_;
  std::shared_ptr<const Allocation> source_owner_, destination_owner_;
  std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  std::size_t row_ = 0, column_ = 0;  // the next byte to copy
};

// Reads the host buffer now, rows packed.
std::shared_ptr<const std::vector<std::byte>> stage(const CopyWork& work) {
  const CUDA_MEMCPY3D& p = work.parameters;
  const Side side = normalised(source_of(work), p);
  auto bytes = std::make_shared<std::vector<std::byte>>(p.WidthInBytes * row_count(p));
  const auto* const base = reinterpret_cast<const std::byte*>(side.address);
  for (std::size_t row = 0; row < row_count(p); ++row) {
    std::memcpy(bytes->data() + row * p.WidthInBytes,
                base + side.offset_of_row(row % p.Height, row / p.Height), p.WidthInBytes);
  }
  return bytes;
}

// As "API synchronization behavior" documents: copies within device memory never wait, others do
// when the entry is synchronous, and an asynchronous one when it ends in pageable memory or stays
// on the host.
bool is_waited_for(Place from, Place to, bool touches_managed, bool is_async) {
  if (from == Place::kPageable && to == Place::kDevice) return false;  // staged
  if (from != Place::kDevice && to != Place::kDevice) return true;
  if (is_async) return to == Place::kPageable;
  return from != Place::kDevice || to != Place::kDevice || touches_managed;
}

bool is_managed(std::uint64_t address) {
  const auto allocation = find_allocation(address);
  return allocation != nullptr && allocation->kind == MemoryKind::kManaged;
}

}  // namespace

CopyWork checked_copy(const CUDA_MEMCPY3D& parameters, Context& context) {
  CopyWork work;
  work.parameters = parameters;
  work.context = &context;
  if (parameters.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    work.source_array = live_array(parameters.srcArray);
  }
  if (parameters.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    work.destination_array = live_array(parameters.dstArray);
  }
  check(check_side(work.source_array.get(), source_of(work), parameters));
  check(check_side(work.destination_array.get(), destination_of(work), parameters));
  if (work.source_array != nullptr && work.destination_array != nullptr &&
      work.source_array->element_size != work.destination_array->element_size) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  return work;
}

CUDA_MEMCPY3D linear_copy(CUmemorytype to, std::uint64_t destination, CUmemorytype from,
                          std::uint64_t source, std::size_t bytes) {
  CUDA_MEMCPY3D p{};
  p.srcMemoryType = from;
  p.srcHost = from == CU_MEMORYTYPE_HOST ? reinterpret_cast<const void*>(source) : nullptr;
  p.srcDevice = from == CU_MEMORYTYPE_HOST ? 0 : source;
  p.dstMemoryType = to;
  p.dstHost = to == CU_MEMORYTYPE_HOST ? reinterpret_cast<void*>(destination) : nullptr;
  p.dstDevice = to == CU_MEMORYTYPE_HOST ? 0 : destination;
  p.WidthInBytes = bytes;
  p.Height = p.Depth = 1;
  return p;
}

CUresult submit_copy(Stream& stream, const CUDA_MEMCPY3D& parameters, bool is_async) {
  Context& context = *stream.context;
  CopyWork work = checked_copy(parameters, context);
  if (is_async && is_capturing(stream)) return capture_work(stream, std::move(work));
  if (!is_async) check(capture_forbids_sync(stream));
  if (stream.kind == StreamKind::kLegacy) check(capture_forbids_legacy(context));
  if (is_empty(parameters)) return CUDA_SUCCESS;
  const Side source = normalised(source_of(work), parameters);
  const Side destination = normalised(destination_of(work), parameters);
  const Place from = place_of(source, parameters), to = place_of(destination, parameters);
  const bool touches_managed = is_managed(source.address) || is_managed(destination.address);
  std::shared_ptr<Stream> kept;  // the lock is dropped while the host waits
  if (from == Place::kPageable && to == Place::kDevice) {
    // The entry without Async synchronises the stream before it starts.
    kept = shared_stream(stream);
    if (!is_async) wait_for_stream(stream);
    work.staged = stage(work);
  }
  const std::shared_ptr<Operation> operation = enqueue(stream, work);
  if (!is_waited_for(from, to, touches_managed, is_async)) return CUDA_SUCCESS;
  wait_for(operation);
  return sticky_error(context);
}

CUresult submit_copies(Stream& stream, std::vector<BatchedCopy> copies) {
  Context& context = *stream.context;
  std::vector<std::shared_ptr<Operation>> operations, reading;
  for (BatchedCopy& copy : copies) {
    const CUDA_MEMCPY3D& p = copy.work.parameters;
    if (is_empty(p)) continue;
    const bool is_on_host = place_of(normalised(source_of(copy.work), p), p) != Place::kDevice;
    if (copy.reads_now && is_on_host) copy.work.staged = stage(copy.work);
    operations.push_back(make_copy_operation(copy.work, stream.ordinal, stream.sequence++));
    if (copy.reads_now && !is_on_host) reading.push_back(operations.back());
  }
  enqueue_group(stream, std::move(operations), {});  // may drop the lock, as waiting does
  for (const auto& operation : reading) wait_for(operation);
  return reading.empty() ? CUDA_SUCCESS : sticky_error(context);
}

std::shared_ptr<Operation> make_copy_operation(const CopyWork& work, std::uint64_t stream_ordinal,
                                               std::uint64_t sequence) {
  return std::make_shared<CopyOperation>(work, stream_ordinal, sequence);
}

}  // namespace softgpu
