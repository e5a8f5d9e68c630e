#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package, built into a wheel by pip and used from there: preloaded, loaded late, and absent, on softgpu and
on the cpu; with --client on the streams of another package instead: bindings (NVIDIA's cuda-bindings), numba, or cupy
(90 MB to fetch, so by hand only).

    python_test.py --softgpu DIR --shim FILE --package DIR --ptx FILE --venv DIR [--client NAME --toolkit DIR]

Exit status 77 (skipped) when that package is neither in the environment DIR nor to be had from PyPI.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True  # the source tree stays clean
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from cases import SKIPPED  # noqa: E402
from client_runs import BINDINGS, environment, numba_environment, numba_python, python_with  # noqa: E402
from compare import LONG_DEADLINE_US  # noqa: E402

CUPY = "14.2.0"


def build_wheel(options, folder):
    """The package as pip installs it, unpacked in `folder`."""
    sources = os.path.join(folder, "sources")
    shutil.copytree(options.package, sources, ignore=shutil.ignore_patterns("__pycache__"))
    with environment(options.venv) as python:
        command = [python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
        command += ["-w", folder, sources]
        subprocess.run(command, check=True, env={**os.environ, "CAJETA_XPU_LIBRARY": options.shim})
    (wheel,) = pathlib.Path(folder).glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        archive.extractall(os.path.join(folder, "installed"))
    return os.path.join(folder, "installed")


def python_of(options):
    """The Python that has the client, this one where there is none; None when it is not to be had."""
    if options.client == "bindings":
        return python_with(options.venv, "cuda-bindings", BINDINGS)
    if options.client == "numba":
        return numba_python(options.venv, options.toolkit)
    if options.client == "cupy":
        return python_with(options.venv, "cupy-cuda13x", CUPY, "--only-binary", ":all:")
    return sys.executable


def run(python, options, package, part, settings, preload):
    env = {name: value for name, value in os.environ.items() if not name.startswith("CAJETA_")}
    env.update(
        LD_LIBRARY_PATH=options.softgpu,  # and not where the library was built: a part misses it
        PYTHONPATH=package,
        PYTHONDONTWRITEBYTECODE="1",
        CAJETA_XPU_DEFER_DEADLINE_US=str(LONG_DEADLINE_US),
        **settings,
    )
    if options.client == "numba":
        theirs = numba_environment(options.toolkit, os.path.dirname(package))
        theirs["LD_LIBRARY_PATH"] = os.pathsep.join([options.softgpu, theirs["LD_LIBRARY_PATH"]])
        env.update(theirs)
    if preload:
        env["LD_PRELOAD"] = os.path.join(package, "cajeta_xpu", "libcajeta_xpu.so")
    command = [python, str(HERE / "python_client.py"), part, options.ptx]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    name = f"{part} {' '.join(settings.values())}".strip()
    if done.returncode == 0 and f"done {part}" in done.stdout:
        print(f"{name}: passed")
        return 0
    print(f"{name}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("softgpu", "shim", "package", "ptx", "venv"):
        parser.add_argument("--" + name, required=True, type=os.path.abspath)
    parser.add_argument("--client", choices=["bindings", "numba", "cupy"])
    parser.add_argument("--toolkit", type=os.path.abspath)
    options = parser.parse_args()
    python = python_of(options)
    if python is None:
        return SKIPPED
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        package = build_wheel(options, folder)
        for order in ("late", "random:1"):
            part = options.client or "cuda"
            status |= run(python, options, package, part, {"CAJETA_SOFTGPU_ORDER": order}, preload=True)
        if options.client is None:
            status |= run(python, options, package, "cpu", {}, preload=False)
            status |= run(python, options, package, "late", {}, preload=False)
            os.remove(os.path.join(package, "cajeta_xpu", "libcajeta_xpu.so"))
            status |= run(python, options, package, "absent", {}, preload=False)
    return status


if __name__ == "__main__":
    sys.exit(main())
