// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/parser.h"

#include <algorithm>
#include <charconv>

#include "tools/softgpu/ptx/declaration.h"
#include "tools/softgpu/ptx/function_parser.h"

namespace softgpu::ptx {
namespace {

// The linking directives before a declaration.
struct Linkage {
  bool external = false;
  bool weak = false;  // also .common: several definitions are one
};

// Directives between the head of a function and its body.
struct Limits {
  unsigned max_threads[3] = {0, 0, 0};
  unsigned required_threads[3] = {0, 0, 0};
  unsigned min_blocks = 0;
  unsigned max_registers = 0;
  bool no_return = false;
};

class ModuleParser {
 public:
  ModuleParser(std::string_view text, int device_cc)
      : cursor_(tokenize(text)), device_cc_(device_cc) {}

  RawModule run() {
    if (!cursor_.peek().is_dotted("version"))
      cursor_.fail_here("the text does not start with .version");
    while (!cursor_.at_end()) directive();
    return std::move(raw_);
  }

 private:
  void directive() {
    if (cursor_.accept(';')) return;
    if (cursor_.accept_dotted("version")) return version();
    if (cursor_.accept_dotted("target")) return target();
    if (cursor_.accept_dotted("address_size")) return address_size();
    if (cursor_.accept_dotted("pragma")) return cursor_.skip_statement();
    if (cursor_.accept_dotted("alias")) return alias();
    const Linkage linkage = read_linkage();
    if (cursor_.accept_dotted("entry")) return function(true, linkage);
    if (cursor_.accept_dotted("func")) return function(false, linkage);
    if (cursor_.accept_dotted("global")) {
      return parse_variables(cursor_, &raw_, VariableSpace::kGlobal, linkage.external, linkage.weak,
                             &raw_.names);
    }
    if (cursor_.accept_dotted("const")) {
      return parse_variables(cursor_, &raw_, VariableSpace::kConst, linkage.external, linkage.weak,
                             &raw_.names);
    }
    if (cursor_.accept_dotted("shared")) {
      return parse_shared(cursor_, &raw_, linkage.external, &raw_.names);
    }
    if (cursor_.peek().kind == TokenKind::kDotted) {
      cursor_.fail_here("'." + std::string(cursor_.peek().text) + "' is not supported");
    }
    cursor_.fail_expected("a directive");
  }

  Linkage read_linkage() {
    Linkage linkage;
    for (;;) {
      if (cursor_.accept_dotted("extern")) {
        linkage.external = true;
      } else if (cursor_.accept_dotted("weak") || cursor_.accept_dotted("common")) {
        linkage.weak = true;
      } else if (!cursor_.accept_dotted("visible")) {
        return linkage;
      }
    }
  }

  void version() {
    const Token& token = cursor_.take();
    const std::size_t dot = token.text.find('.');
    int major = 0, minor = 0;
    const auto read = [](std::string_view digits, int* value) {
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), *value);
      return error == std::errc() && end == digits.data() + digits.size() && *value < 100;
    };
    if (token.kind != TokenKind::kNumber || dot == std::string_view::npos ||
        !read(token.text.substr(0, dot), &major) || !read(token.text.substr(dot + 1), &minor)) {
      throw SyntaxError{token.line, "bad .version"};
    }
    if (major * 10 + minor > kNewestVersion) {
      throw SyntaxError{token.line, "PTX version " + std::string(token.text) + " is newer than 9.0",
                        true, false};
    }
  }

  void target() {
    do {
      const std::uint32_t line = cursor_.line();
      const std::string_view word = cursor_.expect_word("a target");
      if (word.starts_with("sm_")) {
        architecture(word, line);
      } else if (word != "texmode_unified" && word != "texmode_independent" && word != "debug" &&
                 word != "map_f64_to_f32") {
        cursor_.fail("unknown target '" + std::string(word) + "'");
      }
    } while (cursor_.accept(','));
  }

