#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs bare and with the preload library in company: beside other preloaded libraries, in hosts that never call
CUDA, that unload what uses it, or that are not written in C++.

    life_test.py CASE --softgpu DIR --shim FILE --host FILE --folder DIR --programs DIR

  idle        a program that never calls CUDA: one thread, nothing printed, nothing loaded
  unloading   a plugin and libcuda itself loaded, used and unloaded again and again
  interposer  beside another library that interposes dlsym, on either side of it
  jemalloc    beside jemalloc, on either side of it; 77 where it is not installed (CAJETA_TEST_JEMALLOC names another file)
  python      a Python host that later loads a C++ library which throws
  copies      the library named twice, and a second copy of the file
"""

import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cases import main, require  # noqa: E402  pylint: disable=wrong-import-position
from compare import LONG_DEADLINE_US, Runner  # noqa: E402  pylint: disable=wrong-import-position

class Tester:
    def __init__(self, options, _folder):
        self.options = options
        self.runner = Runner(options.softgpu, options.shim)
        self.shim = os.path.abspath(options.shim)

    def library(self, name):
        return os.path.join(self.options.folder, name)

    def run(self, command, preload, extra=None):
        """With exactly `preload`; deferral is on where the library is among it."""
        settings = {
            "LD_PRELOAD": " ".join(preload),
            "CAJETA_XPU_DEFER": "all",
            "CAJETA_XPU_DEFER_DEADLINE_US": str(LONG_DEADLINE_US),
        }
        settings.update(extra or {})
        return self.runner.run(command, shimmed=True, extra=settings)

    def compare(self, command, preload, extra=None, replays=True):
        """The program prints and returns what it does bare."""
        bare = self.runner.run(command, shimmed=False)
        require(bare.status == 0, f"bare: {bare.status}\n{bare.stderr.decode()}")
        shimmed = self.run(command, preload, extra)
        what = f"{' '.join(preload)}: {' '.join(command)}"
        require(shimmed.status == 0, f"{what}: status {shimmed.status}\n{shimmed.stderr.decode()}")
        require(shimmed.stdout == bare.stdout, f"{what}: prints {shimmed.stdout!r}, bare {bare.stdout!r}")
        added = shimmed.counters.get("cuGraphLaunch", 0) - bare.counters.get("cuGraphLaunch", 0)
        require(not replays or added > 0, f"{what}: nothing was replayed")
        return shimmed

    def scenario(self, name):
        return [os.path.join(self.options.programs, "scenarios"), name]


def idle(tester):
    shimmed = tester.compare([tester.options.host, "idle"], [tester.shim], replays=False)
    require(shimmed.stdout == b"threads 1\n", f"prints {shimmed.stdout!r}")
    require(shimmed.stderr == b"", f"says {shimmed.stderr!r}")
    # A program that has nothing to do with CUDA, and where no driver could be found.
    done = subprocess.run(
        ["/bin/sh", "-c", "ls /proc/$$/task | wc -l"],
        env={"PATH": os.environ["PATH"], "LD_PRELOAD": tester.shim, "CAJETA_XPU_DEFER": "all"},
        capture_output=True,
        check=False,
    )
    require((done.stdout.strip(), done.stderr) == (b"1", b""), f"sh: {done.stdout!r} {done.stderr!r}")


def unloading(tester):
    tester.compare([tester.options.host, "plugin", tester.library("libplugin.so")], [tester.shim])
    tester.compare([tester.options.host, "driver"], [tester.shim], replays=False)


def interposer(tester):
    other = tester.library("libinterposer.so")
    for preload in [tester.shim, other], [other, tester.shim]:
        for command in tester.scenario("alternating"), [tester.options.host, "driver"]:
            with tempfile.TemporaryDirectory() as folder:
                count = os.path.join(folder, "count")
                tester.compare(command, preload, {"INTERPOSER_COUNT": count}, command[-1] != "driver")
                with open(count, encoding="ascii") as file:
                    calls = int(file.read())
                # Behind the library it is not asked: docs/semantics.md.
                is_first = preload[0] == other
                require(calls > 0 or not is_first or command[-1] != "driver", "it was never asked")


def jemalloc(tester):
    other = os.environ.get("CAJETA_TEST_JEMALLOC") or ctypes.util.find_library("jemalloc")
    if other is None:
        return "jemalloc is not installed (Debian: libjemalloc2)"
    for preload in [tester.shim, other], [other, tester.shim]:
        for name in "alternating", "two_threads_two_streams", "exit_from_a_thread":
            tester.compare(tester.scenario(name), preload, replays=name == "alternating")


def python(tester):
    host = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host.py")
    tester.compare([sys.executable, host, tester.library("libthrower.so")], [tester.shim], replays=False)


def copies(tester):
    command = tester.scenario("alternating")
    shimmed = tester.compare(command, [tester.shim, tester.shim])
    require(shimmed.stderr == b"", f"named twice: {shimmed.stderr!r}")
    with tempfile.TemporaryDirectory() as folder:
        link = os.path.join(folder, "link.so")
        os.symlink(tester.shim, link)
        require(tester.compare(command, [tester.shim, link]).stderr == b"", "a second name is no copy")
        second = shutil.copy(tester.shim, os.path.join(folder, "second.so"))
        for preload in [tester.shim, second], [second, tester.shim]:
            lines = tester.compare(command, preload).stderr.decode().splitlines()
            require(len(lines) == 1 and "loaded twice" in lines[0], f"not one line: {lines}")


if __name__ == "__main__":
    sys.exit(
        main(
            (idle, unloading, interposer, jemalloc, python, copies),
            __doc__,
            Tester,
            host="the program of host.cpp",
            folder="of libinterposer.so, libplugin.so, libthrower.so",
        )
    )
