# SPDX-License-Identifier: Apache-2.0
"""Every lint script must pass on a small sound tree and find each fault planted in it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOLS = TOP / "tools"


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout + done.stderr


class Tree(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = pathlib.Path(self.directory.name)

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


class Includes(Tree):
    def setUp(self):
        super().setUp()
        self.put("runtime/entry.h", "#include <cuda.h>\n")
        self.put("runtime/driver_entries.def", "")
        self.put("graphs/replay.cpp", '#include "runtime/entry.h"\n')
        self.put("profiler/stats.h", '#include "runtime/entry.h"\n')
        self.put("shim/hook.cpp", '#include "graphs/replay.cpp"\n#include "profiler/stats.h"\n')
        self.put("tools/softgpu/a.h", '#include "tools/softgpu/b.h"\n#include "runtime/driver_entries.def"\n')
        self.put("tools/softgpu/b.h", "#include <zstd.h>\n")
        self.put("tests/unit/t.cpp", '#include "tools/softgpu/a.h"\n#include "shim/hook.cpp"\n')

    def check(self):
        return run(sys.executable, TOOLS / "check_includes.py", "--root", self.root)

    def expect_fault(self, name, include, message):
        self.put(name, include + "\n")
        code, output = self.check()
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)
        self.assertIn("1 faults", output)

    def test_sound_tree_passes(self):
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.assertIn("8 files", output)

    def test_upward_include_is_found(self):
        self.expect_fault("runtime/bad.h", '#include "graphs/replay.cpp"', "runtime must not include")

    def test_sideways_include_is_found(self):
        self.expect_fault("graphs/bad.h", '#  include "profiler/stats.h"', "graphs must not include")

    def test_softgpu_must_not_share_shim_code(self):
        self.expect_fault("tools/softgpu/c.h", '#include "runtime/entry.h"', "tools/softgpu must not include")

    def test_library_must_not_use_softgpu(self):
        self.expect_fault("shim/bad.h", '#include "tools/softgpu/b.h"', "shim must not include")

    def test_dot_dot_is_found(self):
        self.expect_fault("graphs/bad.h", '#include "../runtime/entry.h"', "not a path from the root")

    def test_path_from_the_folder_is_found(self):
        self.expect_fault("graphs/bad.h", '#include "replay.cpp"', "does not exist under the root")

    def test_project_file_in_angles_is_found(self):
        self.expect_fault("graphs/bad.h", "#include <runtime/entry.h>", "use quotes")

    def test_heavy_library_in_the_preload_library_is_found(self):
        self.expect_fault("graphs/bad.h", "#include <iostream>", "no place in the preload library")

    def test_cycle_is_found(self):
        self.put("runtime/x.h", '#include "runtime/y.h"\n')
        self.expect_fault("runtime/y.h", '#include "runtime/x.h"', "include cycle: runtime/x.h -> runtime/y.h -> runtime/x.h")

    def test_folder_without_a_rule_is_found(self):
        self.expect_fault("tools/new/a.h", '#include "runtime/entry.h"', "without a rule")


class DriverEntries(Tree):
    ROWS = {
        "cuCtxSynchronize": ("observe-all", "-", "ORD: FLUSH-ALL, forward.", "2000, , ObserveAll, FlushAll, None"),
        "cuEventRecord": ("stream-ordered", "1", "ORD: FLUSH(stream), forward.",
                          "2000, , StreamOrdered, FlushStream, Arg1"),
        "cuInit": ("pass", "-", "NONE: forward.", "2000, , Pass, Pass, None"),
    }

    INTEROP = "cuVDPAUGetDevice\tpass\t-\tNONE: forward.\trows/pass\n"
    INTEROP_ROW = "INTEROP_ENTRY(cuVDPAUGetDevice, cuVDPAUGetDevice, 3010, , Pass, Pass, None)\n"

    def check(self, table_edit=lambda text: text, tsv_edit=lambda text: text):
        table = "".join(f"DRIVER_ENTRY({name}, {name}, {row[3]})\n" for name, row in self.ROWS.items())
        head = "symbol\tclass\tstream\trule\ttest\n"
        tsv = head + "".join("\t".join((name, *row[:3], "rows/any")) + "\n" for name, row in self.ROWS.items())
        return run(sys.executable, TOOLS / "check_driver_entries.py",
                   "--table", self.put("t.def", table_edit(table + self.INTEROP_ROW)),
                   "--tsv", self.put("t.tsv", tsv_edit(tsv)), "--interop", self.put("i.tsv", head + self.INTEROP))

    def expect_fault(self, old, new, message, in_tsv=False):
        def edit(text):
            self.assertIn(old, text)
            return text.replace(old, new, 1)
        code, output = self.check(**{"tsv_edit" if in_tsv else "table_edit": edit})
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_agreement_passes(self):
        self.assertEqual(self.check(), (0, "3 rows and 1 of interop agree\n"))

    def test_stronger_rule_passes(self):
        self.assertEqual(self.check(lambda text: text.replace("FlushStream", "FlushAll"))[0], 0)

    def test_weaker_rule_is_found(self):
        self.expect_fault("FlushAll", "FlushStream", "rule FlushStream, the tsv asks for FlushAll")

    def test_flush_where_none_is_asked_is_found(self):
        self.expect_fault("Pass, Pass", "Pass, FlushAll", "cuInit: rule FlushAll, the tsv asks for Pass")

    def test_missing_flush_is_found(self):
        self.expect_fault("FlushStream", "Pass", "rule Pass, the tsv asks for FlushStream")

    def test_wrong_class_is_found(self):
        self.expect_fault("StreamOrdered", "ObserveAll", "class ObserveAll")

    def test_wrong_stream_is_found(self):
        self.expect_fault("Arg1", "Arg0", "stream Arg0")

    def test_missing_row_is_found(self):
        self.expect_fault("DRIVER_ENTRY(cuInit, cuInit, 2000, , Pass, Pass, None)\n", "", "in the tsv, not in the table")

    def test_extra_row_is_found(self):
        self.expect_fault("cuInit\tpass\t-\tNONE: forward.\trows/any\n", "", "in the table, not in the tsv", in_tsv=True)

    def test_missing_interop_row_is_found(self):
        self.expect_fault(self.INTEROP_ROW, "", "in the interop tsv, not in the table")

    def test_row_with_the_wrong_mark_is_found(self):
        code, output = self.check(lambda text: text.replace("INTEROP_ENTRY", "DRIVER_ENTRY"))
        self.assertEqual(code, 1, output)
        self.assertIn("cuVDPAUGetDevice: in the table, not in the tsv", output)
        self.assertIn("cuVDPAUGetDevice: in the interop tsv, not in the table", output)

    def test_double_row_is_found(self):
        row = "DRIVER_ENTRY(cuInit, cuInit, 2000, , Pass, Pass, None)\n"
        self.expect_fault(row, row + row, "appears twice")

    def test_unsorted_rows_are_found(self):
        self.expect_fault("DRIVER_ENTRY(cuCtxSynchronize, cuCtxSynchronize, 2000, , ObserveAll, FlushAll, None)\n"
                          "DRIVER_ENTRY(cuEventRecord, cuEventRecord, 2000, , StreamOrdered, FlushStream, Arg1)\n",
                          "DRIVER_ENTRY(cuEventRecord, cuEventRecord, 2000, , StreamOrdered, FlushStream, Arg1)\n"
                          "DRIVER_ENTRY(cuCtxSynchronize, cuCtxSynchronize, 2000, , ObserveAll, FlushAll, None)\n",
                          "not sorted")

    def test_malformed_row_is_found(self):
        self.expect_fault("2000, , Pass, Pass, None)", "2000, Pass, Pass, None)", "not a row of seven columns")


class NamedTests(Tree):
    def setUp(self):
        super().setUp()
        self.put("tests/unit/shim/a_test.cpp", 'TEST_CASE("in one piece") {}\nTEST_CASE(\n    "in two " "pieces", "[tag]") {}\n')
        self.put("build/meson-info/intro-tests.json", '[{"name": "a test"}]')

    def check(self, text):
        document = self.put("bugs.md", text)
        return run(sys.executable, TOOLS / "check_named_tests.py", "--root", self.root, "--build", self.root / "build",
                   document)

    def test_names_that_exist_pass(self):
        code, output = self.check("| unit: `in one piece`, unit: `in two pieces` |\n| test: `a test` |\n")
        self.assertEqual(code, 0, output)
        self.assertIn("3 tests named, 0 faults", output)

    def test_names_that_are_nowhere_are_found(self):
        code, output = self.check("unit: `in one`\ntest: `in one piece`\n")
        self.assertEqual(code, 1, output)
        self.assertIn("bugs.md:1: there is no unit `in one`", output)
        self.assertIn("bugs.md:2: there is no test `in one piece`", output)

    def test_a_document_that_names_nothing_is_found(self):
        self.assertEqual(self.check("nothing\n")[0], 1)


class Reports(Tree):
    """What a script makes CAJETA_XPU_REPORT."""
    def check(self, *lines):
        self.put("tools/script", "#!/usr/bin/env python3\n" + "\n".join(lines) + "\n")
        return run(sys.executable, TOOLS / "check_reports.py", "--root", self.root)

    def test_json_and_no_file_pass(self):
        code, output = self.check('path = os.path.join(folder, "r.json")', "run(CAJETA_XPU_REPORT=path)",
                                  'settings = {"CAJETA_XPU_REPORT": "none"}', 'env["CAJETA_XPU_REPORT"] = f"{folder}/r.json"',
                                  'env["CAJETA_XPU_REPORT"] = folder / "layout"  # text report')
        self.assertEqual((code, output), (0, "4 reports asked for, 0 faults\n"))

    def test_text_is_found(self):
        for line in ('run(CAJETA_XPU_REPORT=os.path.join(folder, "report"))', 'env["CAJETA_XPU_REPORT"] = f"{folder}/report.%p"',
                     'settings = {"CAJETA_XPU_REPORT": path}', 'env.update([("CAJETA_XPU_REPORT", "r.txt")])',
                     'def f():\n    path = "r.json"\npath = "r"\nrun(CAJETA_XPU_REPORT=path)'):
            code, output = self.check(line)
            self.assertEqual(code, 1, line)
            self.assertIn("is given a file that is not JSON", output)

    def test_tree_without_scripts_is_found(self):
        self.assertEqual(self.check("pass")[0], 1)


class Settings(Tree):
    """docs/settings.md against what a tool of one setting prints, and against softgpu's table."""
    ROW = 'SOFTGPU_SETTING(ORDER, "early, late", "When.", set_order)\n'

    def setUp(self):
        super().setUp()
        self.tool = self.put("tool", "#!/bin/sh\necho '| `CAJETA_XPU_DEFER` | all | unset | Which. |'\n")
        self.tool.chmod(0o755)
        self.table = self.put("tools/softgpu/driver/settings.def", "\n" + self.ROW)
        self.page = self.put("docs/settings.md", "# Settings\n<!-- From here on written by tools/settings_docs.py. -->\n")
        self.readme = self.put("README.md", "`CAJETA_XPU_DEFER` and `CAJETA_SOFTGPU_ORDER`\n")
        self.assertEqual(self.write()[0], 0)

    def write(self, *arguments):
        return run(sys.executable, TOOLS / "settings_docs.py", "--root", self.root, "--tool", self.tool, *arguments)

    def expect_fault(self, message):
        code, output = self.write("--check")
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_written_page_passes(self):
        code, output = self.write("--check")
        self.assertEqual((code, output), (0, "2 names of settings, 0 faults\n"))

    def test_changed_tables_are_found(self):
        self.table.write_text("\n" + self.ROW.replace("late", "later"), encoding="utf-8")
        self.expect_fault("is not what the tables say")
        self.table.write_text("\n" + self.ROW, encoding="utf-8")
        self.tool.write_text("#!/bin/sh\necho '| `CAJETA_XPU_DEFER` | none | unset | Which. |'\n", encoding="utf-8")
        self.expect_fault("is not what the tables say")

    def test_broken_row_is_found(self):
        self.table.write_text("\n" + self.ROW.replace('"When."', "kWhen"), encoding="utf-8")
        self.expect_fault("a row is not understood")

    def test_unknown_setting_is_found(self):
        self.readme.write_text("`CAJETA_XPU_DEFERS`\n", encoding="utf-8")
        self.expect_fault("README.md:1: there is no setting CAJETA_XPU_DEFERS")


