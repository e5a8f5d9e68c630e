// SPDX-License-Identifier: Apache-2.0
// Device printf, assert, malloc, free and cudaGraphSetConditional. Output goes to the Device in
// whole calls. Runs on the thread that steps the grid.
#include <cstdio>
#include <cstring>

#include "tools/softgpu/ptx/address.h"
#include "tools/softgpu/ptx/calls.h"

namespace softgpu::ptx {

namespace {

// One conversion of a printf format: "%-8.3lld".
struct Conversion {
  std::string flags;  // of "-+ #0", and width and precision as written, stars replaced
  unsigned long_count = 0;
  bool size_t_length = false;
  char letter = 0;
};

// vprintf packs its arguments like a C struct: int 4 bytes, long long, double and pointers 8, each
// aligned to its size.
class Arguments {
 public:
  Arguments(Exec& x, unsigned lane, std::uint64_t address) : x_(x), lane_(lane), next_(address) {}

  bool take(unsigned bytes, std::uint64_t* value) {
    next_ = (next_ + bytes - 1) / bytes * bytes;
    *value = 0;
    if (!read_generic(x_, lane_, next_, bytes, value)) return false;
    next_ += bytes;
    return true;
  }

 private:
  Exec& x_;
  unsigned lane_;
  std::uint64_t next_;
};

class Formatter {
 public:
  Formatter(Exec& x, unsigned lane, const std::string& format, std::uint64_t arguments)
      : x_(x), lane_(lane), format_(format), arguments_(x, lane, arguments) {}

  // False after a fault. `count` is the number of conversions, which is what device printf returns.
  bool run(std::string* out, int* count) {
    *count = 0;
    std::size_t at = 0;
    while (at < format_.size()) {
      if (format_[at] != '%') {
        out->push_back(format_[at++]);
        continue;
      }
      const std::size_t start = at++;
      Conversion conversion;
      if (!parse(&at, &conversion)) return false;
      if (conversion.letter == '%') {
        out->push_back('%');
      } else if (std::strchr("diouxXcsfFeEgGaAp", conversion.letter) != nullptr &&
                 conversion.letter != 0) {
        if (!convert(conversion, out)) return false;
        ++*count;
      } else {
        out->append(format_, start, at - start);
      }
    }
    return true;
  }

 private:
  bool parse(std::size_t* at, Conversion* c) {
    while (*at < format_.size() && std::strchr("-+ #0", format_[*at]) != nullptr)
      c->flags.push_back(format_[(*at)++]);
    if (!number(at, c)) return false;
    if (*at < format_.size() && format_[*at] == '.') {
      c->flags.push_back(format_[(*at)++]);
      if (!number(at, c)) return false;
    }
    while (*at < format_.size() && std::strchr("hljztL", format_[*at]) != nullptr) {
      const char length = format_[(*at)++];
      if (length == 'l') ++c->long_count;
      if (length == 'j' || length == 'z' || length == 't') c->size_t_length = true;
    }
    if (*at < format_.size()) c->letter = format_[(*at)++];
    return true;
  }

  // Digits, or a star that takes an int.
  bool number(std::size_t* at, Conversion* c) {
    if (*at < format_.size() && format_[*at] == '*') {
      ++*at;
      std::uint64_t value = 0;
      if (!arguments_.take(4, &value)) return false;
      c->flags += std::to_string(clamped(static_cast<std::int32_t>(value)));
      return true;
    }
    std::string digits;
    while (*at < format_.size() && format_[*at] >= '0' && format_[*at] <= '9')
      digits.push_back(format_[(*at)++]);
    if (digits.size() > 3) digits = std::to_string(kWidest);
    c->flags += digits;
    return true;
  }
  // A width in the millions is a mistake in the kernel; it must not eat the host's memory.
  static constexpr int kWidest = 999;
  static int clamped(int width) {
    return width > kWidest ? kWidest : width < -kWidest ? -kWidest : width;
  }

  template <class T>
  void print(const Conversion& c, const char* length, T value, std::string* out) {
    const std::string format = "%" + c.flags + length + c.letter;
    char text[2048];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int written = std::snprintf(text, sizeof text, format.c_str(), value);
#pragma GCC diagnostic pop
    if (written > 0)
      out->append(text, std::min<std::size_t>(sizeof text - 1, static_cast<std::size_t>(written)));
  }

