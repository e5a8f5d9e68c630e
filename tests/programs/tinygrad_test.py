#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tinygrad (tinygrad_client.py) bare and with the preload library: every printed bit must be equal.
With tinygrad's own graphs off the library's replays are counted, with them on they must pass through.

    tinygrad_test.py --softgpu DIR [--shim FILE] --venv DIR [--oracle FILE] [--steps N]

Exit status 77 (skipped) when tinygrad is neither in the environment DIR nor to be had from PyPI.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True  # the source tree stays clean

from cases import SKIPPED  # noqa: E402
from client_runs import Trial, python_with, tail_of  # noqa: E402
from compare import Runner  # noqa: E402

VERSION = "0.14.0"
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tinygrad_client.py")


def client_environment(jit):
    """tinygrad's settings: the CUDA backend, its own PTX, no cache outside this run."""
    return {
        "DEV": "CUDA:PTX",
        "JIT": str(jit),
        "CACHELEVEL": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }


def check_bare(run, jit, steps):
    if run.status != 0:
        return [f"exit status {run.status}: {tail_of(run)}"]
    found = []
    lines = run.stdout.decode().splitlines()
    losses = [float.fromhex(line.split()[-1]) for line in lines if line.startswith("step ")]
    if len(losses) != steps:
        return [f"{len(losses)} losses, expected {steps}"]
    # It learns: numbers that only look like losses would not fall.
    if not sum(losses[-3:]) < 0.7 * sum(losses[:3]):
        found.append(f"the loss does not fall: {losses}")
    graph_launches = run.counters.get("cuGraphLaunch", 0)
    changes = run.counters.get("cuGraphExecKernelNodeSetParams", 0)
    if (jit == 1) != (graph_launches > 0) or (jit == 1) != (changes > 0):
        found.append(f"JIT={jit} made {graph_launches} graph launches, {changes} changes to nodes")
    return found


def check(runner, python, jit, order, options):
    os.environ.update(client_environment(jit))
    command = [python, CLIENT, "--steps", str(options.steps)]
    trial = Trial(runner, command, order, options.oracle)
    trial.found = check_bare(trial.bare, jit, options.steps)
    made = trial.bare.counters.get("cuLaunchKernel", 0)
    summary = f"{made} launches"
    if not trial.found and options.shim:
        trial.compare("all")
        replayed = trial.launches.replayed
        own = trial.bare.counters.get("cuGraphLaunch", 0)
        added = trial.shimmed.counters.get("cuGraphLaunch", 0) - own
        summary += f", {replayed} replayed in {added} graph launches beside {own} of the client"
        if jit != 1 and (replayed <= made // 2 or added <= 0):
            trial.found.append(f"not replayed: {summary}")
        if jit == 1 and added < 0:
            trial.found.append(f"{-added} of the client's graph launches are missing")
    trial.close()
    return trial.report(f"JIT={jit}", summary)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softgpu", required=True, help="folder of libcuda.so.1")
    parser.add_argument("--shim", help="libcajeta_xpu.so; without it only the bare run is checked")
    parser.add_argument("--venv", required=True, help="Python environment, made when missing")
    parser.add_argument("--oracle", help="softgpu-compare, to compare the order of all work too")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--orders", default="early,late,random:1")
    options = parser.parse_args()
    python = python_with(options.venv, "tinygrad", VERSION, "--no-deps")
    if python is None:
        return SKIPPED
    runner = Runner(options.softgpu, options.shim or "", timeout=600)
    status = 0
    for jit in (2, 1):
        for order in options.orders.split(","):
            status |= check(runner, python, jit, order, options)
    return status


if __name__ == "__main__":
    sys.exit(main())