class Documented(Tree):
    """tests/docs/documented_test.py on pages of a few lines."""
    TEXT = "```text\nthe answer 42 of 0.5 us\n...\n```\n"

    def setUp(self):
        super().setUp()
        tool = self.put("built/tools/cli/cajeta-xpu", "#!/bin/sh\n[ $1 = run ] && echo 'run --sites'\n")
        tool.chmod(0o755)
        (self.root / "docs").mkdir()

    def check(self, *lines):
        page = self.put("README.md", "\n".join(lines) + "\n")
        return run(sys.executable, TOP / "tests/docs/documented_test.py", "--root", self.root, "--build", self.root / "built", page)

    def expect_pass(self, count, *lines):
        code, output = self.check(*lines)
        self.assertEqual(code, 0, output)
        self.assertIn(f"README.md: {count} commands ran", output)

    def expect_fault(self, message, *lines):
        code, output = self.check(*lines)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def block(self, marker, *commands):
        return [f"<!-- {marker} -->", "```sh", *commands, "```"]

    def test_page_passes(self):
        self.put("given", "")
        self.expect_pass(4, *self.block("run: given mine = given", "mkdir sub && cd sub", "export SAID=42  # for later"),
                         *self.block("run: status 3; prints ^; shows", "# not typed", "echo ^ the answer \\",
                                     "  $SAID of 7 ms", "[ ! -e mine ] && [ -e ../mine ] && (exit 3)"), self.TEXT,
                         *self.block("not run: needs a GPU", "false"), "`cajeta-xpu run --sites -- ./a -b`")

    def test_status_is_checked(self):
        self.expect_fault("line 3: false: status 1, expected 0", *self.block("run", "false", "true"))
        self.expect_fault("status 0, expected 1", *self.block("run: status 1", "true"))
        self.expect_fault("status none", *self.block("run", "exit 0"))

    def test_output_is_checked(self):
        self.expect_fault("'yes' is not printed", *self.block("run: prints yes", "echo no"))
        self.expect_fault("a line as 'the answer 42 of 0.5 us' is not shown", *self.block("run: shows", "echo the answer"), self.TEXT)
        self.expect_pass(1, *self.block("run: shows; until answer", "true"), self.TEXT)
        self.expect_fault("has no 'question'", *self.block("run: shows; until question", "true"), self.TEXT)
        self.expect_fault("no text block follows", *self.block("run: shows", "echo the answer"))

    def test_command_without_a_check_is_found(self):
        for lines in (["```sh", "true", "```"], ["<!-- run -->", "Words.", "```sh", "true", "```"]):
            self.expect_fault("commands without a comment", *lines)
        self.expect_fault("not run, but no reason", *self.block("not run", "true"))
        self.expect_fault("is none of", *self.block("run: maybe", "true"))
        self.expect_fault("an indented command", "Words.", "", "    tools/test --quick")
        self.expect_fault("a block of the language 'bash'", "```bash", "true", "```")
        self.expect_fault("a command in a block of the language text", "```text", "$ true", "```")

    def test_name_that_is_nothing_is_found(self):
        self.put("tools/there", "--known\n")
        self.expect_pass(1, "`tools/there --known`", *self.block("run", "true"))
        self.expect_fault("knows no --unknown", "`tools/there --unknown`")
        self.expect_fault("there is no such command", "`tools/nowhere --known`")
        self.expect_fault("there is no such command", "`cajeta-xpu walk`")
        self.expect_pass(1, "[a](built/tools) [b](https://a/b) [c](#d)", *self.block("run", "true"))
        self.expect_fault("there is no docs/nowhere.md, which it links to", "[a](docs/nowhere.md#part)")
        self.expect_fault("knows no --sights", "`cajeta-xpu run --sights`")

    def test_manual_is_read(self):
        page = self.put("docs/man/a.1.in", '.\\" run: prints -b\n.nf\necho \\-b\n.fi\n')
        command = [sys.executable, TOP / "tests/docs/documented_test.py", "--root", self.root, "--build", self.root / "built"]
        self.assertIn("1 commands ran", run(*command, page)[1])
        page.write_text(".nf\ntrue\n.fi\n", encoding="utf-8")
        self.assertEqual(run(*command, page)[0], 1)


