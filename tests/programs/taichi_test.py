#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""taichi (taichi_client.py) bare and with the preload library: every printed bit must be equal, and
near what taichi's CPU backend makes of the same program.

    taichi_test.py --softgpu DIR --shim FILE --venv DIR [--steps N] [--orders LIST]

taichi opens its code with RTLD_DEEPBIND, which no preloaded function stands in front of. Its driver
is whatever libcuda.so it finds, so the library goes there under that name as well.

Exit status 77 (skipped) when taichi is neither in the environment DIR nor to be had from PyPI.
"""

import argparse
import math
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # the source tree stays clean

from cases import SKIPPED  # noqa: E402
from client_runs import Trial, python_with, tail_of  # noqa: E402
from compare import Runner  # noqa: E402

VERSION = "1.7.4"
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "taichi_client.py")
GPU_ALONE = ("shared", "random")


def words_of(run):
    lines = run.stdout.decode().splitlines()
    return [line.split() for line in lines if not line.startswith("[Taichi]")]


def is_near(one, other):
    if one == other:
        return True
    try:
        return math.isclose(float.fromhex(one), float.fromhex(other), rel_tol=1e-4, abs_tol=1e-5)
    except ValueError:
        return False


def check_bare(bare, reference):
    for name, run in (("cuda", bare), ("cpu", reference)):
        if run.status != 0:
            return [f"{name}: exit status {run.status}: {tail_of(run)}"]
    found, made = [], words_of(bare)
    for name in GPU_ALONE:
        if not any(line[0] == name for line in made):
            found.append(f"no result of {name}")
    shared = [line for line in made if line[0] not in GPU_ALONE]
    wanted = words_of(reference)
    if len(shared) != len(wanted) or len(wanted) < 10:
        return found + [f"{len(shared)} results, {len(wanted)} on the CPU"]
    for one, other in zip(shared, wanted):
        if len(one) != len(other) or not all(map(is_near, one, other)):
            found.append(f"{' '.join(one)} differs from the CPU's {' '.join(other)}")
    return found


def check(runner, command, order, reference, link):
    trial = Trial(runner, command, order)
    trial.found = check_bare(trial.bare, reference)
    summary = f"{trial.bare.counters.get('cuLaunchKernel', 0)} launches"
    if not trial.found:
        trial.compare("shapes", {"LD_LIBRARY_PATH": ":".join([link, runner.softgpu])})
        summary += f", {trial.launches.queued} queued, {trial.launches.replayed} replayed"
    trial.close()
    return trial.report("taichi", summary)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True, help="folder of libcuda.so")
    parser.add_argument("--shim", required=True, help="libcajeta_xpu.so")
    parser.add_argument("--venv", required=True, help="Python environment, made when missing")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--orders", default="early,late,random:1")
    options = parser.parse_args()
    python = python_with(options.venv, "taichi", VERSION, "--only-binary", ":all:")
    if python is None:
        return SKIPPED
    runner = Runner(options.softgpu, options.shim, timeout=600)
    command = [python, CLIENT, "--steps", str(options.steps)]
    status = 0
    with tempfile.TemporaryDirectory() as home:
        os.symlink(runner.shim, os.path.join(home, "libcuda.so"))
        # taichi keeps files at home, and asks its makers for a newer version.
        os.environ.update(HOME=home, TI_SKIP_VERSION_CHECK="ON", PYTHONDONTWRITEBYTECODE="1")
        reference = runner.run([*command, "--arch", "cpu"], shimmed=False)
        for order in options.orders.split(","):
            status |= check(runner, command, order, reference, home)
    return status


if __name__ == "__main__":
    sys.exit(main())