  bool convert(const Conversion& c, std::string* out) {
    std::uint64_t bits = 0;
    switch (c.letter) {
      case 'd':
      case 'i':
      case 'o':
      case 'u':
      case 'x':
      case 'X': {
        // long is 8 bytes on the hosts CUDA supports here.
        const bool wide = c.long_count > 0 || c.size_t_length;
        if (!arguments_.take(wide ? 8 : 4, &bits)) return false;
        if (wide) {
          print(c, "ll", static_cast<long long>(bits), out);
        } else {
          print(c, "", static_cast<int>(bits), out);
        }
        return true;
      }
      case 'c':
        if (!arguments_.take(4, &bits)) return false;
        print(c, "", static_cast<int>(bits), out);
        return true;
      case 's': {
        if (!arguments_.take(8, &bits)) return false;
        std::string text = "(null)";
        if (bits != 0 && !read_string(x_, lane_, bits, &text)) return false;
        if (c.flags.empty()) {
          *out += text;
        } else {
          print(c, "", text.c_str(), out);
        }
        return true;
      }
      case 'p':
        if (!arguments_.take(8, &bits)) return false;
        print(c, "", reinterpret_cast<void*>(bits), out);
        return true;
      default: {
        if (!arguments_.take(8, &bits)) return false;
        print(c, "", std::bit_cast<double>(bits), out);
        return true;
      }
    }
  }

  Exec& x_;
  unsigned lane_;
  const std::string& format_;
  Arguments arguments_;
};

}  // namespace

void run_vprintf(Exec& x, const BuiltinCall& call, Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) {
    if (x.event == Event::kFault) return;
    std::string format;
    if (!read_string(x, lane, call.argument(0, lane), &format)) return;
    std::string text;
    int count = 0;
    if (!Formatter(x, lane, format, call.argument(1, lane)).run(&text, &count)) return;
    x.grid->device.print(text);
    call.set_result(lane, static_cast<std::uint32_t>(count));
  });
}

// __assertfail(message, file, line, function, char size): the text CUDA prints, then the grid
// stops.
void run_assertfail(Exec& x, const BuiltinCall& call, Mask lanes) {
  std::string output;
  for_each_lane(lanes, [&](unsigned lane) {
    if (x.event == Event::kFault) return;
    std::string message, file, function;
    if (!read_string(x, lane, call.argument(0, lane), &message)) return;
    if (!read_string(x, lane, call.argument(1, lane), &file)) return;
    if (!read_string(x, lane, call.argument(3, lane), &function)) return;
    const Dim3& block = x.cta->index;
    const auto at = [&](unsigned axis) {
      return static_cast<unsigned>(x.grid->thread_index[axis][x.warp->index].lane[lane]);
    };
    char where[96];
    std::snprintf(where, sizeof where, "block: [%u,%u,%u], thread: [%u,%u,%u]", block.x, block.y,
                  block.z, at(0), at(1), at(2));
    output += file + ":" + std::to_string(static_cast<std::uint32_t>(call.argument(2, lane))) +
              ": " + function + ": " + where + " Assertion `" + message + "` failed.\n";
  });
  if (x.event == Event::kFault) return;
  x.grid->device.print(output);
  x.fail(Fault::kAssert, static_cast<unsigned>(std::countr_zero(lanes)), "assertion failed");
}

void run_malloc(Exec& x, const BuiltinCall& call, Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) {
    const std::uint64_t size = call.argument(0, lane);
    call.set_result(lane, size == 0 ? 0 : x.grid->device.heap_allocate(size));
  });
  refresh_ranges(*x.grid);
}

void run_free(Exec& x, const BuiltinCall& call, Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) {
    if (x.event == Event::kFault) return;
    const std::uint64_t address = call.argument(0, lane);
    if (address == 0 || x.grid->device.heap_free(address)) return;
    char text[64];
    std::snprintf(text, sizeof text, "free of 0x%llx, which is not on the heap",
                  static_cast<unsigned long long>(address));
    x.fail(Fault::kIllegalAddress, lane, text);
  });
  refresh_ranges(*x.grid);
}

// cudaGraphSetConditional(handle, value): of lanes that disagree the last one's value stays.
void run_set_conditional(Exec& x, const BuiltinCall& call, Mask lanes) {
  for_each_lane(lanes, [&](unsigned lane) {
    if (x.event == Event::kFault) return;
    const std::uint64_t handle = call.argument(0, lane);
    const auto value = static_cast<std::uint32_t>(call.argument(1, lane));
    if (x.grid->device.set_condition(handle, value)) return;
    char text[96];
    std::snprintf(text, sizeof text,
                  "cudaGraphSetConditional of 0x%llx, which is no handle of this context",
                  static_cast<unsigned long long>(handle));
    x.fail(Fault::kIllegalAddress, lane, text);
  });
}

}  // namespace softgpu::ptx