class CleanRoot(Tree):
    """What tools/clean-root says where it cannot work. What it does takes minutes, and root."""
    def say(self, *arguments, **environment):
        done = subprocess.run(["/bin/sh", TOOLS / "clean-root", *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        return done.returncode, done.stdout + done.stderr

    def test_unknown_command_is_refused(self):
        self.assertEqual(self.say("build"), (2, "usage: tools/clean-root [demo|test] [ARGUMENTS]\n"))

    def test_what_is_missing_is_named_in_one_line(self):
        self.put("id", "#!/bin/sh\necho 1000\n").chmod(0o755)
        code, output = self.say("demo", PATH=f"{self.root}:{os.environ['PATH']}")
        self.assertEqual((code, output), (1, "clean-root: needs root, for chroot and mounts: run it by sudo\n"))
        self.put("id", "#!/bin/sh\necho 0\n")
        for name in ("sh", "dirname"):
            (self.root / name).symlink_to(shutil.which(name))
        code, output = self.say("demo", PATH=str(self.root), CLEAN_ROOT_PATH=str(self.root))
        self.assertEqual((code, output), (1, "clean-root: no debootstrap here: apt-get install debootstrap git util-linux\n"))


class RowsTable(Tree):
    """The generator of tests/unit/rows understands every rule text of the tables, and says so of none else."""
    HEAD = "symbol\tclass\tstream-argument-index\trule\ttest\n"
    ROW = "cuEventRecord_ptsz\tstream-ordered\t1\tORD: FLUSH(stream), forward. Stream 0 here is the calling thread's " \
          "own stream (blocking, never queued): flush the legacy queue instead.\trows/stream\n"

    def convert(self, row):
        output = self.root / "rows.inc"
        code, text = run(sys.executable, TOP / "tests/unit/rows/rows_table.py", "--output", output,
                         self.put("t.tsv", self.HEAD + row))
        return code, text, output.read_text(encoding="utf-8") if code == 0 else ""

    def expect_fault(self, old, new, message):
        self.assertIn(old, self.ROW)
        code, text, _ = self.convert(self.ROW.replace(old, new, 1))
        self.assertEqual(code, 1, text)
        self.assertIn(message, text)

    def test_known_text_passes(self):
        self.assertEqual(self.convert(self.ROW),
                         (0, "", 'ROW(cuEventRecord_ptsz, Stream, Argument1, true, "rows/stream")\n'))

    def test_unknown_text_is_found(self):
        self.expect_fault("forward.", "forward, mostly.", "this rule is not understood")

    def test_unknown_stream_is_found(self):
        self.expect_fault("\t1\t", "\tx\t", "stream argument 'x' is not understood")

    def test_twin_without_its_stream_is_found(self):
        self.expect_fault(" Stream 0 here is the calling thread's own stream (blocking, never queued): flush the legacy "
                          "queue instead.", "", "does not say what stream 0 is")

    def test_row_without_a_test_is_found(self):
        self.expect_fault("rows/stream", "", "no test named")


class Exports(Tree):
    """Builds real shared libraries: what nm and readelf print is part of what is tested."""
    MAP = "T_1.0 { global: cajeta_xpu_version; local: _Z*; };\n"
    HEADER = "/* cajeta_xpu_nothing() */\nint cajeta_xpu_version(void);\n"
    CODE = "int cuInit(void){return 0;} int cuCtxSynchronize(void){return 0;}\n"

    def setUp(self):
        super().setUp()
        self.table = self.put("t.def", "DRIVER_ENTRY(cuCtxSynchronize, a, 1, , P, P, N)\nDRIVER_ENTRY(cuInit, a, 1, , P, P, N)\n")
        self.map = self.put("exports.map", self.MAP)
        self.header = self.put("xpu.h", self.HEADER)

    def build(self, name, code, *link):
        source = self.put("source.c", code)
        library = self.root / name
        subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", library, source, *link], check=True)
        return library

    def shim(self, code, *link, version_script=None):
        script = self.put("link.map", version_script or self.MAP)
        library = self.build("libcajeta_xpu.so", code, f"-Wl,--version-script={script}", "-Wl,-z,now", *link)
        return run(sys.executable, TOOLS / "check_exports.py", "--table", self.table, "--map", self.map, "--header", self.header,
                   "--shim", library)

    def softgpu(self, code, *link):
        library = self.build("libcuda.so.1", code, *link)
        return run(sys.executable, TOOLS / "check_exports.py", "--table", self.table, "--softgpu", library)

    def expect_fault(self, result, message):
        self.assertEqual(result[0], 1, result[1])
        self.assertIn(message, result[1])
        self.assertIn("1 faults", result[1])

    API = "int cajeta_xpu_version(void){return 1;} int cajeta_xpu_marker, _exit, _Exit, sigaltstack;\n"
    DLSYM = "void* dlsym(void* h, const char* n){return h ? h : (void*)n;}" + API

    def test_exact_exports_pass(self):
        code, output = self.shim(self.CODE + self.DLSYM)
        self.assertEqual(code, 0, output)

    def test_missing_row_is_found(self):
        self.expect_fault(self.shim("int cuInit(void){return 0;}\n" + self.DLSYM), "does not export cuCtxSynchronize")

    def test_missing_door_is_found(self):
        self.expect_fault(self.shim(self.CODE + self.API), "does not export dlsym")

    def test_planted_faults_are_found(self):
        self.expect_fault(self.shim(self.CODE + self.DLSYM + 'static const char m[] __attribute__((used)) = "CAJETA_XPU_MUTANT";\n'),
                          "has planted faults")

    def test_lazy_binding_is_found(self):
        self.expect_fault(self.shim(self.CODE + self.DLSYM, "-Wl,-z,lazy"), "is not linked with -z now")

    def test_leaked_symbol_is_found(self):
        self.expect_fault(self.shim(self.CODE + self.DLSYM + "int leaked;\n"), "exports leaked")

    def test_function_that_the_header_lacks_is_found(self):
        self.header.write_text("", encoding="utf-8")
        code, output = self.shim(self.CODE + self.DLSYM)
        self.assertEqual(code, 1, output)
        self.assertIn("exports cajeta_xpu_version", output)
        self.assertIn("names cajeta_xpu_version, which the header does not declare", output)

    def test_function_without_a_version_is_found(self):
        self.header.write_text(self.HEADER + "int cajeta_xpu_later(void);\n", encoding="utf-8")
        self.expect_fault(self.shim(self.CODE + self.DLSYM + "int cajeta_xpu_later;\n"),
                          "no version of the version script names cajeta_xpu_later")

    def test_function_under_another_version_is_found(self):
        self.expect_fault(self.shim(self.CODE + self.DLSYM, version_script=self.MAP.replace("T_1.0", "T_0.9")),
                          "as of T_0.9, not T_1.0")

    def test_wide_pattern_in_the_map_is_found(self):
        self.map.write_text(self.MAP.replace("global:", "global: cajeta_*;"), encoding="utf-8")
        self.expect_fault(self.shim(self.CODE + self.DLSYM), "pattern cajeta_*")

    def test_foreign_library_is_found(self):
        self.build("libforeign.so", "int foreign(void){return 0;}\n", "-Wl,-soname,libforeign.so.3")
        self.expect_fault(self.shim(self.CODE + self.DLSYM, "-Wl,--no-as-needed", str(self.root / "libforeign.so")),
                          "needs libforeign.so.3")

    def test_softgpu_exact_exports_pass(self):
        code, output = self.softgpu(self.CODE, "-Wl,-soname,libcuda.so.1")
        self.assertEqual(code, 0, output)

    def test_softgpu_extra_export_is_found(self):
        self.expect_fault(self.softgpu(self.CODE + "int extra;\n", "-Wl,-soname,libcuda.so.1"), "exports extra")

    def test_softgpu_wrong_soname_is_found(self):
        self.expect_fault(self.softgpu(self.CODE, "-Wl,-soname,libcuda.so.2"), "soname")


class Format(Tree):
    def check(self):
        self.put(".clang-format", (TOP / ".clang-format").read_text(encoding="utf-8"))
        return run("sh", TOOLS / "format.sh", "--check", FORMAT_ROOT=str(self.root))[0]

    def test_formatted_tree_passes(self):
        self.put("runtime/a.cpp", "int f() {\n  return 1;\n}\n")
        self.assertEqual(self.check(), 0)

    def test_unformatted_file_is_found(self):
        for name in ("runtime/a.cpp", "tools/deep/a.h", "tests/programs/a.cu"):
            path = self.put(name, "int  f( ) {return 1;}\n")
            self.assertNotEqual(self.check(), 0, name)
            path.unlink()

    def test_tables_are_left_alone(self):
        self.put("runtime/a.def", "ROW( a,   b )\n")
        self.assertEqual(self.check(), 0)


if __name__ == "__main__":
    unittest.main()
