# SPDX-License-Identifier: Apache-2.0
"""What the tests of real clients share: a Python environment with packages from PyPI, and a client's
run with the preload library beside its bare one, with the library's own count of launches."""

import fcntl
import os
import subprocess
import sys
import tempfile

from compare import LONG_DEADLINE_US, Report, differences, oracle_differences

SKIPPED = 77  # as meson understands it


def has_package(python, name, version):
    probe = f"import importlib.metadata as m; exit(m.version({name!r}) != {version!r})"
    try:
        return subprocess.run([python, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def python_with(folder, name, version, *pip_arguments):
    """The Python of the environment `folder`, made when missing, once it has the package; None, with
    one line that says why, when the package is not to be had. Tests may share the folder."""
    python = os.path.join(folder, "bin", "python3")
    os.makedirs(folder, exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if has_package(python, name, version):
            return python
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        commands = [[*install, "--retries", "1", *pip_arguments, f"{name}=={version}"]]
        if not os.path.exists(python):
            commands.insert(0, [sys.executable, "-m", "venv", folder])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                why = (done.stderr or done.stdout).strip().splitlines()[-1:]
                print(f"skipped: {' '.join(command)} failed: {' '.join(why)}", file=sys.stderr)
                return None
        return python


def tail_of(run):
    return run.stderr.decode(errors="replace")[-2000:]


class Trial:
    """One program under one order, bare and then shimmed. Afterwards `found` has what is wrong, one
    line each, `bare` and `shimmed` the runs, `launches` the library's report."""

    def __init__(self, runner, command, order, oracle=None):
        self.runner, self.command, self.order, self.oracle = runner, command, order, oracle
        self.found, self.shimmed, self.launches = [], None, None
        self._folder = tempfile.TemporaryDirectory()
        self.bare = runner.run(command, shimmed=False, order=order, trace=self._trace("bare"))

    def _trace(self, name):
        return os.path.join(self._folder.name, name) if self.oracle else None

    def _run_shimmed(self, settings):
        path = os.path.join(self._folder.name, "report.json")
        extra = {
            "CAJETA_XPU_DEFER_DEADLINE_US": str(LONG_DEADLINE_US),  # no submission by time
            "CAJETA_XPU_DRIVER_PROFILE": "1",
            "CAJETA_XPU_REPORT": path,
            **settings,
        }
        trace = self._trace("shimmed")
        self.shimmed = self.runner.run(
            self.command, shimmed=True, order=self.order, extra=extra, trace=trace
        )
        self.launches = Report(path)

    def compare(self, log, settings=None):
        """Runs it shimmed. Every launch must have come by the library; whether some must be replayed
        is the caller's to say. `log` is what may be compared of the executed operations: all,
        shapes (a program that passes addresses of its own heap), none (one that asks whether a
        stream is idle, and acts on it)."""
        self._run_shimmed(settings or {})
        if log == "shapes":
            for run in (self.bare, self.shimmed):
                run.log = [line.split(" args ")[0] for line in run.log]
        self.found = differences(self.bare, self.shimmed, "none" if log == "none" else "ordered")
        made = self.bare.counters.get("cuLaunchKernel", 0)
        if self.launches.total != made:
            self.found.append(f"{made} launches bare, {self.launches.total} seen by the library")
        if self.launches.queued == 0:
            self.found.append("the library queued no launch")
        finished = "timeout" not in (self.bare.status, self.shimmed.status)
        if self.oracle and log == "all" and finished:
            self.found += oracle_differences(
                self.oracle, self._trace("bare"), self._trace("shimmed")
            )
        if self.found:
            self.found.append(tail_of(self.shimmed))

    def close(self):
        self._folder.cleanup()

    def report(self, name, summary):
        """Prints the outcome; the exit status."""
        outcome = "; ".join(self.found) if self.found else f"equal, {summary}"
        print(f"{name} {self.order}: {outcome}", flush=True)
        return 1 if self.found else 0