  // sm_90, sm_90a (that device only), sm_100f (that major version only).
  void architecture(std::string_view word, std::uint32_t line) {
    std::string_view digits = word.substr(3);
    const char last = digits.empty() ? '\0' : digits.back();
    if (last == 'a' || last == 'f') digits.remove_suffix(1);
    int cc = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), cc);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      cursor_.fail("unknown target '" + std::string(word) + "'");
    }
    const bool fits = last == 'a'   ? cc == device_cc_
                      : last == 'f' ? cc <= device_cc_ && cc / 10 == device_cc_ / 10
                                    : cc <= device_cc_;
    if (!fits) {
      throw SyntaxError{line,
                        "target " + std::string(word) + " does not run on a device of sm_" +
                            std::to_string(device_cc_),
                        false, true};
    }
  }

  void address_size() {
    if (cursor_.expect_count(64, "address size") != 64) {
      cursor_.fail("32-bit addresses are not supported");
    }
  }

  // .alias new, old: one more name for a function.
  void alias() {
    const std::string_view name = cursor_.expect_word("a function");
    cursor_.expect(',');
    const std::string_view target = cursor_.expect_word("a function");
    for (std::string_view word : {name, target}) {
      const auto found = raw_.names.find(word);
      if (found == raw_.names.end() || found->second.kind != SymbolKind::kFunction) {
        cursor_.fail("unknown function '" + std::string(word) + "'");
      }
    }
    raw_.aliases.emplace_back(raw_.names[name].index, raw_.names[target].index);
    cursor_.expect(';');
  }

  std::uint32_t function_index(std::string_view name) {
    const auto index = static_cast<std::uint32_t>(raw_.impl->functions.size());
    const auto [at, is_new] = raw_.names.emplace(name, Symbol{SymbolKind::kFunction, index, 0});
    if (!is_new) {
      if (at->second.kind != SymbolKind::kFunction) {
        cursor_.fail("'" + std::string(name) + "' is declared twice");
      }
      return at->second.index;
    }
    raw_.impl->functions.push_back(std::make_unique<Function>());
    raw_.impl->functions.back()->name = std::string(name);
    raw_.impl->functions.back()->index = index;
    raw_.info.emplace_back();
    return index;
  }

  void function(bool entry, const Linkage& linkage) {
    std::vector<ParameterDeclaration> results, parameters;
    if (cursor_.peek().is('(') && !entry) results = parse_parameters(cursor_);
    const std::uint32_t line = cursor_.line();
    const std::string_view name = cursor_.expect_word("a function name");
    if (cursor_.peek().is('(')) parameters = parse_parameters(cursor_);
    const Limits limits = read_limits();
    const std::uint32_t index = function_index(name);
    Function& declared = *raw_.impl->functions[index];
    declared.no_return |= limits.no_return;
    if (cursor_.accept(';')) return declare(&declared, entry, results, parameters);
    cursor_.expect('{');

    Function body;
    FunctionInfo info;
    body.name = declared.name;
    body.index = index;
    body.entry = entry;
    body.defined = true;
    body.no_return = declared.no_return;
    info.weak = linkage.weak;
    info.line = line;
    FunctionParser(cursor_, &raw_, &forms_, &body, &info).run(results, parameters);
    if (entry) lay_out_entry(&body, parameters);
    keep(std::move(body), std::move(info), limits, line);
  }

  void declare(Function* function, bool entry, const std::vector<ParameterDeclaration>& results,
               const std::vector<ParameterDeclaration>& parameters) {
    if (function->defined) return;
    function->entry = entry;
    function->parameters.clear();
    function->results.clear();
    const auto add = [](std::vector<Formal>* list, const ParameterDeclaration& parameter) {
      list->push_back({{OperandKind::kFrame, false, 0, 0}, parameter.size, parameter.align});
    };
    for (const auto& parameter : parameters) add(&function->parameters, parameter);
    for (const auto& result : results) add(&function->results, result);
  }

  void lay_out_entry(Function* function, const std::vector<ParameterDeclaration>& parameters) {
    std::uint32_t offset = 0;
    for (const ParameterDeclaration& parameter : parameters) {
      if (parameter.is_register) cursor_.fail("an entry has .param parameters only");
      offset = static_cast<std::uint32_t>(round_up(offset, parameter.align));
      Formal formal;
      formal.place = {OperandKind::kImm, false, 0, offset};
      formal.size = parameter.size;
      formal.align = parameter.align;
      function->parameters.push_back(formal);
      offset += parameter.size;
      if (offset > kMaxParamBytes) cursor_.fail("too many parameters");
    }
  }

  // Of several weak definitions the first stays; a strong one replaces it.
  void keep(Function body, FunctionInfo info, const Limits& limits, std::uint32_t line) {
    const std::uint32_t index = body.index;
    Function& there = *raw_.impl->functions[index];
    info.address_taken |= raw_.info[index].address_taken;
    if (there.defined) {
      if (!info.weak && !raw_.info[index].weak) {
        throw SyntaxError{line, "function '" + there.name + "' is defined twice"};
      }
      if (info.weak) return;
    }
    if (body.entry) add_kernel(body, limits);
    there = std::move(body);
    raw_.info[index] = std::move(info);
  }

  void add_kernel(const Function& function, const Limits& limits) {
    auto& kernels = raw_.impl->kernels;
    const auto old = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const Kernel& k) { return k.name == function.name; });
    Kernel& kernel = old != kernels.end() ? *old : kernels.emplace_back();
    kernel = {};
    kernel.name = function.name;
    kernel.function = raw_.impl->functions[function.index].get();
    for (const Formal& formal : function.parameters) {
      kernel.parameters.push_back({formal.place.value, formal.size, formal.align});
      kernel.parameter_bytes = formal.place.value + formal.size;
    }
    std::copy_n(limits.max_threads, 3, kernel.max_threads);
    std::copy_n(limits.required_threads, 3, kernel.required_threads);
    kernel.min_blocks = limits.min_blocks;
    kernel.max_registers = limits.max_registers;
  }

  Limits read_limits() {
    Limits limits;
    while (cursor_.peek().kind == TokenKind::kDotted) {
      const std::string_view word = cursor_.take().text;
      unsigned ignored[3] = {0, 0, 0};
      if (word == "maxntid") {
        read_triple(limits.max_threads);
      } else if (word == "reqntid") {
        read_triple(limits.required_threads);
      } else if (word == "minnctapersm" || word == "maxnctapersm") {
        limits.min_blocks = static_cast<unsigned>(cursor_.expect_count(1 << 16, "CTA count"));
      } else if (word == "maxnreg") {
        limits.max_registers = static_cast<unsigned>(cursor_.expect_count(1 << 16, "registers"));
      } else if (word == "noreturn") {
        limits.no_return = true;
      } else if (word == "pragma") {
        cursor_.skip_statement();
      } else if (word == "reqnctapercluster") {
        read_triple(ignored);
      } else if (word == "maxclusterrank" || word == "abi_preserve" ||
                 word == "abi_preserve_control") {
        cursor_.expect_count(1 << 16, "count");
      } else if (word != "explicitcluster" && word != "blocksareclusters" && word != "unique") {
        cursor_.fail("'." + std::string(word) + "' is not supported here");
      }
    }
    return limits;
  }

  void read_triple(unsigned (&values)[3]) {
    std::fill_n(values, 3, 1u);
    for (unsigned i = 0; i < 3; ++i) {
      values[i] = static_cast<unsigned>(cursor_.expect_count(0x7fffffff, "thread count"));
      if (i == 2 || !cursor_.accept(',')) return;
    }
  }

  Cursor cursor_;
  int device_cc_;
  RawModule raw_;
  FormCache forms_;
};

}  // namespace

RawModule parse_text(std::string_view text, int device_cc) {
  return ModuleParser(text, device_cc).run();
}

}  // namespace softgpu::ptx
