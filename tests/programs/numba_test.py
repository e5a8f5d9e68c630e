#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numba (numba_client.py) bare and with the preload library: every printed bit must be equal, and
most launches must be replayed.

    numba_test.py --softgpu DIR --shim FILE --venv DIR --toolkit DIR [--oracle FILE] [--rounds N]

Exit status 77 (skipped) when Numba is neither in the environment DIR nor to be had from PyPI.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # the source tree stays clean

from cases import SKIPPED  # noqa: E402
from client_runs import Trial, numba_environment, numba_python, tail_of  # noqa: E402
from compare import Runner  # noqa: E402

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numba_client.py")
WORKLOADS = ("one", "first", "second", "sums", "waves", "transposed", "random")


def check_bare(run):
    """The client has held its results against NumPy's."""
    if run.status != 0:
        return [f"exit status {run.status}: {tail_of(run)}"]
    names = tuple(line.split()[0] for line in run.stdout.decode().splitlines())
    return [] if names == WORKLOADS else [f"results of {names}"]


def check(runner, command, order, oracle):
    trial = Trial(runner, command, order, oracle)
    trial.found = check_bare(trial.bare)
    made = trial.bare.counters.get("cuLaunchKernelEx", 0)
    summary = f"{made} launches"
    if not trial.found:
        trial.compare("all")
        added = trial.shimmed.counters.get("cuGraphLaunch", 0)
        summary += f", {trial.launches.replayed} replayed in {added} graph launches"
        if trial.launches.replayed <= made // 2:
            trial.found.append(f"not replayed: {summary}")
    trial.close()
    return trial.report("numba", summary)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True, help="folder of libcuda.so.1")
    parser.add_argument("--shim", required=True, help="libcajeta_xpu.so")
    parser.add_argument("--venv", required=True, help="Python environment, made when missing")
    parser.add_argument("--toolkit", required=True, help="CUDA toolkit, for libnvvm")
    parser.add_argument("--oracle", help="softgpu-compare, to compare the order of all work too")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--orders", default="early,late,random:1")
    options = parser.parse_args()
    python = numba_python(options.venv, options.toolkit)
    if python is None:
        return SKIPPED
    runner = Runner(options.softgpu, options.shim, timeout=300)
    command = [python, "-W", "ignore", CLIENT, "--rounds", str(options.rounds)]
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(numba_environment(options.toolkit, folder))
        for order in options.orders.split(","):
            status |= check(runner, command, order, options.oracle)
    return status


if __name__ == "__main__":
    sys.exit(main())
