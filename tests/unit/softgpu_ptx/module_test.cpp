// SPDX-License-Identifier: Apache-2.0
// Calls, layouts, variables and what the driver is told.
#include "tools/softgpu/ptx/module.h"

#include <cstring>
#include <map>

#include "tests/unit/softgpu_ptx/ptx_text.h"
#include "tools/softgpu/ptx/memory.h"

namespace softgpu::ptx {
namespace {

template <typename T>
T read_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value{};
  REQUIRE(offset + sizeof(T) <= bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Places variables at 0x1000, 0x2000, ..
std::map<std::string, std::vector<std::byte>> placed(Module* module) {
  std::map<std::string, std::vector<std::byte>> bytes;
  std::uint64_t next = 0x1000;
  const bool ok = module->place(
      [&](const Variable&) { return std::exchange(next, next + 0x1000); },
      [&](const Variable& variable, const std::vector<std::byte>& b) { bytes[variable.name] = b; });
  REQUIRE(ok);
  return bytes;
}

TEST_CASE("entry parameters are laid out naturally", "[ptx][module]") {
  const auto module = parse(module_text(
      ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 4 b, .param .u16 c,\n"
      ".param .align 16 .b8 d[20], .param .u32 e)\n{ ret; }\n"));
  const Kernel* kernel = module->find_kernel("k");
  REQUIRE(kernel != nullptr);
  const std::size_t offsets[] = {0, 8, 16, 32, 52};
  const std::size_t sizes[] = {1, 8, 2, 20, 4};
  REQUIRE(kernel->parameters.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(kernel->parameters[i].offset == offsets[i]);
    CHECK(kernel->parameters[i].size == sizes[i]);
  }
  CHECK(kernel->parameters[3].align == 16);
  CHECK(kernel->parameter_bytes == 56);
  CHECK(module->find_kernel("other") == nullptr);
}

TEST_CASE("launch limits reach the kernel", "[ptx][module]") {
  const auto module =
      parse(module_text(".entry a() .maxntid 256 .minnctapersm 2 .maxnreg 40 { ret; }\n"
                        ".entry b() .reqntid 16, 8, 2 { ret; }\n"));
  const Kernel* a = module->find_kernel("a");
  CHECK(a->max_threads[0] == 256);
  CHECK(a->max_threads[1] == 1);
  CHECK(a->min_blocks == 2);
  CHECK(a->max_registers == 40);
  CHECK(a->registers <= 40);
  CHECK(a->registers > 0);
  CHECK(module->find_kernel("b")->required_threads[2] == 2);
  CHECK(module->find_kernel("b")->max_threads[0] == 0);
}

TEST_CASE("variables have their initial bytes and addresses", "[ptx][module]") {
  const auto module = parse(
      module_text(".visible .global .align 4 .u32 five = 5;\n"
                  ".global .f32 floats[3] = {1.0, 0f40000000};\n"
                  ".global .align 8 .u64 pointers[4] = {five, generic(floats)+4, helper, 7};\n"
                  ".global .u8 parts[2] = {0xff(five), 0xff00(five)};\n"
                  ".const .s16 grid[2][3] = {{1, 2}, {-3}};\n"
                  ".global .u32 open[] = {1, 2, 3, 4, 5};\n"
                  ".global .align 16 .b8 zero[100];\n"
                  ".global .attribute(.managed) .u32 shared_with_host = 1;\n"
                  ".global .v4 .f32 vector = {1.0, 2.0, 3.0, 4.0};\n"
                  ".func helper() { ret; }\n"));
  CHECK(module->variables().size() == 9);
  CHECK(module->find_variable("open")->size == 20);
  CHECK(module->find_variable("zero")->size == 100);
  CHECK(module->find_variable("zero")->align == 16);
  CHECK(module->find_variable("grid")->space == VariableSpace::kConst);
  CHECK(module->find_variable("shared_with_host")->managed);
  CHECK(module->find_variable("vector")->align == 16);
  CHECK(module->find_variable("nothing") == nullptr);

  auto bytes = placed(module.get());
  CHECK(module->find_variable("five")->address == 0x1000);
  CHECK(read_at<std::uint32_t>(bytes["five"], 0) == 5);
  CHECK(read_at<float>(bytes["floats"], 4) == 2.0f);
  CHECK(read_at<float>(bytes["floats"], 8) == 0.0f);
  CHECK(read_at<std::uint64_t>(bytes["pointers"], 0) == 0x1000);
  CHECK(read_at<std::uint64_t>(bytes["pointers"], 8) == 0x2004);
  CHECK(read_at<std::uint64_t>(bytes["pointers"], 16) == kCodeWindow + 0);
  CHECK(read_at<std::uint64_t>(bytes["pointers"], 24) == 7);
  CHECK(read_at<std::uint8_t>(bytes["parts"], 0) == 0x00);
  CHECK(read_at<std::uint8_t>(bytes["parts"], 1) == 0x10);
  CHECK(read_at<std::int16_t>(bytes["grid"], 2) == 2);
  CHECK(read_at<std::int16_t>(bytes["grid"], 6) == -3);
  CHECK(bytes["zero"].size() == 100);
  CHECK(read_at<float>(bytes["vector"], 12) == 4.0f);
}

TEST_CASE("placing stops when memory ends", "[ptx][module]") {
  const auto module = parse(module_text(".global .u32 a; .global .u32 b;\n"));
  int calls = 0;
  CHECK_FALSE(module->place([&](const Variable&) { return ++calls == 1 ? 0x1000 : 0; },
                            [](const Variable&, const std::vector<std::byte>&) { FAIL(); }));
}

TEST_CASE("bad initialisers are errors", "[ptx][module]") {
  for (const char* bad :
       {".global .u32 a[2] = {1, 2, 3};", ".global .u32 a = {1};", ".global .u32 a = nothing;",
        ".global .f32 a = 1;", ".global .u32 a[2] = {{1}};", ".global .pred a;",
        ".global .b8 a[99999999999999];", ".global .b8 a[1000000000][1000000000];",
        ".global .align 3 .b8 a;", ".global .u32 a = 5", ".global .u32 a; .global .u32 a;",
        ".global .b8 a[100000000][2] = {{1},{1}", ".global .u32 a; .func a() { ret; }"}) {
    CAPTURE(bad);
    parse_error(module_text(bad));
  }
}

TEST_CASE("a declaration and its definition are one", "[ptx][module]") {
  const auto module =
      parse(module_text(".extern .global .u32 g;\n.extern .func f();\n"
                        ".entry k() { .reg .b32 %r<2>; ld.global.u32 %r1, [g]; call f; ret; }\n"
                        ".version 8.0\n.target sm_80\n"  // a second unit, joined
                        ".visible .global .u32 g = 3;\n.visible .func f() { ret; }\n"));
  REQUIRE(module->variables().size() == 1);
  CHECK_FALSE(module->variables()[0].external);
  CHECK(module->variables()[0].initial.size() == 4);
  parse_error(module_text(".func f() { ret; }\n.func f() { ret; }\n"));
  parse(module_text(".weak .func f() { ret; }\n.weak .func f() { ret; }\n"));
  const auto weak = parse(module_text(".weak .func f() { ret; }\n.func f() { trap; ret; }\n"));
  CHECK(weak->impl().functions[0]->code[0].op == Opcode::kTrap);
}

constexpr const char* kCallText =
    ".func (.param .b64 out) f(.param .align 8 .b8 s[12], .param .b32 n)\n"
    "{ .reg .b32 %r<3>; .reg .b64 %rd<3>; .local .b8 buf[5];\n"
    "ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [s]; st.param.b64 [out+0], %rd1; ret; }\n"
    ".entry k() { .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
    "{ .param .align 8 .b8 p0[12]; st.param.b64 [p0+0], %rd1;\n"
    ".param .b32 p1; st.param.b32 [p1+0], %r1; .param .b64 r0;\n"
    "call.uni (r0), f, (p0, p1); ld.param.b64 %rd2, [r0+0]; }\n"
    "{ .param .b64 r1; call (r1), f, (p0, p1); }\nret; }\n";

TEST_CASE("calls go through frames", "[ptx][module]") {
  std::string text = kCallText;
  // The second call names parameters of a finished scope.
  CHECK(parse_error(module_text(text)).find("unknown symbol 'p0'") != std::string::npos);
  text.replace(text.find("{ .param .b64 r1"), std::string::npos, "ret; }\n");
  const auto module = parse(module_text(text));
  const Function& f = *module->impl().functions[0];
  const Function& k = *module->impl().functions[1];
  // buf takes 5 bytes, the formals start after it.
  REQUIRE(f.parameters.size() == 2);
  CHECK(f.parameters[0].place.kind == OperandKind::kFrame);
  CHECK(f.parameters[0].place.value == 16);
  CHECK(f.parameters[0].size == 12);
  CHECK(f.parameters[1].place.value == 28);
  CHECK(f.results[0].place.value == 32);
  CHECK(f.frame_bytes == 48);
  CHECK(f.code[0].space == Space::kLocal);
  CHECK(f.srcs(f.code[0])->kind == OperandKind::kAtFrame);
  CHECK(f.srcs(f.code[0])->value == 28);
  REQUIRE(k.calls.size() == 1);
  const Call& call = k.calls[0];
  CHECK_FALSE(call.indirect);
  CHECK(call.function == 0);
  CHECK(call.arguments[0].size == 12);
  CHECK(call.arguments[0].place.value == 0);
  CHECK(call.arguments[1].place.value == 12);
  CHECK(call.results[0].place.value == 16);
  CHECK(k.frame_bytes == 32);
  CHECK(module->kernels()[0].local_bytes == 80);
  CHECK_FALSE(f.recursive);
}

TEST_CASE("parameter space of finished calls is used again", "[ptx][module]") {
  std::string body;
  for (int i = 0; i < 50; ++i) {
    body += "{ .param .b64 p; st.param.b64 [p], %rd1; call f, (p); }\n";
  }
  const auto module = parse(kernel_text(body, ".func f(.param .b64 x) { ret; }\n"));
  CHECK(module->kernels()[0].function->frame_bytes == 16);
}

TEST_CASE("indirect calls and function addresses", "[ptx][module]") {
  const auto module = parse(module_text(
      ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r1, [x]; "
      "st.param.b32 [r], %r1; ret; }\n"
      ".entry k() { .reg .b64 %rd<3>; mov.u64 %rd1, f;\n"
      "{ .param .b32 p; .param .b32 q; proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
      "call (q), %rd1, (p), proto; }\nret; }\n"));
  const Function& k = *module->impl().functions[1];
  CHECK(k.srcs(k.code[0])->value == kCodeWindow + 0);
  REQUIRE(k.calls[0].indirect);
  CHECK(k.calls[0].pointer.kind == OperandKind::kReg);
}

TEST_CASE("recursion is seen", "[ptx][module]") {
  const auto module = parse(module_text(
      ".func a();\n.func b() { call a; ret; }\n.func a() { call b; ret; }\n.func c() { ret; }\n"
      ".func d() { .reg .b64 p; mov.u64 p, d; call p; ret; }\n"));
  std::map<std::string, bool> recursive;
  for (const auto& f : module->impl().functions) recursive[f->name] = f->recursive;
  CHECK(recursive["a"]);
  CHECK(recursive["b"]);
  CHECK_FALSE(recursive["c"]);
  CHECK(recursive["d"]);
}

TEST_CASE("register parameters and constants as arguments", "[ptx][module]") {
  const auto module = parse(
      module_text(".func (.reg .u32 r) f(.reg .u32 a, .reg .pred p) { add.u32 r, a, 1; ret; }\n"
                  ".entry k() { .reg .u32 x; .reg .pred q; call (x), f, (5, q); call (_), f, (x, "
                  "q); ret; }\n"));
  const Function& k = *module->impl().functions[1];
  CHECK(k.calls[0].arguments[0].place.kind == OperandKind::kImm);
  CHECK(k.calls[0].arguments[0].place.value == 5);
  CHECK(k.calls[0].arguments[1].place.kind == OperandKind::kPred);
  CHECK(k.calls[0].results[0].place.kind == OperandKind::kReg);
  CHECK(k.calls[1].results[0].place.kind == OperandKind::kSink);
}

TEST_CASE("device functions by name", "[ptx][module]") {
  const std::string declarations =
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".extern .func (.param .b64 r) malloc(.param .b64 a);\n";
  const auto module = parse(
      kernel_text("{ .param .b64 p; .param .b64 q; .param .b32 r; call.uni (r), vprintf, (p, q); }",
                  declarations));
  CHECK(module->impl().functions[0]->builtin == Builtin::kVprintf);
  CHECK(module->impl().functions[1]->builtin == Builtin::kMalloc);
  const std::string conditional =
      ".extern .func cudaGraphSetConditional(.param .b64 a, .param .b32 b);\n";
  CHECK(parse(module_text(conditional))->impl().functions[0]->builtin == Builtin::kSetConditional);
  parse_error(
      kernel_text("call cudaGraphSetConditional;", ".extern .func cudaGraphSetConditional();\n"));
  parse(module_text(".extern .func nobody();\n"));  // never called
  CHECK(parse_error(kernel_text("call nobody;", ".extern .func nobody();\n")) ==
        "ptx:8: unresolved function 'nobody'");
  parse_error(kernel_text("call vprintf;", ".extern .func vprintf();\n"));
  // A module's own malloc is not ours.
  const auto own = parse(module_text(".func malloc() { ret; }\n"));
  CHECK(own->impl().functions[0]->builtin == Builtin::kNone);
}

TEST_CASE("calls that do not fit are errors", "[ptx][module]") {
  const std::string f = ".func (.param .b32 r) f(.param .b64 x) { ret; }\n";
  for (const char* bad :
       {"call f;", "{ .param .b32 p; call f, (p); }", "{ .param .b64 p; call f, (p, p); }",
        "{ .param .b64 p; .param .b64 q; call (q), f, (p); }", "call k;", "call %r1, (%rd1), f;",
        "{ .param .b64 p; call f, (p), nothing; }", "{ .param .b64 p; call f, (%p1); }"}) {
    CAPTURE(bad);
    parse_error(kernel_text(bad, f));
  }
}

TEST_CASE("aliases", "[ptx][module]") {
  const auto module =
      parse(module_text(".func target() { trap; ret; }\n.func name();\n.alias name, target;\n"
                        ".entry k() { call name; ret; }\n"));
  const Function& k = *module->kernels()[0].function;
  const Function& callee = *module->impl().functions[k.calls[0].function];
  CHECK(callee.name == "name");
  CHECK(callee.defined);
  CHECK(callee.code[0].op == Opcode::kTrap);
  parse_error(module_text(".alias a, b;\n"));
}

TEST_CASE("shared memory of a kernel counts what it reaches", "[ptx][module]") {
  const auto module = parse(module_text(
      ".shared .align 8 .b8 common[64];\n.extern .shared .align 32 .b8 dyn[];\n"
      ".func f() { .shared .b32 inner[4]; .reg .b32 %r; mov.u32 %r, inner; ret; }\n"
      ".entry a() { .shared .align 16 .b8 own[1000]; .reg .b32 %r<3>; mov.u32 %r1, own;\n"
      "mov.u32 %r2, common; call f; ret; }\n"
      ".entry b() { .shared .align 16 .b8 own[2000]; .reg .b32 %r<4>; mov.u32 %r1, own;\n"
      "mov.u32 %r2, common; mov.u32 %r3, dyn; ret; }\n"
      ".entry c() { ret; }\n"));
  const Kernel* a = module->find_kernel("a");
  const Kernel* b = module->find_kernel("b");
  CHECK(a->static_shared_bytes == 64 + 16 + 1000 + (64 + 16) % 16);
  CHECK(b->static_shared_bytes == 64 + 2000);
  CHECK(module->find_kernel("c")->static_shared_bytes == 0);
  CHECK(b->function->dynamic_shared_offset == 2080);  // next multiple of 32
  // The same offset in both kernels.
  const auto value = [](const Kernel* kernel, std::size_t i) {
    return kernel->function->srcs(kernel->function->code[i])->value;
  };
  CHECK(value(a, 1) == value(b, 1));
  CHECK(value(a, 1) == 0);
  CHECK(value(b, 0) == 64);
}

TEST_CASE("reserved shared memory lies before dynamic shared memory", "[ptx][module]") {
  const auto module = parse(module_text(
      ".func f() { .reg .b32 %r; mov.u32 %r, %reserved_smem_offset_1; ret; }\n"
      ".entry a() { .shared .b8 own[100]; .reg .b32 %r; mov.u32 %r, own; call f; ret; }\n"
      ".entry b() { ret; }\n"));
  const Kernel* a = module->find_kernel("a");
  CHECK(a->static_shared_bytes == 100);
  CHECK(a->function->dynamic_shared_offset == 112 + 1024);
  const Function& f = *module->impl().functions[0];
  CHECK(f.srcs(f.code[0])->kind == OperandKind::kDynShared);
  CHECK(static_cast<std::int64_t>(f.srcs(f.code[0])->value) == -1024);
  CHECK(module->find_kernel("b")->function->dynamic_shared_offset == 0);
}

TEST_CASE("variables of one kernel do not overlap", "[ptx][module]") {
  const auto module =
      parse(module_text(".shared .b8 x[10]; .shared .align 8 .b8 y[10]; .shared .b8 z[10];\n"
                        ".entry a() { .reg .b32 %r; mov.u32 %r, x; mov.u32 %r, y; ret; }\n"
                        ".entry b() { .reg .b32 %r; mov.u32 %r, y; mov.u32 %r, z; ret; }\n"
                        ".entry c() { .reg .b32 %r; mov.u32 %r, x; mov.u32 %r, z; ret; }\n"));
  for (const Kernel& kernel : module->kernels()) {
    const Function& f = *kernel.function;
    const std::uint64_t first = f.srcs(f.code[0])->value, second = f.srcs(f.code[1])->value;
    CHECK((first + 10 <= second || second + 10 <= first));
    CHECK(std::max(first, second) + 10 <= kernel.static_shared_bytes);
  }
}

TEST_CASE("too much memory is an error", "[ptx][module]") {
  CHECK(parse_error(kernel_text("mov.u32 %r1, big;", ".shared .b8 big[49153];\n")) ==
        "ptx:5: 'k' uses more than 48 KB of static shared memory");
  parse(kernel_text("mov.u32 %r1, big;", ".shared .b8 big[49152];\n"));
  parse_error(kernel_text(".local .b8 big[1000000];"));
  parse_error(module_text(".entry k(.param .b8 p[40000]) { ret; }\n"));
}

}  // namespace
}  // namespace softgpu::ptx
