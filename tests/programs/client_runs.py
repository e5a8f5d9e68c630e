# SPDX-License-Identifier: Apache-2.0
"""What the tests of real clients share: a Python environment with packages from PyPI, and a client's
run with the preload library beside its bare one, with the library's own count of launches."""

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile

from compare import LONG_DEADLINE_US, Report, differences, oracle_differences

BINDINGS = "13.0.3"  # of cuda-bindings, in the environment of every test that has it
NUMBA = "0.30.4"  # of numba-cuda
LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx")


def has_package(python, name, version):
    probe = f"import importlib.metadata as m; exit(m.version({name!r}) != {version!r})"
    try:
        return subprocess.run([python, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


@contextlib.contextmanager
def environment(folder):
    """The Python of the environment `folder`, which is made when it is missing and has a pip, whatever
    the machine's own Python lacks. Needs no network. No other test changes the folder meanwhile."""
    python = os.path.join(folder, "bin", "python3")
    os.makedirs(folder, exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # What a test that was killed left half made has no pip either.
        if not os.path.exists(os.path.join(folder, "bin", "pip")):
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        yield python


def python_with(folder, name, version, *pip_arguments):
    """The Python of the environment `folder`, made when missing, once it has the package; None, with
    one line that says why, when the package is not to be had. Tests may share the folder."""
    with environment(folder) as python:
        if has_package(python, name, version):
            return python
        command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        command += ["--retries", "1", *pip_arguments, f"{name}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = (done.stderr or done.stdout).strip().splitlines()[-1:]
            print(f"skipped: {' '.join(command)} failed: {' '.join(why)}", file=sys.stderr)
            return None
        return python


def folders_of(toolkit):
    """Where a toolkit, NVIDIA's or what tools/setup.sh makes of wheels, has its libraries."""
    folders = (os.path.join(toolkit, folder) for folder in ("nvvm/lib64", "lib64", "lib"))
    return [folder for folder in folders if os.path.isdir(folder)]


def numba_python(folder, toolkit):
    """The Python of the environment `folder` with Numba for CUDA, or None as python_with()."""
    needs = ["numba==0.68.1", "llvmlite==0.50.0", "cuda-core==1.2.2", f"cuda-bindings=={BINDINGS}"]
    if not any(os.path.exists(os.path.join(f, "libnvrtc.so.13")) for f in folders_of(toolkit)):
        needs.append("nvidia-cuda-nvrtc==13.0.88")  # asked which devices it may compile for
    return python_with(folder, "numba-cuda", NUMBA, "--only-binary", ":all:", *needs)


def numba_environment(toolkit, folder):
    """What makes Numba run on softgpu: libnvvm from the toolkit, and in `folder` a libnvJitLink
    without functions, so that cuda.core links by the driver, which leaves PTX what it is."""
    compiler = os.environ.get("CC", "cc").split()
    empty = os.path.join(folder, "libnvJitLink.so.13")
    subprocess.run(
        [*compiler, "-shared", "-x", "c", "-", "-o", empty], input=b"typedef int none;", check=True
    )
    folders = [folder, *folders_of(toolkit)]
    return {
        "CUDA_HOME": toolkit,
        "LD_LIBRARY_PATH": os.pathsep.join(folders),
        "NUMBA_CACHE_DIR": folder,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


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
        made = sum(self.bare.counters.get(name, 0) for name in LAUNCHES)
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
