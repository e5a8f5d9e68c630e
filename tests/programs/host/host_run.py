# SPDX-License-Identifier: Apache-2.0
"""Runs a program as a guest's host: bare, with the library merely preloaded, and with each of the things that it can do.
What the tests of this folder share; a test holds that a program's output and end are the same in every mode."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cases import SKIPPED, main as run_cases, require  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

# What each mode adds to the environment of a bare run, next to LD_PRELOAD.
MODES = {
    "bare": None,
    "preloaded": {},
    "disabled": {"CAJETA_XPU_DISABLE": "1"},
    "deferred": {"CAJETA_XPU_DEFER": "all"},
    "profiled": {
        "CAJETA_XPU_DEFER": "all",
        "CAJETA_XPU_DRIVER_PROFILE": "1",
        "CAJETA_XPU_DRIVER_SITES": "1",
    },
    "traced": {"CAJETA_XPU_DEFER": "all", "CAJETA_PROFILER": "1"},
}
SHIMMED = tuple(mode for mode in MODES if mode != "bare")


class Host:
    """The builds under test, and a folder of the test's own, which is every program's working folder."""

    def __init__(self, options, folder):
        self.softgpu, self.shim = os.path.abspath(options.softgpu), os.path.abspath(options.shim)
        self.programs, self.folder = os.path.abspath(options.programs), folder
        self.cli = os.path.abspath(options.cli) if options.cli else None

    def program(self, name):
        return os.path.join(self.programs, name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, mode, extra=None):
        """Of a run in `mode`. Report and trace go to files of the folder unless `extra` says otherwise."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("CAJETA_")}
        env["LD_LIBRARY_PATH"] = ":".join(filter(None, [self.softgpu, env.get("LD_LIBRARY_PATH", "")]))
        # The preload library stands before the sanitizer's runtime.
        env["ASAN_OPTIONS"] = ":".join(
            filter(None, [env.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0"])
        )
        if MODES[mode] is not None:
            env["LD_PRELOAD"] = " ".join(filter(None, [env.get("LD_PRELOAD", ""), self.shim]))
            env["CAJETA_XPU_REPORT"] = self.path(f"{mode}.report")  # text report: nothing reads numbers from it
            env["CAJETA_PROFILER_OUT"] = self.path(f"{mode}.pftrace")
            env.update(MODES[mode])
        env.update(extra or {})
        return env

    def run(self, command, mode, extra=None, timeout=60, **popen):
        """The finished process, with bytes; status "timeout" where it did not end."""
        options = {"cwd": self.folder, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options.update(popen)
        try:
            return subprocess.run(
                command, env=self.environment(mode, extra), timeout=timeout, check=False, **options,
            )
        except subprocess.TimeoutExpired as stuck:
            return subprocess.CompletedProcess(command, "timeout", stuck.stdout or b"", stuck.stderr or b"")

    def same_as_bare(self, command, modes=SHIMMED, extra=None, **options):
        """Status and standard output in each of `modes` are those of the bare run. The runs, by mode."""
        runs = {"bare": self.run(command, "bare", **options)}
        bare = runs["bare"]
        for mode in modes:
            runs[mode] = run = self.run(command, mode, extra, **options)
            end = (run.returncode, run.stdout)
            require(
                end == (bare.returncode, bare.stdout),
                f"{mode}: {end}, bare {(bare.returncode, bare.stdout)}\n{(run.stderr or b'').decode(errors='replace')}",
            )
        return runs


def main(cases, description):
    """The command line of a test whose cases are functions of a Host: that of cases.main(), and --cli FILE."""
    return run_cases(cases, description, Host, cli="the command cajeta-xpu")
